// Where everything of a static_stepper lies: computed by the compiler, offsets from one first byte.
//
//   variables (trainable ones first) | gradients | mirrors ... | inputs and constants | scratch | a row
//   gradient as a dense one | a step's or a prediction's
//
// Inputs of equal name, type and shape are one memory for training and prediction. What a step computes and what a
// prediction computes share theirs: only one of the two runs.
#pragma once
#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>

#include "../update/composed.hpp"
#include "freeze.hpp"
#include "variables.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace kind {
struct memory {};  // where a run's tensors live: static_batch<N>
}  // namespace kind

// Every step has N examples, and its tensors lie inside the object that runs it.
template <std::int64_t N>
struct static_batch {
  static_assert(N >= 1, "gradus: static_batch<N> needs at least one example.");
  using policy_for = kind::memory;
  static constexpr std::int64_t size = N;
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

// A frozen model as the layout and the runner read it.
template <class Frozen>
struct placed_graph {
  static constexpr const auto& graph = Frozen::graph;
  static constexpr const auto& program = Frozen::program;

  static constexpr std::string_view name_at(int offset) {
    return offset < 0 ? std::string_view() : std::string_view(Frozen::names + offset);
  }
  static constexpr std::string_view name_of(int id) { return name_at(graph.nodes[id].name); }
  // The same, apart from the graph: a program that keeps the name then does not keep the graph, whose cards lead to
  // every rule of building and differentiating.
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
  // The number of the variable in the program, or -1.
  static constexpr int find_variable(std::string_view name) {
    for (int k = 0; k < program.size.variables; ++k)
      if (name_of(program.variables[k]) == name) return k;
    return -1;
  }
  static constexpr int find_output(int kind, std::string_view name) {
    for (int i = 0; i < graph.size.outputs; ++i)
      if (graph.outputs[i].kind == kind && name_at(graph.outputs[i].name) == name) return graph.outputs[i].node;
    return -1;
  }
  template <class T>
  static consteval bool trains() {
    for (int i = 0; i < graph.size.nodes; ++i)
      if (graph.nodes[i].op == &cards::apply && graph.nodes[i].type == dtype_of<T>) return true;
    return false;
  }
};

template <class Train, class Forward>
struct static_layout {
  std::size_t variable[room(Train::program.size.variables)];
  std::size_t slot[room(Train::program.size.slots)];
  std::size_t forward_variable[room(Forward::program.size.variables)];
  std::size_t forward_slot[room(Forward::program.size.slots)];
  std::size_t trainable_bytes, gradients, mirrors, scratch, dense, dense_bytes, bytes;

  constexpr std::size_t mirror(std::size_t k) const { return mirrors + k * trainable_bytes; }
  // Of the tensor of node `id`.
  template <class G>
  constexpr std::size_t offset(int id) const {
    constexpr bool trains = std::is_same_v<G, Train>;
    const node_place l = G::program.places[id];
    if (l.region == node_place::slot) return trains ? slot[l.index] : forward_slot[l.index];
    if (l.region == node_place::variable) return trains ? variable[l.index] : forward_variable[l.index];
    return l.region == node_place::gradient ? gradients + variable[l.index] : 0;
  }
};

template <class Train, class Forward, class Device, class Update>
consteval auto lay_out(std::int64_t batch_size) {
  static_layout<Train, Forward> out{};
  std::size_t at = 0;
  const auto rounded = [](std::size_t bytes) {
    return (bytes + Device::alignment - 1) / Device::alignment * Device::alignment;
  };
  const auto take = [&](std::size_t bytes) {
    const std::size_t here = at;
    at += rounded(bytes);
    return here;
  };
  const auto bytes_of_node = [&]<class G>(int id) {
    return static_cast<std::size_t>(G::count(id, batch_size)) * size_of(G::graph.nodes[id].type);
  };
  for (int k = 0; k < Train::program.size.variables; ++k) {
    out.variable[k] = take(bytes_of_node.template operator()<Train>(Train::program.variables[k]));
    if (k < Train::program.trainable) out.trainable_bytes = at;
  }
  for (int k = 0; k < Forward::program.size.variables; ++k) {
    const int id = Forward::program.variables[k], same = Train::find_variable(Forward::name_of(id));
    out.forward_variable[k] = same >= 0 ? out.variable[same] : take(bytes_of_node.template operator()<Forward>(id));
  }
  out.gradients = take(out.trainable_bytes);
  out.mirrors = take(out.trainable_bytes * Update::mirror_count);

  // what lasts between steps: inputs and constants
  for (int i = 0; i < Train::graph.size.nodes; ++i) {
    const node_place l = Train::program.places[i];
    if (l.region != node_place::slot || !Train::graph.nodes[i].op->is(trait::leaf)) continue;
    out.slot[l.index] = take(bytes_of_node.template operator()<Train>(i));
  }
  for (int i = 0; i < Forward::graph.size.nodes; ++i) {
    const node& n = Forward::graph.nodes[i];
    const node_place l = Forward::program.places[i];
    if (l.region != node_place::slot || !n.op->is(trait::leaf)) continue;
    const int twin = n.op == &placeholder_card ? Train::find_placeholder(Forward::name_of(i)) : -1;
    const bool shared = twin >= 0 && Train::graph.nodes[twin].type == n.type && Train::graph.nodes[twin].dims == n.dims;
    out.forward_slot[l.index] =
        shared ? out.template offset<Train>(twin) : take(bytes_of_node.template operator()<Forward>(i));
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

  const auto share = [&](const auto& program, auto& offsets) {
    std::array<int, static_cast<std::size_t>(2 * room(std::remove_cvref_t<decltype(program)>::capacity))> order{};
    return lay_out_slots(
        program.lives, program.size.slots,
        [&](int k) { return rounded(static_cast<std::size_t>(resolve(program.slots[k], batch_size))); }, at, offsets,
        order);
  };
  out.bytes = std::max(share(Train::program, out.slot), share(Forward::program, out.forward_slot));
  return out;
}

// f.operator()<I>() for every I below N; clang ends a fold at 256.
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

// The nodes of one op.
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
// Where the operands of a node lie, and how many elements each has.
struct static_operand {
  std::size_t offset, count;
};
template <class G, int Id, class Layout>
consteval auto operands_of(const Layout& layout, std::int64_t batch_size) {
  std::array<static_operand, static_cast<std::size_t>(G::graph.nodes[Id].inputs)> all{};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const int id = G::input(Id, static_cast<int>(i));
    all[i] = {layout.template offset<G>(id), static_cast<std::size_t>(G::count(id, batch_size))};
  }
  return all;
}

// A training variable, for what walks over all of them.
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

// What the model is compiled for.
template <mode M, class... Policies>
inline constexpr build_options static_options{M,
                                              policy_of<kind::gate, gate_op, Policies...>::value,
                                              update_among<Policies...>::needs_norm,
                                              true,
                                              policy_of<kind::precision, full_precision, Policies...>::compute,
                                              update_among<Policies...>::scales_loss,
                                              policy_of<kind::recomputation, recompute_nothing, Policies...>::segments};

// The device with the arithmetic asked for.
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

// checkpoint_name without a heap.
template <class Update, class Variables>
consteval std::size_t longest_mirror_name(const Variables& variables) {
  std::size_t n = 0;
  for (const auto& v : variables) n = std::max(n, v.name.size());
  return n + Update::longest_mirror_name + 22;  // "/", "_", digits
}
template <std::size_t Capacity>
class mirror_name {
public:
  mirror_name(std::string_view variable, const mirror& m) {
    put(variable), put("/"), put(m.optimizer);
    if (m.number == 0) return;
    put("_");
    char digits[20];
    std::size_t n = 0;
    for (std::size_t x = m.number; x != 0; x /= 10) digits[n++] = static_cast<char>('0' + x % 10);
    while (n != 0) characters_[size_++] = digits[--n];
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
