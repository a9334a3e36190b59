// The layout of a static_stepper is computed by the compiler: offsets from one first byte, in this order:
//
//   variables (trainable ones first) | gradients | mirrors ... | inputs and constants | scratch |
//   a gradient of rows made dense | tensors of a step or of a prediction
//
// Inputs of equal name, type and shape share one memory for training and prediction. The tensors of a step and those of
// a prediction share theirs, because only one of the two runs. With release_gradients there is no array of gradients;
// with one_by_one it holds their sums, inputs and predictions have all examples, and the tensors of a step have one.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>

#include "../update/composed.hpp"
#include "freeze.hpp"
#include "gradient_life.hpp"
#include "outer_gradient.hpp"
#include "slot_storage.hpp"
#include "variables.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace kind {
struct memory {};        // a run's tensors are inside the object that runs it: static_batch<N>
struct memory_limit {};  // the stepper takes at most N bytes of memory: memory_at_most<N>
}  // namespace kind

namespace detail {
template <class P>
struct no_policy_of_this_door<P, kind::memory> {
  static_assert(!sizeof(P*),
                "gradus: this policy is not one that is taken here, because static_batch<N> fixes the batch size of a "
                "static stepper; make_static_stepper takes it. Elsewhere the batch size is that of the examples.");
};
template <class P>
struct no_policy_of_this_door<P, kind::memory_limit> {
  static_assert(!sizeof(P*),
                "gradus: this policy is not one that is taken here, because memory_at_most<N> limits the memory of a "
                "static stepper; make_static_stepper takes it.");
};
}  // namespace detail

// Every step has N examples, and its tensors are inside the object that runs it.
template <std::int64_t N>
struct static_batch {
  static_assert(N >= 1, "gradus: static_batch<N> needs at least one example.");
  static_assert(N <= 0x7fffffff, "gradus: static_batch<N> takes at most 2^31 - 1 examples.");
  using policy_for = kind::memory;
  static constexpr std::int64_t size = N;
};

// The bytes of a static stepper's tensors by what they are for; `slots` are those of the rule, with averages and sums
// of gradients, and `step` is what a step computes and the backward pass reads.
struct static_memory {
  std::size_t variables = 0, gradients = 0, slots = 0, inputs = 0, step = 0;
};

// A name as a template argument: input<"x">().
template <std::size_t N>
struct name_literal {
  char characters[N] = {};
  consteval name_literal(const char (&from)[N]) {
    for (std::size_t i = 0; i < N; ++i) characters[i] = from[i];
  }
  constexpr operator std::string_view() const { return {characters, N - 1}; }
};

namespace detail {

// This is a frozen model in the form that the layout and the runner use.
template <class Frozen>
struct placed_graph {
  static constexpr const auto& graph = Frozen::graph;
  static constexpr const auto& program = Frozen::program;

  static constexpr std::string_view name_at(int offset) {
    return offset < 0 ? std::string_view() : std::string_view(Frozen::names + offset);
  }
  static constexpr std::string_view name_of(int id) { return name_at(graph.nodes[id].name); }
  // The same name, apart from the graph: a program that keeps the name then does not keep the graph, whose cards refer
  // to every function that builds and differentiates.
  template <int Id>
  static constexpr auto name_alone = [] {
    constexpr std::string_view name = name_of(Id);
    std::array<char, name.size() + 1> alone{};
    std::copy(name.begin(), name.end(), alone.begin());
    return alone;
  }();
  static constexpr int input(int id, int i) { return graph.edges[graph.nodes[id].first + i]; }
  static constexpr std::int64_t count(int id, std::int64_t batch_size) {
    return resolve(gradus::count(graph.nodes[id].dims), batch_size);
  }
  static constexpr variable_attr variable_attributes(int id) {
    return from_words<variable_attr>(graph.ints + graph.nodes[id].attr);
  }
  static constexpr int find_placeholder(std::string_view name) {
    for (int i = 0; i < graph.size.nodes; ++i)
      if (graph.nodes[i].op == &placeholder_card && name_of(i) == name) return i;
    return -1;
  }
  // Returns the number of the variable in the program, or -1.
  static constexpr int find_variable(std::string_view name) {
    for (int k = 0; k < program.size.variables; ++k)
      if (name_of(program.variables[k]) == name) return k;
    return -1;
  }
  static constexpr int find_output(int kind, std::string_view name) {
    const int i = output_number(kind, name);
    return i < 0 ? -1 : graph.outputs[i].node;
  }
  static constexpr int output_number(int kind, std::string_view name) {
    for (int i = 0; i < graph.size.outputs; ++i)
      if (graph.outputs[i].kind == kind && name_at(graph.outputs[i].name) == name) return i;
    return -1;
  }
  template <class T>
  static consteval bool trains() {
    for (int i = 0; i < graph.size.nodes; ++i)
      if (graph.nodes[i].op == &cards::apply && graph.nodes[i].type == dtype_of<T>) return true;
    return false;
  }
};

// The place of a placeholder's examples. Kernels read example k there; where an example would not begin on one of the
// device's cache lines, they read it from the placeholder's slot, into which it is copied.
struct static_input {
  std::size_t begin = 0, each = 0;  // each: bytes of an example; 0: the batch is not taken apart
  bool copied = false;
};

template <class Train, class Forward>
struct static_layout {
  std::size_t variable[room(Train::program.size.variables)];
  std::size_t slot[room(Train::program.size.slots)];
  std::size_t forward_variable[room(Forward::program.size.variables)];
  std::size_t forward_slot[room(Forward::program.size.slots)];
  static_input input[room(Train::program.size.slots)];  // by slot
  static_input forward_input[room(Forward::program.size.slots)];
  std::size_t prediction[room(Forward::graph.size.outputs)];  // for all examples, with one_by_one
  std::size_t trainable_bytes, gradients, mirrors, scratch, dense, dense_bytes, bytes;

  stored_layout stored;  // of the first mirrors, if they are not arrays of float32
  std::size_t stored_bytes;

  // Returns the offset of mirror k: of all variables, or of the variable at this offset. It is inlined, because a
  // program would otherwise keep the layout.
  [[gnu::always_inline]] constexpr std::size_t mirror(std::size_t k, std::size_t offset = 0) const {
    if (k < stored.count) return mirrors + stored.values_at(k, offset);
    return mirrors + stored_bytes + (k - stored.count) * trainable_bytes + offset;
  }
  constexpr static_memory parts(std::size_t mirror_count) const {
    const std::size_t inputs = mirror(mirror_count);
    return {gradients, mirrors - gradients, inputs - mirrors, scratch - inputs, bytes - scratch};
  }
  // Returns the offset of the tensor of node `id`.
  template <class G>
  constexpr std::size_t offset(int id) const {
    constexpr bool trains = std::is_same_v<G, Train>;
    const node_place l = G::program.places[id];
    if (l.region == node_place::slot) return trains ? slot[l.index] : forward_slot[l.index];
    if (l.region == node_place::variable) return trains ? variable[l.index] : forward_variable[l.index];
    return l.region == node_place::gradient ? gradients + variable[l.index] : 0;
  }
  // Returns the offset of the gradient of update `id`, or of the sum over all examples, which is beside the variable.
  template <class G>
  constexpr std::size_t gradient(int id, bool summed) const {
    return summed ? gradients + variable[G::program.places[id].index] : offset<G>(G::input(id, 1));
  }
  // Returns the offset of an input, of all examples.
  constexpr std::size_t input_begin(int id) const {
    const node_place l = Train::program.places[id];
    return input[l.index].each != 0 ? input[l.index].begin : offset<Train>(id);
  }
  template <class G>
  constexpr static_input input_at(int k) const {
    if constexpr (std::is_same_v<G, Train>)
      return input[k];
    else
      return forward_input[k];
  }
  // Returns by how much the tensor of node `id` moves from one example to the next.
  template <class G>
  constexpr std::size_t stride(int id) const {
    const node_place l = G::program.places[id];
    if (l.region != node_place::slot) return 0;
    const static_input i = input_at<G>(l.index);
    return i.copied ? 0 : i.each;
  }
};
// The settings of the memory, which policies choose.
struct static_choices {
  bool one_by_one = false, released = false;
  dtype slots = float32;  // the type that they are stored as
};

template <class Train, class Forward, class Device, class Update>
consteval auto lay_out(std::int64_t examples, static_choices use = {}) {
  const std::int64_t batch_size = use.one_by_one ? 1 : examples;  // of a call
  static_layout<Train, Forward> out{};
  std::size_t at = 0;
  const auto rounded = [](std::size_t bytes) {
    return (bytes + Device::alignment - 1) / Device::alignment * Device::alignment;
  };
  const auto take = [&](std::size_t bytes) {
    const std::size_t here = at;
    at = addressed(static_cast<std::int64_t>(at + rounded(bytes)), 1);
    return here;
  };
  const auto bytes_of_node = [&]<class G>(int id) {
    return addressed(G::count(id, batch_size), size_of(G::graph.nodes[id].type));
  };
  const auto take_examples = [&](static_input& input, std::size_t each) {
    input = {take(addressed(examples, each)), each, each % Device::alignment != 0 && examples != 1};
    return input.copied ? take(each) : input.begin;
  };
  for (int k = 0; k < Train::program.size.variables; ++k) {
    out.variable[k] = take(bytes_of_node.template operator()<Train>(Train::program.variables[k]));
    if (k < Train::program.trainable) out.trainable_bytes = at;
  }
  for (int k = 0; k < Forward::program.size.variables; ++k) {
    const int id = Forward::program.variables[k], same = Train::find_variable(Forward::name_of(id));
    out.forward_variable[k] = same >= 0 ? out.variable[same] : take(bytes_of_node.template operator()<Forward>(id));
  }
  out.gradients = take(use.released ? 0 : out.trainable_bytes);
  out.stored = {use.slots, Update::slot_count, out.trainable_bytes, static_cast<std::size_t>(Train::program.trainable)};
  out.stored_bytes = rounded(out.stored.count * out.stored.each);
  out.mirrors = take(0);
  at = out.mirrors + rounded(out.mirror(Update::mirror_count) - out.mirrors);

  // the memory whose content lasts between steps: inputs and constants
  for (int i = 0; i < Train::graph.size.nodes; ++i) {
    const node_place l = Train::program.places[i];
    if (l.region != node_place::slot || !Train::graph.nodes[i].op->is(trait::leaf)) continue;
    const std::size_t each = bytes_of_node.template operator()<Train>(i);
    if (use.one_by_one && Train::graph.nodes[i].op == &placeholder_card && is_batched(Train::graph.nodes[i].dims))
      out.slot[l.index] = take_examples(out.input[l.index], each);
    else
      out.slot[l.index] = take(each);
  }
  for (int i = 0; i < Forward::graph.size.nodes; ++i) {
    const node& n = Forward::graph.nodes[i];
    const node_place l = Forward::program.places[i];
    if (l.region != node_place::slot || !n.op->is(trait::leaf)) continue;
    const int twin = n.op == &placeholder_card ? Train::find_placeholder(Forward::name_of(i)) : -1;
    const bool shared = twin >= 0 && Train::graph.nodes[twin].type == n.type && Train::graph.nodes[twin].dims == n.dims;
    const std::size_t each = bytes_of_node.template operator()<Forward>(i);
    if (shared) {
      out.forward_slot[l.index] = out.template offset<Train>(twin);
      out.forward_input[l.index] = out.input[Train::program.places[twin].index];
    } else if (use.one_by_one && n.op == &placeholder_card && is_batched(n.dims)) {
      out.forward_slot[l.index] = take_examples(out.forward_input[l.index], each);
    } else {
      out.forward_slot[l.index] = take(each);
    }
  }
  std::size_t rows = 0;
  for (int i = 0; i < Train::graph.size.nodes; ++i)
    if (Train::graph.nodes[i].op == &cards::apply && Train::graph.nodes[i].inputs == 3) {
      rows = std::max(rows, static_cast<std::size_t>(Train::count(Train::input(i, 2), batch_size)));
      if (Update::stages != 0 && Update::may_decay_all_rows)  // LAMB's norms are of every row
        out.dense_bytes = std::max(out.dense_bytes, bytes_of_node.template operator()<Train>(i));
    }
  out.scratch = take(Device::row_scratch(rows) * sizeof(std::int32_t));
  out.dense = take(out.dense_bytes);

  constexpr auto added = outer_gradient_slots<Train>();
  const auto share = [&](const auto& program, auto& offsets, bool trains) {
    std::array<int, static_cast<std::size_t>(2 * room(std::remove_cvref_t<decltype(program)>::capacity))> order{};
    const auto bytes = [&](int k) {
      if (trains && use.one_by_one && added[static_cast<std::size_t>(k)]) return std::size_t{0};
      return rounded(addressed(resolve(program.slots[k], batch_size), 1));
    };
    return lay_out_slots(program.lives, program.size.slots, bytes, at, offsets, order);
  };
  const std::size_t training = share(Train::program, out.slot, true);
  at = share(Forward::program, out.forward_slot, false);
  for (int i = 0; use.one_by_one && i < Forward::graph.size.outputs; ++i)
    if (const output& o = Forward::graph.outputs[i];
        o.kind == output::prediction && is_batched(Forward::graph.nodes[o.node].dims))
      out.prediction[i] = take(bytes_of_node.template operator()<Forward>(o.node) * static_cast<std::size_t>(examples));
  out.bytes = std::max(training, at);
  return out;
}

// Calls f.operator()<I>() for every I below N; clang limits a fold to 256.
template <int N, class F>
constexpr void for_each_below(const F& f) {
  constexpr int most = 64;
  [&]<int... C>(std::integer_sequence<int, C...>) {
    [[maybe_unused]] const auto some = [&]<int First, int... I>(std::integer_sequence<int, I...>) {
      (f.template operator()<First + I>(), ...);
    };
    (some.template operator()<C * most>(std::make_integer_sequence<int, std::min(most, N - C * most)>{}), ...);
  }(std::make_integer_sequence<int, (N + most - 1) / most>{});
}

// Returns the nodes of one op.
template <class G, const card* Op>
consteval auto nodes_of() {
  constexpr auto count = [] {
    std::size_t n = 0;
    for (int i = 0; i < G::graph.size.nodes; ++i) n += G::graph.nodes[i].op == Op;
    return n;
  }();
  std::array<int, count> ids{};
  for (int i = 0, n = 0; i < G::graph.size.nodes; ++i)
    if (G::graph.nodes[i].op == Op) ids[static_cast<std::size_t>(n++)] = i;
  return ids;
}
// Returns the updates; in the order of their variables, in which a global norm adds, or in that of the graph.
template <class Train, bool ByVariable>
consteval auto updates_of() {
  auto ids = nodes_of<Train, &cards::apply>();
  if (ByVariable)
    std::sort(ids.begin(), ids.end(), [](int a, int b) {
      return Train::program.places[Train::input(a, 0)].index < Train::program.places[Train::input(b, 0)].index;
    });
  return ids;
}
// This is a training variable, for loops over all of them.
struct static_variable {
  std::string_view name;
  shape dims;
  std::size_t offset, bytes;
  dtype type;
  bool trainable, local;
};
template <class Train, class Layout>
consteval auto kept_variables(const Layout& layout) {
  return [&]<int... K>(std::integer_sequence<int, K...>) {
    const auto one = [&]<int V>() {
      constexpr int id = Train::program.variables[V];
      const node& n = Train::graph.nodes[id];
      const auto& name = Train::template name_alone<id>;
      return static_variable{{name.data(), name.size() - 1},
                             n.dims,
                             layout.variable[V],
                             static_cast<std::size_t>(count(n.dims)) * size_of(n.type),
                             n.type,
                             V < Train::program.trainable,
                             Train::variable_attributes(id).local != 0 || Train::name_of(id) == "global_step"};
    };
    return std::array<static_variable, sizeof...(K)>{one.template operator()<K>()...};
  }(std::make_integer_sequence<int, Train::program.size.variables>{});
}

// Returns the index of the trainable variable that begins at the offset.
template <class Variables>
consteval std::size_t variable_at(const Variables& variables, std::size_t offset) {
  std::size_t i = 0;
  while (!variables[i].trainable || variables[i].offset != offset) ++i;
  return i;
}

// The options that the model is compiled for.
template <mode M, class... Policies>
inline constexpr build_options static_options{
    .what = M,
    .gate = policy_of<kind::gate, gate_op, Policies...>::value,
    .needs_norm = update_among<Policies...>::needs_norm && !is_one_by_one<Policies...>,  // there it is of the sums
    .reuse = true,
    .compute = policy_of<kind::precision, full_precision, Policies...>::compute,
    .scales_loss = update_among<Policies...>::scales_loss,
    .recompute = policy_of<kind::recomputation, recompute_nothing, Policies...>::segments,
    .release = is_one_by_one<Policies...> || releases<Policies...>,
    .one_by_one = is_one_by_one<Policies...> &&
                  (M == mode::train || policy_of<kind::memory, static_batch<1>, Policies...>::size != 1),
    .rewrite = rewriting_among<Policies...>()};

// This is the device with the chosen arithmetic.
template <class Device, class Arithmetic>
struct device_with {
  using type = typename Device::template with<Arithmetic>;
};
template <class Device>
struct device_with<Device, void> {
  using type = Device;
};
template <class Device, class... Policies>
using device_among = typename device_with<Device, policy_of<kind::arithmetic, void, Policies...>>::type;

// These make checkpoint_name without a heap.
template <class Update, class Variables>
consteval std::size_t longest_mirror_name(const Variables& variables) {
  std::size_t n = 0;
  for (const auto& v : variables) n = std::max(n, v.name.size());
  return n + Update::longest_mirror_name + 28;  // "/", "_", digits, "/scale"
}
template <std::size_t Capacity>
class mirror_name {
public:
  mirror_name(std::string_view variable, const mirror& m, std::string_view part = {}) {
    put(variable), put("/"), put(m.optimizer);
    char digits[20];
    std::size_t n = 0;
    for (std::size_t x = m.number; x != 0; x /= 10) digits[n++] = static_cast<char>('0' + x % 10);
    if (n != 0) put("_");
    while (n != 0) characters_[size_++] = digits[--n];
    put(part);
  }
  operator std::string_view() const { return {characters_, size_}; }

private:
  char characters_[Capacity];
  std::size_t size_ = 0;
  void put(std::string_view s) {
    for (char c : s) characters_[size_++] = c;
  }
};

}  // namespace detail

}  // namespace gradus
