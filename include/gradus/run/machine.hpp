// A machine binds a plan to memory: pointers are bound once per batch size, and then a step is a loop over a table of
// calls. The same machine runs a compiled model and an interpreted graph; they differ in the kernels that the table
// names.
#pragma once
#include "../base/build.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "../pass/plan.hpp"
#include "../tensor/tensor.hpp"

namespace gradus::inline GRADUS_BUILD {

// One kernel invocation with its arguments bound; a step is a loop over these.
struct bound_call {
  kernel_function run = nullptr;  // nullptr: run by the session (updates, the global norm)
  std::byte** args = nullptr;
  call_size size;
  const kernel_details* what = nullptr;
  int node = -1;
};

// A graph ready to run: its parts are constants of the compiler, or built by the program. It does not own them.
struct runnable {
  graph_parts graph;
  program_view program;
  const char* names = nullptr;
  const kernel_function* kernels = nullptr;  // one per signature; nullptr: run by the session
  const kernel_details* details = nullptr;   // one per signature
  const bool* divides = nullptr;             // one per signature: its calls can be divided; nullptr: none can

  const node& at(int i) const { return graph.view.nodes[i]; }
  std::string_view name_of(int i) const { return name_at(at(i).name); }
  std::string_view name_at(int offset) const;
};

class step_machine {
public:
  // `values` and `gradients` return the memory of each of the program's variables, in its order.
  template <class Value, class Gradient>
  void connect(const runnable& r, Value value, Gradient gradient) {
    connect(r);
    const program_view& p = r.program;
    for (std::size_t k = 0; k < static_cast<std::size_t>(p.variable_count); ++k) {
      variables_[2 * k] = value(static_cast<int>(k));
      variables_[2 * k + 1] = static_cast<int>(k) < p.trainable ? gradient(static_cast<int>(k)) : nullptr;
    }
  }
  bool connected() const { return r_.names != nullptr || r_.program.call_count != 0; }
  const runnable& what() const { return r_; }
  std::int64_t batch_size() const { return batch_; }
  // From now on placeholders hold a batch of `parts` equal parts, and a run takes one of them: call load(part) first.
  // Everything else is laid out for a part.
  void cut(std::int64_t parts) { parts_ = parts, batch_ = laid_out_for_ = -1; }

  // Sets the number of examples. Tensors are laid out, and memory allocated, only when there were never as many before.
  // Raises invalid_argument for a batch that is no int or whose tensors would take more than 2^62 bytes and, for a
  // machine that was cut, if the parts are not equal. Where it raises, the next call begins anew.
  void bind(std::int64_t whole);
  // Copies a part of the placeholders to where the kernels read it.
  void load(std::int64_t part);

  // Lets the next run read placeholder i from the caller's memory, which must stay as it is until the run has ended;
  // then call take_back. Returns whether it does: memory that is not whole cache lines on their boundaries, is an
  // output of the graph or would be written is copied instead, as are the placeholders of a machine that was cut.
  // Raises invalid_argument if these are not the bytes of the bound batch.
  bool lend(int i, std::span<const std::byte> from);
  // From now on every placeholder is read from address(i).
  void take_back();
  // Returns the memory that the current run reads as node i: address(i), or the lent one.
  const std::byte* source(int i);

  // Returns where node i's tensor is in memory, once bound.
  std::byte* address(int i);
  tensor_view view(int i);

  std::size_t call_count() const { return calls_.size(); }
  const bound_call& bound(std::size_t i) const { return calls_[i]; }
  // Returns the size of the largest batch's tensors as they are laid out, and of all of them side by side.
  std::size_t arena_bytes() const { return bytes_; }
  std::size_t tensor_bytes() const;
  std::size_t feed_bytes() const { return feed_memory_.size(); }  // of the whole batch, if it is cut

  // Makes all calls in order, on this thread. `session` runs those that have no kernel.
  template <class Session>
  void run(Session&& session) {
    for (const bound_call& c : calls_) {
      if (c.run != nullptr)
        c.run(c.args, c.size, c.what);
      else
        session(c);
    }
  }
  void run_one(std::size_t i) const;

private:
  struct fed_input {
    int node;
    std::size_t offset, bytes;  // of the whole batch in feed_memory_; of one part
  };
  void connect(const runnable& r);
  void check_size(std::int64_t whole) const;
  void lay_out();
  // Large memory is left for the kernels that write it to touch first, each on its thread; memory that no kernel writes
  // is zeroed.
  void allocate();
  std::byte* place_of(int i);
  runnable r_;
  std::vector<std::byte*> args_;
  std::vector<bound_call> calls_;
  std::vector<std::size_t> offsets_;
  std::vector<std::byte*> variables_;
  aligned_buffer memory_;
  std::vector<int> order_;
  std::int64_t batch_ = -1, laid_out_for_ = -1, parts_ = 1;
  std::size_t bytes_ = 0;
  std::vector<fed_input> feeds_;  // of a machine that was cut, in the order of their places
  aligned_buffer feed_memory_;

  struct input {  // a placeholder
    int node;
    std::vector<int> args;  // arguments of calls that are this placeholder or a view of it
    bool only_read = true;  // kernels read it and nothing else does: other readers use its own memory
    std::size_t bytes = 0;  // of the whole batch
    std::byte *own = nullptr, *lent = nullptr;
  };
  std::vector<input> inputs_;
  bool any_lent_ = false;

  // Returns the node whose memory node i uses.
  int origin(int i) const;
  void find_inputs();
  void restore(input& in);
  [[noreturn, gnu::cold]] void refuse_bytes(const input& in, std::size_t found) const;

  const fed_input* feed_of(int i) const;
  void lay_out_feeds();

  template <class T>
  void fill(std::byte* to, const int* words, int values, std::int64_t n) {
    T* p = reinterpret_cast<T*>(to);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t k = values == 1 ? 0 : i;
      p[i] = element_from<T>(std::bit_cast<double>(std::array<int, 2>{words[2 * k], words[2 * k + 1]}));
    }
  }
  void fill_constant(int i);
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "machine.ipp"
#endif
