// This header fills a static stepper's memory before the first step: constants, and variables by their initializers.
#pragma once
#include "../base/build.hpp"

#include <algorithm>

#include "static_layout.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

template <class G, int Id>
consteval auto tensor_values() {
  constexpr node n = G::graph.nodes[Id];
  std::array<element_t<n.type>, std::size_t{n.attrs / 2}> values{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const int* words = G::graph.ints + n.attr + 2 * i;
    values[i] = element_from<element_t<n.type>>(std::bit_cast<double>(std::array<int, 2>{words[0], words[1]}));
  }
  return values;
}
template <class G, const auto& Layout, std::int64_t CallSize>
[[gnu::always_inline]] inline void fill_constants(std::byte* memory) {
  static constexpr auto ids = nodes_of<G, &constant_card>();
  for_each_below<ids.size()>([&]<int I> {
    constexpr auto values = tensor_values<G, ids[I]>();
    auto* const to =
        reinterpret_cast<element_t<G::graph.nodes[ids[I]].type>*>(memory + Layout.template offset<G>(ids[I]));
    if constexpr (values.size() == 1)
      std::fill_n(to, G::count(ids[I], CallSize), values[0]);
    else
      std::copy(values.begin(), values.end(), to);
  });
}

// Starts the variables of G, drawn from (seed, name); for a prediction's graph those that training does not have.
template <class G, class Train, class Device, const auto& Layout>
[[gnu::always_inline]] inline void start_variables(std::byte* memory, std::uint64_t seed) {
  for_each_below<G::program.size.variables>([&]<int V>() __attribute__((always_inline)) {
    constexpr int id = G::program.variables[V];
    if constexpr (std::is_same_v<G, Train> || Train::find_variable(G::name_of(id)) < 0) {
      constexpr auto a = G::variable_attributes(id);
      static_assert(std::is_same_v<G, Train> || a.local != 0,
                    "gradus: a variable exists in mode predict but not in training, so nothing can train it.");
      constexpr node n = G::graph.nodes[id];
      constexpr initializer init{a.kind, a.a, a.b, a.fan, a.distribution};
      constexpr std::uint64_t stream = stream_of(G::name_of(id));
      constexpr auto from = Device::template drawing_of<n.type>(init, n.dims);
      Device::template start<n.type, a.kind, a.distribution>(init, from, n.dims, seed, stream,
                                                             memory + Layout.template offset<G>(id));
    }
  });
}

// Gives the model's own count of steps, the variable "global_step", its value, since checkpoints hold it once, as the
// stepper's.
template <class Train, const auto& Layout>
[[gnu::always_inline]] inline void count_steps([[maybe_unused]] std::byte* memory,
                                               [[maybe_unused]] std::int64_t global_step) {
  if constexpr (constexpr int v = Train::find_variable("global_step"); v >= Train::program.trainable) {
    constexpr int id = Train::program.variables[v];
    constexpr node n = Train::graph.nodes[id];
    using T = element_t<n.type>;
    constexpr bool counts = n.dims.rank == 0 && Train::variable_attributes(id).local == 0;
    if constexpr (counts && (is_float(n.type) || n.type == int32 || n.type == int64))
      *reinterpret_cast<T*>(memory + Layout.variable[v]) = static_cast<T>(global_step);
  }
}

// Returns the bytes of the variables that are not local and of float32; 0 if a trainable one is of another type, or if
// one that is not trained is a floating-point number of another: a model without it would be half a model.
template <class Variables>
consteval std::size_t float_bytes(const Variables& variables) {
  std::size_t n = 0;
  for (const auto& v : variables) {
    const bool is_number = is_float(v.type) || is_16_bit_float(v.type);
    if (v.type != float32 && (v.trainable || (is_number && !v.local))) return 0;
    if (!v.local && v.type == float32) n += v.bytes;
  }
  return n;
}

[[noreturn, gnu::cold, gnu::noinline]] inline void variables_not_ready() {
  raise(status::failed_precondition, "the variables have no values; call initialize or restore a checkpoint first");
}

}  // namespace gradus::inline GRADUS_BUILD::detail
