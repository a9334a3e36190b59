// A plan meets its memory: pointers are bound once per batch size, then a step is a loop over a table of calls. The
// same machine runs a compiled model and an interpreted graph; they differ in which kernels the table names.
#pragma once
#include <bit>
#include <cstring>

#include "../pass/plan.hpp"
#include "storage.hpp"

namespace gradus {

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

template <class Storage>
class machine {
public:
  machine() = default;
  // `values` and `gradients`: of each of the program's variables, in its order.
  template <class Value, class Gradient>
  void connect(const runnable& r, Value value, Gradient gradient) {
    r_ = r;
    const program_view& p = r.program;
    Storage::resize(args_, static_cast<std::size_t>(p.arg_count));
    Storage::resize(calls_, static_cast<std::size_t>(p.call_count));
    Storage::resize(offsets_, static_cast<std::size_t>(p.slot_count));
    Storage::resize(variables_, static_cast<std::size_t>(p.variable_count) * 2);
    for (std::size_t k = 0; k < static_cast<std::size_t>(p.variable_count); ++k) {
      variables_[2 * k] = value(static_cast<int>(k));
      variables_[2 * k + 1] = static_cast<int>(k) < p.trainable ? gradient(static_cast<int>(k)) : nullptr;
    }
    Storage::resize(order_, static_cast<std::size_t>(p.slot_count) * 2);
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
  }
  // The placeholders' part, where the kernels read it.
  void load(std::int64_t part) {
    for (const fed_input& f : feeds_)
      if (f.bytes != 0)
        std::memcpy(place_of(f.node), feed_memory_.data() + f.offset + static_cast<std::size_t>(part) * f.bytes,
                    f.bytes);
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
      if (r_.program.places[i].region == location::slot && !n.op->is(trait::view | trait::writes))
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
    Storage::reserve(memory_, bytes_);
    laid_out_for_ = batch_;
  }
  std::byte* place_of(int i) {
    const location& l = r_.program.places[i];
    switch (l.region) {
    case location::slot: return memory_.data() + offsets_[static_cast<std::size_t>(l.index)];
    case location::variable: return variables_[2 * static_cast<std::size_t>(l.index)];
    case location::gradient: return variables_[2 * static_cast<std::size_t>(l.index) + 1];
    default: return nullptr;
    }
  }
  runnable r_;
  typename Storage::template table<std::byte*> args_;
  typename Storage::template table<bound_call> calls_;
  typename Storage::template table<std::size_t> offsets_;
  typename Storage::template table<std::byte*> variables_;
  typename Storage::memory memory_;
  typename Storage::template table<int> order_;
  std::int64_t batch_ = -1, laid_out_for_ = -1, parts_ = 1;
  std::size_t bytes_ = 0;
  typename Storage::template table<fed_input> feeds_;  // of a machine that was cut, by place
  typename Storage::memory feed_memory_;

  const fed_input* feed_of(int i) const {
    for (std::size_t k = 0; k < feeds_.size(); ++k)
      if (feeds_[k].node == i) return &feeds_[k];
    return nullptr;
  }
  void lay_out_feeds() {
    std::size_t count = 0, at = 0;
    for (int pass = 0; pass < 2; ++pass) {
      if (pass == 1) Storage::resize(feeds_, count);
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
    Storage::reserve(feed_memory_, at);
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
