// This header examines the gradients of a training step as a whole: when each is final, their squares, and the first
// number that is not finite.
#pragma once
#include "../base/build.hpp"

#include <string_view>
#include <vector>

#include "../ops/state.hpp"
#include "../update/not_finite.hpp"
#include "apply.hpp"
#include "machine.hpp"
#include "named_gradient.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

double read_number(const tensor_view& v);
// Writes the result of a call that the session runs.
void write_number(const bound_call& c, dtype type, double x);
tensor_view loss_of(step_machine& train);

// Rows that are used as a gradient in place of the values of node `gradient` and its row numbers.
struct given_rows {
  int gradient = -1;
  indexed_slices all;
};
inline const given_rows* find_given(const std::vector<given_rows>& given, int gradient) {
  for (const given_rows& g : given)
    if (g.gradient == gradient) return &g;
  return nullptr;
}
void give(std::vector<given_rows>& given, const given_rows& rows);
// Returns the gradient of an update of rows.
inline indexed_slices rows_of(step_machine& train, const std::vector<given_rows>& given, const node& apply) {
  const int* const operand = train.what().graph.view.edges + apply.first;
  if (const given_rows* const g = find_given(given, operand[1])) return g->all;
  const const_tensor_view rows = train.view(operand[2]), values = train.view(operand[1]);
  return {const_tensor_view(rows.type, rows.dims, train.source(operand[2])), values};
}

// Returns the sum of squares over the operands of a global_norm node; if id is -1, over all gradients that updates use,
// in the same order.
template <class Device>
double squares_of_gradients(step_machine& train, const std::vector<given_rows>& given, int id = -1) {
  const graph_view& v = train.what().graph.view;
  double total = 0;
  const auto add = [&](int grad) {
    const node& n = v.nodes[grad];
    const given_rows* const rows = find_given(given, grad);
    const auto many = rows != nullptr ? rows->all.values.size()
                                      : static_cast<std::size_t>(gradus::count(resolve(n.dims, train.batch_size())));
    const std::byte* p = rows != nullptr ? rows->all.values.data : train.address(grad);
    total += n.type == float64 ? squares_of<Device>(reinterpret_cast<const double*>(p), many)
                               : squares_of<Device>(reinterpret_cast<const float*>(p), many);
  };
  if (id >= 0) {
    for (int e = v.nodes[id].first, end = e + v.nodes[id].inputs; e < end; ++e) add(v.edges[e]);
  } else {
    for (int i = 0; i < v.size; ++i)
      if (v.nodes[i].op == &cards::apply) add(v.edges[v.nodes[i].first + 1]);
  }
  return total;
}

// When a gradient is final: no call of the step after `after` changes it, and its update need not wait for another op.
struct final_gradient {
  int after;   // number of a call; -1: it is final before the first
  int update;  // the node that uses it
};
// Returns one for every update, in the order in which they become final. Gates are respected: with gate_op a gradient
// waits for the others of its op, with gate_graph for all. The global norm is not waited for, since the receiver of
// gradients measures them itself.
std::vector<final_gradient> final_gradients(const runnable& r);

// Raises the error of not_finite::raise, which names the loss, and the first gradient that is infinite or NaN.
[[noreturn]] void refuse_gradients(step_machine& train, std::int64_t global_step);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "step_gradients.ipp"
#endif
