// These ops change variables, or are run by the session itself: updates, the global norm, the loss scale.
//
// Reads and writes happen in the order of the program: a write waits for the reads that were made before it, and a read
// that is made after a write waits for it (pass/gate.hpp adds the edges). So results never depend on timing.
#pragma once
#include "elementwise.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
GRADUS_CARD_FUNCTION void infer_write(inference& r) {
  r.type = r.in_type(0), r.dims = r.in(0);
  if (r.g.nodes[r.operands[0].id].op != &variable_card) return r.refuse("operand 0 must be a variable");
  if (r.in_type(1) != r.type) return r.refuse("the value must be ", r.type, ", got ", r.in_type(1));
  if (!(r.in(1) == r.dims)) r.refuse("the value must be ", r.dims, ", got ", r.in(1));
}
// A sum is made in the variable's dtype, so that this is one to compute in.
GRADUS_CARD_FUNCTION void infer_sum_into(inference& r) {
  infer_write(r);
  refuse_no_numbers(r);
}
GRADUS_CARD_FUNCTION void infer_apply(inference& r) {
  if (r.count == 2) return infer_write(r);
  r.type = r.in_type(0), r.dims = r.in(0);  // variable, values [n, ...], indices [n]
}
GRADUS_CARD_FUNCTION void infer_global_norm(inference& r) {
  r.type = r.count == 0 ? float32 : r.in_type(0);
  for (int i = 1; i < r.count; ++i)  // squares are summed in double
    if (r.in_type(i) == float64) r.type = float64;
}
struct loss_scale_attr {
  int type;
};
GRADUS_CARD_FUNCTION void infer_loss_scale(inference& r) {
  r.type = static_cast<dtype>(r.attributes<loss_scale_attr>().type);
}
GRADUS_CARD_FUNCTION void lower_write(lowering& l) { l.rows = count(l.out()); }
}  // namespace detail

namespace cards {
inline constexpr card assign{"Assign",    2,       trait::keeps | trait::writes | trait::blocks,
                             infer_write, nullptr, lower_write},
    assign_add{"AssignAdd", 2, trait::keeps | trait::writes | trait::blocks, infer_sum_into, nullptr, lower_write},
    assign_sub{"AssignSub", 2, trait::keeps | trait::writes | trait::blocks, infer_sum_into, nullptr, lower_write};
// variable, gradient; or variable, values, indices
inline constexpr card apply{"Apply", -1, trait::keeps | trait::writes | trait::session | trait::blocks, infer_apply},
    global_norm{"GlobalNorm", -1, trait::session | trait::blocks, infer_global_norm};
// The factor of the loss for this step (update/loss_scale.hpp) is a scalar of the loss's dtype.
inline constexpr card loss_scale{"LossScale", 0, trait::session | trait::blocks, infer_loss_scale};
}  // namespace cards

// Returns the changed variable; use the result to read the new value.
constexpr value assign(value variable, value v) { return variable.g->add(cards::assign, {variable, v}); }
// Adds v, which has the variable's shape; returns the changed variable.
constexpr value assign_add(value variable, value v) { return variable.g->add(cards::assign_add, {variable, v}); }
// Returns a variable whose first value is computed: from a placeholder, from other variables, from constants. Its shape
// and dtype are the value's; options.init is ignored. As tf.Variable(initial_value). Graphs of a session may have such
// variables, models may not.
constexpr value variable_from(std::string_view name, value initial, variable_options o = {}) {
  graph& g = *initial.g;
  if (is_batched(initial.dims())) g.refuse("variable \"", name, "\" cannot start from a batch: ", initial.dims());
  o.init = {.kind = initializer::from_value}, o.type = initial.type();
  const value v = g.variable(name, initial.dims(), o);
  g.add(cards::assign, {v, initial});  // this must be the next node, where detail::first_assign looks for it
  return v;
}
namespace detail {
// Returns the node that gives variable `v` its first value, or -1 if an initializer does.
constexpr int first_assign(const graph& g, int v) {
  const int at = v + 1;
  if (at >= g.nodes.count || g.nodes.first[at].op != &cards::assign) return -1;
  const node& n = g.nodes.first[v];
  const auto a = from_words<variable_attr>(g.ints.first + n.attr);
  return a.kind == initializer::from_value && g.edges.first[g.nodes.first[at].first] == v ? at : -1;
}
}  // namespace detail
// Subtracts v, which has the variable's shape; returns the changed variable.
constexpr value assign_sub(value variable, value v) { return variable.g->add(cards::assign_sub, {variable, v}); }

}  // namespace gradus
