// The gradients of a training step, looked at as a whole: their squares, and the first number that is not finite.
#pragma once
#include <string_view>

#include "../ops/state.hpp"
#include "../update/not_finite.hpp"
#include "apply.hpp"
#include "machine.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

double read_number(const tensor_view& v);
tensor_view loss_of(step_machine& train);

// The sum of squares over the operands of a global_norm node; -1: over all gradients that updates use, in the same
// order.
template <class Device>
double squares_of_gradients(step_machine& train, int id = -1) {
  const graph_view& v = train.what().graph.view;
  double total = 0;
  const auto add = [&](int grad) {
    const node& n = v.nodes[grad];
    const auto many = static_cast<std::size_t>(gradus::count(resolve(n.dims, train.batch_size())));
    const std::byte* p = train.address(grad);
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

// Raises the error of not_finite::raise: the loss, and the first gradient that is infinite or NaN.
[[noreturn]] void refuse_gradients(step_machine& train, std::int64_t global_step);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "step_gradients.ipp"
#endif
