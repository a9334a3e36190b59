// In a batch that goes through a model one example at a time (one_by_one), the gradient of a dense layer's kernel is an
// outer product of two rows. It is added to the sum of the examples before it as it is computed, so that it needs no
// memory of its own.
#pragma once
#include "../base/build.hpp"

#include <array>

#include "../ops/matmul.hpp"
#include "freeze.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Returns whether node `id` of a training graph of one example, laid out as G, is such a product, and nothing but an
// update reads it.
template <class G>
consteval bool is_outer_gradient(int id) {
  const node& n = G::graph.nodes[id];
  if (n.op != &cards::matmul || n.dims.rank != 2 || (n.type != float32 && n.type != float64)) return false;
  const shape& a = G::graph.nodes[G::input(id, 0)].dims;
  const bool turned = from_words<matmul_attr>(G::graph.ints + n.attr).transpose_a != 0;
  if (resolve(a.dims[turned ? 0 : 1], 1) != 1) return false;
  int readers = 0;
  bool updates = false;
  for (int i = 0; i < G::graph.size.nodes; ++i) {
    const node& r = G::graph.nodes[i];
    for (int e = r.first; e < r.first + r.inputs; ++e)
      if (G::graph.edges[e] == id) ++readers, updates = r.op == &cards::apply && r.inputs == 2;
  }
  for (int i = 0; i < G::graph.size.outputs; ++i)
    if (G::graph.outputs[i].node == id) return false;
  return readers == 1 && updates;
}
// Returns the same for the slot of each tensor.
template <class G>
consteval auto outer_gradient_slots() {
  std::array<bool, static_cast<std::size_t>(room(G::program.size.slots))> all{};
  for (int i = 0; i < G::graph.size.nodes; ++i)
    if (const node_place p = G::program.places[i]; p.region == node_place::slot && is_outer_gradient<G>(i))
      all[static_cast<std::size_t>(p.index)] = true;
  return all;
}
// Returns the variable's update that reads it.
template <class G>
consteval int update_of(int id) {
  for (int i = 0; i < G::graph.size.nodes; ++i)
    if (G::graph.nodes[i].op == &cards::apply && G::input(i, 1) == id) return i;
  return -1;
}

}  // namespace gradus::detail
