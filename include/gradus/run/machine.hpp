// A plan meets its memory: pointers are bound once per batch size, then a step is a loop over a table of calls. The
// same machine runs a compiled model and an interpreted graph; they differ in which kernels the table names.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "../pass/plan.hpp"
#include "../tensor/tensor.hpp"

namespace gradus {

// One kernel invocation, ready to go: a step is a loop over these.
struct bound_call {
  kernel_function run = nullptr;  // nullptr: run by the session (updates, the global norm)
  std::byte** args = nullptr;
  call_size size;
  const kernel_details* what = nullptr;
  int node = -1;
};

// A graph ready to run: constants of the compiler, or built by the program. Does not own.
struct runnable {
  graph_parts graph;
  program_view program;
  const char* names = nullptr;
  const kernel_function* kernels = nullptr;  // one per signature; nullptr: run by the session
  const kernel_details* details = nullptr;   // one per signature
  const bool* divides = nullptr;             // one per signature: its calls can be divided; nullptr: none can

  const node& at(int i) const { return graph.view.nodes[i]; }
  std::string_view name_of(int i) const { return name_at(at(i).name); }
  std::string_view name_at(int offset) const {
    if (offset < 0) return {};
    std::size_t n = 0;
    // The bound keeps g++ from taking this for a strlen of a constant and then doubting the zero at its end.
    constexpr std::size_t longest = 1 << 20;
    while (n < longest && names[offset + static_cast<std::ptrdiff_t>(n)] != '\0') ++n;
    return {names + offset, n};
  }
};

class machine {
public:
  // `values` and `gradients`: of each of the program's variables, in its order.
  template <class Value, class Gradient>
  void connect(const runnable& r, Value value, Gradient gradient) {
    r_ = r;
    const program_view& p = r.program;
    args_.resize(static_cast<std::size_t>(p.arg_count));
    calls_.resize(static_cast<std::size_t>(p.call_count));
    offsets_.resize(static_cast<std::size_t>(p.slot_count));
    variables_.resize(static_cast<std::size_t>(p.variable_count) * 2);
    for (std::size_t k = 0; k < static_cast<std::size_t>(p.variable_count); ++k) {
      variables_[2 * k] = value(static_cast<int>(k));
      variables_[2 * k + 1] = static_cast<int>(k) < p.trainable ? gradient(static_cast<int>(k)) : nullptr;
    }
    order_.resize(static_cast<std::size_t>(p.slot_count) * 2);
    find_inputs();
    batch_ = laid_out_for_ = -1;
  }
  bool connected() const { return r_.names != nullptr || r_.program.call_count != 0; }
  const runnable& what() const { return r_; }
  std::int64_t batch_size() const { return batch_; }
  // From now on placeholders hold a batch of `parts` equal parts, and a run takes one of them: load(part) first.
  // Everything else is laid out for a part.
  void cut(std::int64_t parts) { parts_ = parts, batch_ = laid_out_for_ = -1; }

  // Takes so many examples. Tensors are laid out, and memory allocated, only when there were never as many before.
  // Of a machine that was cut: invalid_argument if the parts are not equal.
  void bind(std::int64_t whole) {
    if (batch_ >= 0 && whole == batch_ * parts_) return;
    if (whole % parts_ != 0)
      raise(status::invalid_argument, text("a batch of ", whole, " examples cannot be cut into ", parts_,
                                           " equal parts; let the batch be a multiple, and drop what is left over"));
    const std::int64_t batch_size = whole / parts_;
    const program_view& p = r_.program;
    batch_ = batch_size;
    if (batch_size > laid_out_for_) lay_out();
    for (int i = 0; i < p.arg_count; ++i) args_[static_cast<std::size_t>(i)] = place_of(p.args[i]);
    for (int i = 0; i < p.call_count; ++i) {
      const call& c = p.calls[i];
      calls_[static_cast<std::size_t>(i)] = {r_.kernels[c.signature], args_.data() + c.first,
                                             call_size{resolve(c.rows, batch_size), batch_size},
                                             r_.details != nullptr ? r_.details + c.signature : nullptr, c.node};
    }
    for (int i = 0; i < r_.graph.view.size; ++i)
      if (r_.at(i).op == &constant_card) fill_constant(i);
    if (parts_ > 1) lay_out_feeds();
    for (input& in : inputs_) {
      in.own = place_of(in.node), in.lent = nullptr;
      in.bytes = static_cast<std::size_t>(
          resolve(detail::bytes_of(r_.at(in.node)), is_batched(r_.at(in.node).dims) ? whole : batch_size));
    }
    any_lent_ = false;
  }
  // The placeholders' part, where the kernels read it.
  void load(std::int64_t part) {
    for (const fed_input& f : feeds_)
      if (f.bytes != 0)
        std::memcpy(place_of(f.node), feed_memory_.data() + f.offset + static_cast<std::size_t>(part) * f.bytes,
                    f.bytes);
  }

  // The next run reads placeholder i from the caller's memory, which must stay as it is until the run has ended; then
  // take_back. Gives whether it does: what is not whole cache lines on their boundaries, is an output of the graph or
  // would be written is copied instead, as are the placeholders of a machine that was cut.
  // Errors: invalid_argument if these are not the bytes of the bound batch.
  bool lend(int i, std::span<const std::byte> from) {
    for (input& in : inputs_) {
      if (in.node != i) continue;
      if (from.size() != in.bytes) refuse_bytes(in, from.size());
      if (in.only_read && parts_ == 1 && in.bytes % alignment == 0 &&
          reinterpret_cast<std::uintptr_t>(from.data()) % alignment == 0) {
        in.lent = const_cast<std::byte*>(from.data()), any_lent_ = true;
        for (int k : in.args) args_[static_cast<std::size_t>(k)] = in.lent;
        return true;
      }
      if (in.lent != nullptr) restore(in);
      if (in.bytes != 0) std::memcpy(address(i), from.data(), in.bytes);
      return false;
    }
    raise(status::invalid_argument, text("lend: node ", i, " is no placeholder"));
  }
  // From now on every placeholder is read where address(i) says.
  void take_back() {
    if (!any_lent_) return;
    for (input& in : inputs_)
      if (in.lent != nullptr) restore(in);
    any_lent_ = false;
  }
  // What the run that goes on reads as node i: address(i), or what was lent.
  const std::byte* source(int i) {
    if (any_lent_)
      for (const input& in : inputs_)
        if (in.lent != nullptr && in.node == origin(i)) return in.lent;
    return address(i);
  }

  // Where node i's tensor lies, once bound.
  std::byte* address(int i) {
    if (const fed_input* f = feed_of(i); f != nullptr) return feed_memory_.data() + f->offset;
    return place_of(i);
  }
  tensor_view view(int i) {
    return {r_.at(i).type, resolve(r_.at(i).dims, feed_of(i) != nullptr ? batch_ * parts_ : batch_), address(i)};
  }

  std::size_t call_count() const { return calls_.size(); }
  const bound_call& bound(std::size_t i) const { return calls_[i]; }
  // Bytes of the largest batch's tensors as they are laid out, and of all of them side by side.
  std::size_t arena_bytes() const { return bytes_; }
  std::size_t tensor_bytes() const {
    std::size_t sum = 0;
    for (int i = 0; i < r_.graph.view.size; ++i) {
      const node& n = r_.at(i);
      if (r_.program.places[i].region == node_place::slot && !n.op->is(trait::view | trait::writes))
        sum += align_up(static_cast<std::size_t>(resolve(detail::bytes_of(n), laid_out_for_)));
    }
    return sum;
  }
  std::size_t feed_bytes() const { return feed_memory_.size(); }  // of the whole batch, if it is cut

  // All calls in order, on this thread. `session` runs those that have no kernel.
  template <class Session>
  void run(Session&& session) {
    for (const bound_call& c : calls_) {
      if (c.run != nullptr)
        c.run(c.args, c.size, c.what);
      else
        session(c);
    }
  }
  void run_one(std::size_t i) const {
    const bound_call& c = calls_[i];
    c.run(c.args, c.size, c.what);
  }

private:
  struct fed_input {
    int node;
    std::size_t offset, bytes;  // of the whole batch in feed_memory_; of one part
  };
  void lay_out() {
    const program_view& p = r_.program;
    const auto size = [&](int k) { return align_up(static_cast<std::size_t>(resolve(p.slots[k], batch_))); };
    std::size_t at = 0;
    for (int k = 0; k < p.slot_count; ++k)
      if (p.lives[k].always()) offsets_[static_cast<std::size_t>(k)] = at, at += size(k);
    bytes_ = lay_out_slots(p.lives, p.slot_count, size, at, offsets_, order_);
    if (memory_.size() < bytes_) allocate();
    laid_out_for_ = batch_;
  }
  // Many pages are left to the kernels that write them, each on its thread; what no kernel writes is zero.
  void allocate() {
    if (bytes_ < buffer::large_from) {
      memory_ = buffer(bytes_);
      return;
    }
    memory_ = buffer::untouched(bytes_);
    for (int i = 0; i < r_.graph.view.size; ++i)
      if (r_.at(i).op->is(trait::leaf) && r_.program.places[i].region == node_place::slot)
        std::memset(place_of(i), 0, align_up(static_cast<std::size_t>(resolve(detail::bytes_of(r_.at(i)), batch_))));
  }
  std::byte* place_of(int i) {
    const node_place& l = r_.program.places[i];
    switch (l.region) {
    case node_place::slot: return memory_.data() + offsets_[static_cast<std::size_t>(l.index)];
    case node_place::variable: return variables_[2 * static_cast<std::size_t>(l.index)];
    case node_place::gradient: return variables_[2 * static_cast<std::size_t>(l.index) + 1];
    default: return nullptr;
    }
  }
  runnable r_;
  std::vector<std::byte*> args_;
  std::vector<bound_call> calls_;
  std::vector<std::size_t> offsets_;
  std::vector<std::byte*> variables_;
  buffer memory_;
  std::vector<int> order_;
  std::int64_t batch_ = -1, laid_out_for_ = -1, parts_ = 1;
  std::size_t bytes_ = 0;
  std::vector<fed_input> feeds_;  // of a machine that was cut, by place
  buffer feed_memory_;

  struct input {  // a placeholder
    int node;
    std::vector<int> args;  // of calls, that are it or a view of it
    bool only_read = true;  // by kernels: what else looks at it looks at its own memory
    std::size_t bytes = 0;  // of the whole batch
    std::byte *own = nullptr, *lent = nullptr;
  };
  std::vector<input> inputs_;
  bool any_lent_ = false;

  // The node whose memory node i's is.
  int origin(int i) const {
    while (r_.at(i).op->is(trait::view | trait::writes)) i = r_.graph.view.edges[r_.at(i).first];
    return i;
  }
  void find_inputs() {
    inputs_.clear();
    for (int i = 0; i < r_.graph.view.size; ++i)
      if (r_.at(i).op == &placeholder_card) {
        inputs_.push_back({i, {}});
        inputs_.back().only_read = r_.program.places[i].region == node_place::slot;
      }
    const auto input_of = [this](int node) -> input* {
      const int i = origin(node);
      for (input& in : inputs_)
        if (in.node == i) return &in;
      return nullptr;
    };
    const program_view& p = r_.program;
    for (const call* c = p.calls; c != p.calls + p.call_count; ++c) {
      const node& n = r_.at(c->node);
      for (int k = 0; k < c->count; ++k)
        if (input* in = input_of(p.args[c->first + k]); in != nullptr) {
          in->args.push_back(c->first + k);
          // The session looks for what it reads by itself; of rows it asks source().
          const bool rows = n.op == &cards::apply && k == 3;
          if (k == 0 || (n.op->is(trait::session) && !rows) || (n.op->is(trait::writes) && k == 1))
            in->only_read = false;
        }
    }
    for (int i = 0; i < r_.graph.output_count; ++i)
      if (input* in = input_of(r_.graph.outputs[i].node); in != nullptr) in->only_read = false;
  }
  void restore(input& in) {
    for (int k : in.args) args_[static_cast<std::size_t>(k)] = in.own;
    in.lent = nullptr;
  }
  [[noreturn, gnu::cold, gnu::noinline]] void refuse_bytes(const input& in, std::size_t found) const {
    raise(status::invalid_argument,
          text("placeholder \"", r_.name_of(in.node), "\" of a batch of ", batch_ * parts_, " takes ", in.bytes,
               " bytes, found ", found, "; bind to the size of the batch first"));
  }

  const fed_input* feed_of(int i) const {
    for (std::size_t k = 0; k < feeds_.size(); ++k)
      if (feeds_[k].node == i) return &feeds_[k];
    return nullptr;
  }
  void lay_out_feeds() {
    std::size_t count = 0, at = 0;
    for (int pass = 0; pass < 2; ++pass) {
      if (pass == 1) feeds_.resize(count);
      count = 0;
      for (int i = 0; i < r_.graph.view.size; ++i) {
        if (r_.at(i).op != &placeholder_card || !is_batched(r_.at(i).dims)) continue;
        if (pass == 1) feeds_[count] = {i, 0, static_cast<std::size_t>(resolve(detail::bytes_of(r_.at(i)), batch_))};
        ++count;
      }
    }
    for (int slot = 0; slot < r_.program.slot_count; ++slot)  // in order, so that a shorter batch moves down
      for (std::size_t k = 0; k < count; ++k)
        if (r_.program.places[feeds_[k].node].index == slot) {
          feeds_[k].offset = at;
          at += align_up(static_cast<std::size_t>(parts_) * feeds_[k].bytes);
        }
    if (feed_memory_.size() < at) feed_memory_ = buffer(at);
  }

  template <class T>
  void fill(std::byte* to, const int* words, int values, std::int64_t n) {
    T* p = reinterpret_cast<T*>(to);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t k = values == 1 ? 0 : i;
      p[i] = static_cast<T>(std::bit_cast<double>(std::array<int, 2>{words[2 * k], words[2 * k + 1]}));
    }
  }
  void fill_constant(int i) {
    const node& n = r_.at(i);
    const int* words = r_.graph.view.ints + n.attr;
    const std::int64_t many = gradus::count(resolve(n.dims, batch_));
    std::byte* to = address(i);
    switch (n.type) {
    case float32: return fill<float>(to, words, n.attrs / 2, many);
    case float64: return fill<double>(to, words, n.attrs / 2, many);
    case int32: return fill<std::int32_t>(to, words, n.attrs / 2, many);
    case int64: return fill<std::int64_t>(to, words, n.attrs / 2, many);
    case boolean: return fill<bool>(to, words, n.attrs / 2, many);
    default: return fill<std::uint8_t>(to, words, n.attrs / 2, many);
    }
  }
};

}  // namespace gradus
