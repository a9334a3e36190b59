// This header normalizes rows by one op forward, one backward for the rows, and one backward for gamma and beta.
#pragma once
#include "../base/build.hpp"

#include <array>
#include <bit>

#include "arrange.hpp"
#include "needed_kernels.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
struct layer_norm_attr {
  int scales, centers;         // whether gamma and beta are operands
  std::array<int, 2> epsilon;  // the two words of a double
};
// Operands: x [..., n], then gamma [n] and beta [n] where they are given.
GRADUS_CARD_FUNCTION void infer_layer_norm(inference& r) {
  infer_floats_apart(r);
  const auto a = r.attributes<layer_norm_attr>();
  r.dims = r.in(0);
  if (r.dims.rank == 0 || r.dims.back() <= 0) return r.refuse("needs a last axis of known extent");
  if (r.count != 1 + a.scales + a.centers) return r.refuse("takes ", 1 + a.scales + a.centers, " operands");
  for (int i = 1; i < r.count; ++i)
    if (!(r.in(i) == shape{r.dims.back()})) return r.refuse("gamma and beta must be [", r.dims.back(), "]");
}
// Operands: x, dy, then gamma if there is one.
GRADUS_CARD_FUNCTION void infer_layer_norm_grad(inference& r) {
  infer_floats_apart(r);
  r.dims = r.in(0);
  if (r.dims.rank == 0 || r.dims.back() <= 0 || !(r.in(1) == r.dims) ||
      (r.count > 2 && !(r.in(2) == shape{r.dims.back()})))
    refuse_misfit(r);
}
// The result is [2, n]: the gradients of gamma and of beta.
GRADUS_CARD_FUNCTION void infer_layer_norm_grads(inference& r) {
  infer_floats_apart(r);
  const shape& x = r.in(0);
  r.dims = x;
  if (x.rank == 0 || x.back() <= 0 || !(r.in(1) == x)) return refuse_misfit(r);
  r.dims = shape{2, x.back()};
}
// dims: {0 = rows, n, epsilon in two words, scales, centers}
GRADUS_CARD_FUNCTION void lower_layer_norm(lowering& l) {
  const auto a = l.attributes<layer_norm_attr>();
  const shape& s = l.in(0);
  l.rows = gradus::count(s) / s.back(), l.dims[1] = s.back();
  l.dims[2] = a.epsilon[0], l.dims[3] = a.epsilon[1], l.dims[4] = a.scales, l.dims[5] = a.centers;
}
GRADUS_CARD_FUNCTION void grad_layer_norm(backward&);
}  // namespace detail

namespace cards {
inline constexpr card layer_norm{
    "LayerNorm", -1, 0, detail::infer_layer_norm, detail::grad_layer_norm, detail::lower_layer_norm},
    layer_norm_grad{"LayerNormGrad", -1, 0, detail::infer_layer_norm_grad, nullptr, detail::lower_layer_norm},
    layer_norm_grads{"LayerNormParameterGrad", 2, 0, detail::infer_layer_norm_grads, nullptr, detail::lower_layer_norm};
}  // namespace cards

// Returns (x - mean) / sqrt(variance + epsilon) over the last axis, times gamma, plus beta, where these are given (Ba,
// Kiros, Hinton 2016, arXiv:1607.06450). The variance is divided by n. The dtype is float32 or float64. There is no
// second derivative.
GRADUS_RARE constexpr value normalize_rows(value x, double epsilon, const value* gamma = nullptr,
                                           const value* beta = nullptr) {
  detail::need_kernels<detail::layer_norm_kernels>(GRADUS_WHEN_CALLED(x));
  value operands[3] = {x};
  int count = 1;
  if (gamma != nullptr) operands[count++] = *gamma;
  if (beta != nullptr) operands[count++] = *beta;
  const auto words = std::bit_cast<std::array<int, 4>>(
      detail::layer_norm_attr{gamma != nullptr, beta != nullptr, std::bit_cast<std::array<int, 2>>(epsilon)});
  return x.g->add(cards::layer_norm, operands, count, words.data(), 4);
}

namespace detail {
GRADUS_CARD_FUNCTION void grad_layer_norm(backward& b) {
  const auto a = b.attributes<layer_norm_attr>();
  const auto words = std::bit_cast<std::array<int, 4>>(a);
  if (b.wants(0)) {
    const value operands[] = {b.in(0), b.dy, b.in(a.scales)};
    b.to(0, b.g.add(cards::layer_norm_grad, operands, 2 + a.scales, words.data(), 4));
  }
  const int center = 1 + a.scales;
  const bool scale_wanted = a.scales != 0 && b.wants(1), center_wanted = a.centers != 0 && b.wants(center);
  if (!scale_wanted && !center_wanted) return;
  const value operands[] = {b.in(0), b.dy};
  const value both = b.g.add(cards::layer_norm_grads, operands, 2, words.data(), 4);
  const int n = b.in(0).dims().back();
  if (scale_wanted) b.to(1, reshape(slice(both, {0, 0}, {1, -1}), {n}));
  if (center_wanted) b.to(center, reshape(slice(both, {1, 0}, {1, -1}), {n}));
}
}  // namespace detail

}  // namespace gradus
