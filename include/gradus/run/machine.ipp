// The bodies of machine.hpp.
#pragma once
#include "../base/body.hpp"
#include "machine.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY void step_machine::connect(const runnable& r) {
  r_ = r;
  const program_view& p = r.program;
  args_.resize(static_cast<std::size_t>(p.arg_count));
  calls_.resize(static_cast<std::size_t>(p.call_count));
  offsets_.resize(static_cast<std::size_t>(p.slot_count));
  variables_.resize(static_cast<std::size_t>(p.variable_count) * 2);
  order_.resize(static_cast<std::size_t>(p.slot_count) * 2);
  find_inputs();
  batch_ = laid_out_for_ = -1;
}

GRADUS_BODY std::string_view runnable::name_at(int offset) const {
  if (offset < 0) return {};
  std::size_t n = 0;
  // The bound keeps g++ from taking this for a strlen of a constant and then warning about the zero at its end.
  constexpr std::size_t longest = 1 << 20;
  while (n < longest && names[offset + static_cast<std::ptrdiff_t>(n)] != '\0') ++n;
  return {names + offset, n};
}

GRADUS_BODY void step_machine::bind(std::int64_t whole) {
  if (batch_ >= 0 && whole == batch_ * parts_) return;
  if (whole < 0) raise(status::invalid_argument, text("a batch of ", whole, " examples: expected 0 or more"));
  if (whole % parts_ != 0)
    raise(status::invalid_argument, text("a batch of ", whole, " examples cannot be cut into ", parts_,
                                         " equal parts; let the batch be a multiple, and drop what is left over"));
  check_size(whole);
  // If there is no memory for this batch, neither it nor what was laid out before may be taken for bound.
  struct forgetting {
    step_machine* machine;
    ~forgetting() {
      if (machine != nullptr) machine->batch_ = machine->laid_out_for_ = -1;
    }
  } unless_bound{this};
  const std::int64_t batch_size = whole / parts_;
  const program_view& p = r_.program;
  batch_ = batch_size;
  if (batch_size > laid_out_for_) lay_out();
  for (int i = 0; i < p.arg_count; ++i) args_[static_cast<std::size_t>(i)] = place_of(p.args[i]);
  for (int i = 0; i < p.call_count; ++i) {
    const detail::call& c = p.calls[i];
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
  unless_bound.machine = nullptr;
}

// Extents are ints (graph/size_limit.hpp), and so is a batch: then every count of elements is below 2^62. The bytes are
// summed before any memory is laid out, as if tensors shared none.
GRADUS_BODY void step_machine::check_size(std::int64_t whole) const {
  if (whole > detail::most_counted)
    raise(status::invalid_argument, text("a batch of ", whole, " examples: at most ", detail::most_counted,
                                         " fit; give them in several batches"));
  constexpr std::int64_t most = std::int64_t{1} << 62;
  const program_view& p = r_.program;
  std::int64_t sum = 0;
  int largest = 0;
  for (int k = 0; k < p.slot_count && sum < most; ++k) {
    std::int64_t bytes = p.slots[k];
    if (bytes < 0 && __builtin_mul_overflow(-bytes, whole, &bytes)) bytes = most;
    sum = bytes < most - sum ? sum + bytes : most;
  }
  if (sum < most) return;
  for (int k = 0; k < p.slot_count; ++k)  // what holds the batch is negative
    if (p.slots[k] < p.slots[largest]) largest = k;
  int i = 0;
  while (p.places[i].region != node_place::slot || p.places[i].index != largest) ++i;
  raise(status::invalid_argument,
        text("a batch of ", whole, " examples: its tensors take more than 2^62 bytes, most of all ", r_.at(i).op->name,
             " ", r_.name_of(i), to_text(r_.at(i).dims), "; give fewer examples at once"));
}

GRADUS_BODY void step_machine::load(std::int64_t part) {
  for (const fed_input& f : feeds_)
    if (f.bytes != 0)
      std::memcpy(place_of(f.node), feed_memory_.data() + f.offset + static_cast<std::size_t>(part) * f.bytes, f.bytes);
}

GRADUS_BODY bool step_machine::lend(int i, std::span<const std::byte> from) {
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

GRADUS_BODY void step_machine::take_back() {
  if (!any_lent_) return;
  for (input& in : inputs_)
    if (in.lent != nullptr) restore(in);
  any_lent_ = false;
}

GRADUS_BODY const std::byte* step_machine::source(int i) {
  if (any_lent_)
    for (const input& in : inputs_)
      if (in.lent != nullptr && in.node == origin(i)) return in.lent;
  return address(i);
}

GRADUS_BODY std::byte* step_machine::address(int i) {
  if (const fed_input* f = feed_of(i); f != nullptr) return feed_memory_.data() + f->offset;
  return place_of(i);
}

GRADUS_BODY tensor_view step_machine::view(int i) {
  return {r_.at(i).type, resolve(r_.at(i).dims, feed_of(i) != nullptr ? batch_ * parts_ : batch_), address(i)};
}

GRADUS_BODY std::size_t step_machine::tensor_bytes() const {
  std::size_t sum = 0;
  for (int i = 0; i < r_.graph.view.size; ++i) {
    const node& n = r_.at(i);
    if (r_.program.places[i].region == node_place::slot && !n.op->is(trait::view | trait::writes))
      sum += align_up(static_cast<std::size_t>(resolve(detail::bytes_of(n), laid_out_for_)));
  }
  return sum;
}

GRADUS_BODY void step_machine::run_one(std::size_t i) const {
  const bound_call& c = calls_[i];
  c.run(c.args, c.size, c.what);
}

GRADUS_BODY void step_machine::lay_out() {
  const program_view& p = r_.program;
  const auto size = [&](int k) { return align_up(static_cast<std::size_t>(resolve(p.slots[k], batch_))); };
  std::size_t at = 0;
  for (int k = 0; k < p.slot_count; ++k)
    if (p.lives[k].always()) offsets_[static_cast<std::size_t>(k)] = at, at += size(k);
  bytes_ = lay_out_slots(p.lives, p.slot_count, size, at, offsets_, order_);
  if (memory_.size() < bytes_) allocate();
  laid_out_for_ = batch_;
}

GRADUS_BODY void step_machine::allocate() {
  if (bytes_ < aligned_buffer::large_from) {
    memory_ = aligned_buffer(bytes_);
    return;
  }
  memory_ = aligned_buffer::untouched(bytes_);
  for (int i = 0; i < r_.graph.view.size; ++i)
    if (r_.at(i).op->is(trait::leaf) && r_.program.places[i].region == node_place::slot)
      std::memset(place_of(i), 0, align_up(static_cast<std::size_t>(resolve(detail::bytes_of(r_.at(i)), batch_))));
}

GRADUS_BODY std::byte* step_machine::place_of(int i) {
  const node_place& l = r_.program.places[i];
  switch (l.region) {
  case node_place::slot: return memory_.data() + offsets_[static_cast<std::size_t>(l.index)];
  case node_place::variable: return variables_[2 * static_cast<std::size_t>(l.index)];
  case node_place::gradient: return variables_[2 * static_cast<std::size_t>(l.index) + 1];
  default: return nullptr;
  }
}

GRADUS_BODY int step_machine::origin(int i) const {
  while (r_.at(i).op->is(trait::view | trait::writes)) i = r_.graph.view.edges[r_.at(i).first];
  return i;
}

GRADUS_BODY void step_machine::find_inputs() {
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
  for (const detail::call* c = p.calls; c != p.calls + p.call_count; ++c) {
    const node& n = r_.at(c->node);
    for (int k = 0; k < c->count; ++k)
      if (input* in = input_of(p.args[c->first + k]); in != nullptr) {
        in->args.push_back(c->first + k);
        // The session finds the memory that it reads itself; for rows it calls source().
        const bool rows = n.op == &cards::apply && k == 3;
        if (k == 0 || (n.op->is(trait::session) && !rows) || (n.op->is(trait::writes) && k == 1)) in->only_read = false;
      }
  }
  for (int i = 0; i < r_.graph.output_count; ++i)
    if (input* in = input_of(r_.graph.outputs[i].node); in != nullptr) in->only_read = false;
}

GRADUS_BODY void step_machine::restore(input& in) {
  for (int k : in.args) args_[static_cast<std::size_t>(k)] = in.own;
  in.lent = nullptr;
}

[[gnu::noinline]] GRADUS_BODY void step_machine::refuse_bytes(const input& in, std::size_t found) const {
  raise(status::invalid_argument,
        text("placeholder \"", r_.name_of(in.node), "\" of a batch of ", batch_ * parts_, " takes ", in.bytes,
             " bytes, found ", found, "; bind to the size of the batch first"));
}

GRADUS_BODY const step_machine::fed_input* step_machine::feed_of(int i) const {
  for (std::size_t k = 0; k < feeds_.size(); ++k)
    if (feeds_[k].node == i) return &feeds_[k];
  return nullptr;
}

GRADUS_BODY void step_machine::lay_out_feeds() {
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
  for (int slot = 0; slot < r_.program.slot_count; ++slot)  // these go in order, so that a shorter batch moves down
    for (std::size_t k = 0; k < count; ++k)
      if (r_.program.places[feeds_[k].node].index == slot) {
        feeds_[k].offset = at;
        at += align_up(static_cast<std::size_t>(parts_) * feeds_[k].bytes);
      }
  if (feed_memory_.size() < at) feed_memory_ = aligned_buffer(at);
}

GRADUS_BODY void step_machine::fill_constant(int i) {
  const node& n = r_.at(i);
  const int* words = r_.graph.view.ints + n.attr;
  const std::int64_t many = gradus::count(resolve(n.dims, batch_));
  std::byte* to = address(i);
  with_element_type(n.type, [&]<class T>() { fill<T>(to, words, n.attrs / 2, many); });
}

}  // namespace gradus
