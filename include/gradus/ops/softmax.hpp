// This header has softmax over the last axis, and the cross-entropies that take logits.
#pragma once
#include "reduce.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
GRADUS_CARD_FUNCTION void infer_rows(inference& r) {
  infer_floats_apart(r);
  r.dims = r.in(0);
  if (r.dims.rank == 0) return r.refuse("needs at least one axis");
  if (r.dims.back() == 0) return r.refuse("the last axis has no element, expected the classes there");
  for (int i = 1; i < r.count; ++i)
    if (!(r.in(i) == r.dims)) return r.refuse("operands must have one shape");
}
GRADUS_CARD_FUNCTION void infer_rows_to_scalars(inference& r) {
  infer_rows(r);
  if (r.dims.rank != 0) --r.dims.rank, r.dims.dims[r.dims.rank] = 0;
}
GRADUS_CARD_FUNCTION void infer_sparse_xent(inference& r) {
  r.type = r.in_type(0), r.dims = r.in(0);
  if (!is_float(r.type)) return r.refuse("logits must be float32 or float64, got ", r.type);
  if (r.in_type(1) != int32 && r.in_type(1) != int64)
    return r.refuse("labels must be int32 or int64, got ", r.in_type(1));
  if (r.dims.rank == 0 || r.dims.back() == 0) return r.refuse("logits need a class axis");
  shape rows = r.dims;
  --rows.rank, rows.dims[rows.rank] = 0;
  if (!(rows == r.in(1))) return r.refuse("labels must be ", rows, ", one class per row of logits");
  if (r.count == 3 && !(r.in(2) == rows)) return r.refuse("the upstream gradient must be ", rows);
  if (r.count == 2) r.dims = rows;
}
// dims: {0 = rows, classes}
GRADUS_CARD_FUNCTION void lower_rows(lowering& l) {
  const shape& s = l.in(0);
  l.dims[0] = 0, l.dims[1] = s.back();
  l.rows = count(s) / s.back();
}
GRADUS_CARD_FUNCTION void grad_softmax(backward&);
GRADUS_CARD_FUNCTION void grad_log_softmax(backward&);
GRADUS_CARD_FUNCTION void grad_softmax_xent(backward&);
GRADUS_CARD_FUNCTION void grad_sparse_xent(backward&);
GRADUS_CARD_FUNCTION void grad_softmax_grad(backward&);
}  // namespace detail

namespace cards {
inline constexpr card softmax{"Softmax", 1, 0, infer_rows, grad_softmax, lower_rows},
    log_softmax{"LogSoftmax", 1, 0, infer_rows, grad_log_softmax, lower_rows},
    softmax_grad{"SoftmaxGrad", 2, 0, infer_rows, grad_softmax_grad, lower_rows},
    log_softmax_grad{"LogSoftmaxGrad", 2, 0, infer_rows, nullptr, lower_rows},
    softmax_xent{"SoftmaxCrossEntropyWithLogits", 2, 0, infer_rows_to_scalars, grad_softmax_xent, lower_rows},
    sparse_xent{"SparseSoftmaxCrossEntropyWithLogits", 2, 0, infer_sparse_xent, grad_sparse_xent, lower_rows},
    sparse_xent_grad{"SparseSoftmaxCrossEntropyGrad", 3, 0, infer_sparse_xent, nullptr, lower_rows};
}  // namespace cards

// Returns e^x / sum e^x over the last axis; the largest is subtracted first.
constexpr value softmax(value x) { return x.g->add(cards::softmax, {x}); }
// Returns the logarithm of softmax, x - log sum e^x, without leaving the range of the numbers.
constexpr value log_softmax(value x) { return x.g->add(cards::log_softmax, {x}); }
namespace detail {
// Returns whether a variable is among the values that x is computed from.
constexpr bool comes_from_variables(value x) {
  const graph& g = *x.g;
  seq<char> is_seen;
  for (int i = 0; i <= x.id; ++i) is_seen.push(0);  // operands stand before their node
  seq<int> open;
  for (open.push(x.id); open.count > 0;) {
    const node& n = g.nodes[open[--open.count]];
    if (n.op == &variable_card) return true;
    for (int i = 0; i < n.inputs; ++i) {
      const int operand = g.edges[n.first + i];
      if (!is_seen[operand]) is_seen[operand] = 1, open.push(operand);
    }
  }
  return false;
}
// Refuses labels that a model computes beside logits that no variable has a part in: the two are swapped, and
// training would drive what the model computes towards infinity without an error. `order` says what comes first.
constexpr bool refuses_swapped(std::string_view loss, std::string_view order, value labels, value logits) {
  if (!labels || !logits || comes_from_variables(logits) || !comes_from_variables(labels)) return false;
  logits.g->refuse(loss, ": ", order, "; the labels here come from variables, and the others from none: swap them");
  return true;
}
inline constexpr std::string_view logits_first = "logits come first, then labels";
}  // namespace detail

// Returns, per row, -sum labels * log softmax(logits); both are [..., classes] and the result is [...]. The gradient is
// softmax - labels, also where labels do not sum to 1, and labels get none (TensorFlow's first version).
constexpr value softmax_cross_entropy_with_logits(value logits, value labels) {
  if (detail::refuses_swapped("softmax_cross_entropy_with_logits", detail::logits_first, labels, logits)) return logits;
  return logits.g->add(cards::softmax_xent, {logits, labels});
}
// Returns, per row, -log softmax(logits)[label]. A label outside [0, classes) is an error when the step runs.
constexpr value sparse_softmax_cross_entropy_with_logits(value logits, value labels) {
  return logits.g->add(cards::sparse_xent, {logits, labels});
}
// Does the same by a shorter name. The two values may come in either order, because their types tell them apart: labels
// are whole numbers, logits are not.
constexpr value sparse_softmax_cross_entropy(value logits, value labels) {
  const bool swapped = is_float(labels.type()) && !is_float(logits.type());
  return sparse_softmax_cross_entropy_with_logits(swapped ? labels : logits, swapped ? logits : labels);
}

namespace detail {
GRADUS_CARD_FUNCTION void grad_softmax(backward& b) { b.to(0, b.g.add(cards::softmax_grad, {b.dy, b.out()})); }
GRADUS_CARD_FUNCTION void grad_log_softmax(backward& b) { b.to(0, b.g.add(cards::log_softmax_grad, {b.dy, b.out()})); }
constexpr value column(value per_row) {
  shape s = per_row.dims();
  s.push(1);
  return reshape(per_row, s);
}
GRADUS_CARD_FUNCTION void grad_softmax_xent(backward& b) {
  if (!b.wants(0)) return;
  const value difference = softmax(b.in(0)) - b.in(1), dy = column(b.dy);
  b.to(0, difference * dy);
}
GRADUS_CARD_FUNCTION void grad_sparse_xent(backward& b) {
  if (b.wants(0)) b.to(0, b.g.add(cards::sparse_xent_grad, {b.in(0), b.in(1), b.dy}));
}
GRADUS_CARD_FUNCTION void grad_softmax_grad(backward& b) {  // z = y (dy - sum(dy y)), linear in dy
  const value dz = b.dy, y = b.in(1);
  if (b.wants(0)) b.to(0, b.g.add(cards::softmax_grad, {dz, y}));
  if (b.wants(1)) {
    const value dy = b.in(0), zy = dz * y;
    const value first = dz * (dy - column(reduce_sum(dy * y, {-1}))), second = dy * column(reduce_sum(zy, {-1}));
    b.to(1, first - second);
  }
}
}  // namespace detail

}  // namespace gradus
