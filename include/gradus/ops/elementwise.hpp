// An elementwise op has one formula for every element; its operands broadcast as in NumPy. The cards define shape and
// gradient; the formulas are in cpu/elementwise.hpp, one for each op.
#pragma once
#include "broadcast.hpp"

namespace gradus::inline GRADUS_BUILD {

// ---- shapes
namespace detail {
GRADUS_CARD_FUNCTION void infer_alike(inference& r) {
  r.type = r.in_type(0), r.dims = r.in(0);
  for (int i = 1; i < r.count; ++i) {
    if (r.in_type(i) != r.type)
      return r.refuse("operands must have one dtype, got ", r.in_type(0), " and ", r.in_type(i), "; use cast");
    shape both;
    if (!broadcast(r.dims, r.in(i), both)) return r.refuse("shapes ", r.dims, " and ", r.in(i), " do not broadcast");
    r.dims = both;
  }
}
GRADUS_CARD_FUNCTION void infer_numbers(inference& r) {
  infer_alike(r);
  refuse_no_numbers(r);
}
GRADUS_CARD_FUNCTION void infer_floats(inference& r) {
  infer_numbers(r);
  if (!is_float(r.type)) r.refuse("takes float32 or float64, got ", r.type, "; use cast");
}
// All operands have one float dtype; each op checks their extents itself.
GRADUS_CARD_FUNCTION void infer_floats_apart(inference& r) {
  r.type = r.in_type(0);
  for (int i = 0; i < r.count; ++i)
    if (r.in_type(i) != r.type || !is_float(r.type))
      return r.refuse("operands must all be float32 or all float64, got ", r.in_type(0), " and ", r.in_type(i),
                      "; use cast");
}
// The op of a gradient, which a graph from a file may hold with operands of any extents.
[[gnu::cold, gnu::noinline]] constexpr void refuse_misfit(inference& r) {
  r.refuse("the operands' extents are not those of a gradient");
}
GRADUS_CARD_FUNCTION void infer_comparison(inference& r) {
  infer_numbers(r);
  r.type = boolean;
}
// Bools have no order, and are equal or not.
GRADUS_CARD_FUNCTION void infer_equality(inference& r) {
  infer_alike(r);
  if (r.type != boolean) refuse_no_numbers(r);
  r.type = boolean;
}
GRADUS_CARD_FUNCTION void infer_logical(inference& r) {
  r.type = boolean, r.dims = r.in(0);
  for (int i = 0; i < r.count; ++i) {
    if (r.in_type(i) != boolean) return r.refuse("takes bool, got ", r.in_type(i));
    shape both;
    if (!broadcast(r.dims, r.in(i), both)) return r.refuse("shapes ", r.dims, " and ", r.in(i), " do not broadcast");
    r.dims = both;
  }
}
GRADUS_CARD_FUNCTION void infer_select(inference& r) {
  if (r.in_type(0) != boolean) return r.refuse("the condition must be bool, got ", r.in_type(0));
  if (r.in_type(1) != r.in_type(2))
    return r.refuse("both choices must have one dtype, got ", r.in_type(1), " and ", r.in_type(2));
  shape choices;
  r.type = r.in_type(1);
  if (!broadcast(r.in(1), r.in(2), choices) || !broadcast(choices, r.in(0), r.dims))
    r.refuse("condition ", r.in(0), " and choices ", r.in(1), ", ", r.in(2), " do not broadcast");
}
struct type_attr {
  int type;
};
GRADUS_CARD_FUNCTION void infer_cast(inference& r) {
  r.type = static_cast<dtype>(r.attributes<type_attr>().type), r.dims = r.in(0);
  if (is_for_files(r.type)) r.refuse(r.type, " stands in files only; cast to int32, uint8 or float32");
}
// The gradients of the operands are written once, below.
GRADUS_CARD_FUNCTION void grad_add(backward&);
GRADUS_CARD_FUNCTION void grad_sub(backward&);
GRADUS_CARD_FUNCTION void grad_mul(backward&);
GRADUS_CARD_FUNCTION void grad_div(backward&);
GRADUS_CARD_FUNCTION void grad_pow(backward&);
GRADUS_CARD_FUNCTION void grad_maximum(backward&);
GRADUS_CARD_FUNCTION void grad_minimum(backward&);
GRADUS_CARD_FUNCTION void grad_squared_difference(backward&);
GRADUS_CARD_FUNCTION void grad_neg(backward&);
GRADUS_CARD_FUNCTION void grad_exp(backward&);
GRADUS_CARD_FUNCTION void grad_log(backward&);
GRADUS_CARD_FUNCTION void grad_log1p(backward&);
GRADUS_CARD_FUNCTION void grad_sqrt(backward&);
GRADUS_CARD_FUNCTION void grad_rsqrt(backward&);
GRADUS_CARD_FUNCTION void grad_square(backward&);
GRADUS_CARD_FUNCTION void grad_abs(backward&);
GRADUS_CARD_FUNCTION void grad_tanh(backward&);
GRADUS_CARD_FUNCTION void grad_sigmoid(backward&);
GRADUS_CARD_FUNCTION void grad_relu(backward&);
GRADUS_CARD_FUNCTION void grad_elu(backward&);
GRADUS_CARD_FUNCTION void grad_gelu(backward&);
GRADUS_CARD_FUNCTION void grad_softplus(backward&);
GRADUS_CARD_FUNCTION void grad_erf(backward&);
GRADUS_CARD_FUNCTION void grad_tanh_grad(backward&);
GRADUS_CARD_FUNCTION void grad_sigmoid_grad(backward&);
GRADUS_CARD_FUNCTION void grad_relu_grad(backward&);
GRADUS_CARD_FUNCTION void grad_cast(backward&);
GRADUS_CARD_FUNCTION void grad_select(backward&);
}  // namespace detail

namespace detail {
// An expression that is seen as a matrix has two loops, rows and columns; an operand varies along each of them or not.
inline constexpr int along_rows = 1, along_columns = 2;

// Returns whether every row of such an expression is the same formula of its own elements: no operand varies along rows
// alone.
constexpr bool repeats_by_rows(const expression& x) {
  if (x.loops != 2 || x.extent[1] <= 0) return false;
  for (int k = 0; k < x.inputs; ++k)
    if (x.varies[k] == along_rows) return false;
  return true;
}
}  // namespace detail

namespace cards {
using namespace gradus::detail;
inline constexpr unsigned e = trait::elementwise, blocked = trait::elementwise | trait::blocks;
// two operands
inline constexpr card add{"Add", 2, e, infer_numbers, grad_add}, sub{"Sub", 2, e, infer_numbers, grad_sub},
    mul{"Mul", 2, e, infer_numbers, grad_mul}, div{"RealDiv", 2, e, infer_numbers, grad_div},
    pow{"Pow", 2, e, infer_floats, grad_pow}, maximum{"Maximum", 2, e, infer_numbers, grad_maximum},
    minimum{"Minimum", 2, e, infer_numbers, grad_minimum},
    squared_difference{"SquaredDifference", 2, e, infer_numbers, grad_squared_difference},
    greater{"Greater", 2, blocked, infer_comparison}, greater_equal{"GreaterEqual", 2, blocked, infer_comparison},
    less{"Less", 2, blocked, infer_comparison}, less_equal{"LessEqual", 2, blocked, infer_comparison},
    equal{"Equal", 2, blocked, infer_equality}, not_equal{"NotEqual", 2, blocked, infer_equality},
    logical_and{"LogicalAnd", 2, blocked, infer_logical}, logical_or{"LogicalOr", 2, blocked, infer_logical};
// one operand
inline constexpr card neg{"Neg", 1, e, infer_numbers, grad_neg}, exp{"Exp", 1, e, infer_floats, grad_exp},
    log{"Log", 1, e, infer_floats, grad_log}, log1p{"Log1p", 1, e, infer_floats, grad_log1p},
    sqrt{"Sqrt", 1, e, infer_floats, grad_sqrt}, rsqrt{"Rsqrt", 1, e, infer_floats, grad_rsqrt},
    square{"Square", 1, e, infer_numbers, grad_square}, abs{"Abs", 1, e, infer_numbers, grad_abs},
    sign{"Sign", 1, blocked, infer_numbers}, floor{"Floor", 1, blocked, infer_floats},
    tanh{"Tanh", 1, e, infer_floats, grad_tanh}, sigmoid{"Sigmoid", 1, e, infer_floats, grad_sigmoid},
    relu{"Relu", 1, e, infer_numbers, grad_relu}, elu{"Elu", 1, e, infer_floats, grad_elu},
    gelu{"Gelu", 1, e, infer_floats, grad_gelu}, softplus{"Softplus", 1, e, infer_floats, grad_softplus},
    erf{"Erf", 1, e, infer_floats, grad_erf}, logical_not{"LogicalNot", 1, blocked, infer_logical},
    cast{"Cast", 1, e, infer_cast, grad_cast};
// what pass/fuse.hpp makes of these ops: an expression of formulas
inline constexpr card fused{"Fused", -1, trait::expression};
// three operands
inline constexpr card select{"Select", 3, e, infer_select, grad_select};
// gradients that are cheaper or more exact as one formula; operands: dy and the op's result (for gelu and softplus its
// operand)
inline constexpr card tanh_grad{"TanhGrad", 2, e, infer_floats, grad_tanh_grad},
    sigmoid_grad{"SigmoidGrad", 2, e, infer_floats, grad_sigmoid_grad},
    relu_grad{"ReluGrad", 2, e, infer_numbers, grad_relu_grad}, elu_grad{"EluGrad", 2, e, infer_floats},
    gelu_grad{"GeluGrad", 2, e, infer_floats};
}  // namespace cards

// ---- what a user writes
//
// C++ leaves open which operand of an operator or of a call is evaluated first: g++ evaluates from the left at
// compile time and from the right in the program. So that both build one graph, a statement contains at most one
// operand that adds nodes; only chains and braces have an order. Names, random draws and variables depend on this order
// in a user's model too.
constexpr value add(value a, value b) { return a.g->add(cards::add, {a, b}); }
constexpr value subtract(value a, value b) { return a.g->add(cards::sub, {a, b}); }
constexpr value multiply(value a, value b) { return a.g->add(cards::mul, {a, b}); }
// Returns a / b. Two tensors of whole numbers are divided toward zero, and what is divided by 0 is 0; in TensorFlow's
// Python / of whole numbers is their true quotient: cast(a, float64) / cast(b, float64).
constexpr value divide(value a, value b) { return a.g->add(cards::div, {a, b}); }
constexpr value pow(value a, value b) { return a.g->add(cards::pow, {a, b}); }
constexpr value maximum(value a, value b) { return a.g->add(cards::maximum, {a, b}); }
constexpr value minimum(value a, value b) { return a.g->add(cards::minimum, {a, b}); }
constexpr value squared_difference(value a, value b) { return a.g->add(cards::squared_difference, {a, b}); }
constexpr value greater(value a, value b) { return a.g->add(cards::greater, {a, b}); }
constexpr value greater_equal(value a, value b) { return a.g->add(cards::greater_equal, {a, b}); }
constexpr value less(value a, value b) { return a.g->add(cards::less, {a, b}); }
constexpr value less_equal(value a, value b) { return a.g->add(cards::less_equal, {a, b}); }
constexpr value equal(value a, value b) { return a.g->add(cards::equal, {a, b}); }
constexpr value not_equal(value a, value b) { return a.g->add(cards::not_equal, {a, b}); }
// Returns x in another dtype: numbers become integers toward zero; bool is whether they are not 0. No gradient passes
// numbers of 16 bits: what would be trained through them is refused; reduce_precision rounds and has a gradient.
constexpr value cast(value x, dtype type) {
  if (x.type() == type) return x;
  if (type == boolean && is_16_bit_float(x.type())) x = cast(x, float32);
  if (type == boolean) return not_equal(x, x.g->constant(0, x.type()));
  return x.g->add_with(cards::cast, {x}, detail::type_attr{static_cast<int>(type)});
}
constexpr value logical_and(value a, value b) { return a.g->add(cards::logical_and, {a, b}); }
constexpr value logical_or(value a, value b) { return a.g->add(cards::logical_or, {a, b}); }
constexpr value logical_not(value x) { return x.g->add(cards::logical_not, {x}); }
constexpr value neg(value x) { return x.g->add(cards::neg, {x}); }
constexpr value exp(value x) { return x.g->add(cards::exp, {x}); }
constexpr value log(value x) { return x.g->add(cards::log, {x}); }
constexpr value log1p(value x) { return x.g->add(cards::log1p, {x}); }
constexpr value sqrt(value x) { return x.g->add(cards::sqrt, {x}); }
constexpr value rsqrt(value x) { return x.g->add(cards::rsqrt, {x}); }
constexpr value square(value x) { return x.g->add(cards::square, {x}); }
constexpr value abs(value x) { return x.g->add(cards::abs, {x}); }
constexpr value sign(value x) { return x.g->add(cards::sign, {x}); }
constexpr value floor(value x) { return x.g->add(cards::floor, {x}); }
constexpr value erf(value x) { return x.g->add(cards::erf, {x}); }
constexpr value tanh(value x) { return x.g->add(cards::tanh, {x}); }
constexpr value sigmoid(value x) { return x.g->add(cards::sigmoid, {x}); }
constexpr value relu(value x) { return x.g->add(cards::relu, {x}); }
// Returns x for x > 0, e^x - 1 below (Clevert, Unterthiner, Hochreiter 2016).
constexpr value elu(value x) { return x.g->add(cards::elu, {x}); }
// Returns the tanh form 0.5 x (1 + tanh(sqrt(2/pi)(x + 0.044715 x^3))), as GPT uses it (Hendrycks, Gimpel 2016).
constexpr value gelu(value x) { return x.g->add(cards::gelu, {x}); }
constexpr value softplus(value x) { return x.g->add(cards::softplus, {x}); }
// Returns a where the condition is not 0, b elsewhere; the three have one shape or broadcast to it.
constexpr value select(value condition, value a, value b) { return condition.g->add(cards::select, {condition, a, b}); }

// A number beside a tensor, which becomes a constant of the tensor's dtype.
class number_beside {
public:
  template <class N>
    requires std::is_convertible_v<N, double>
  constexpr number_beside(N n) : number_(static_cast<double>(n)) {
    if constexpr (std::is_integral_v<N>)
      if (sizeof(N) < 8 || std::is_signed_v<N> || n <= static_cast<N>(std::numeric_limits<std::int64_t>::max()))
        whole_ = static_cast<std::int64_t>(n), is_whole_ = true;
  }
  constexpr value as_constant(value beside) const {
    if (is_whole_) return beside.g->constant(whole_, beside.type());
    return beside.g->constant(number_, beside.type());
  }
  constexpr bool is_whole() const { return is_whole_; }  // of a whole number's type
  constexpr bool is_truth() const { return number_ == 0 || number_ == 1; }

private:
  double number_;
  std::int64_t whole_ = 0;
  bool is_whole_ = false;
};

namespace detail {
constexpr void check_quotient(value x, const number_beside& n) {
  if (!n.is_whole() && !is_float(x.type()) && !is_16_bit_float(x.type()))
    x.g->refuse("RealDiv: ", x.type(), " beside a number with a fraction would be divided as whole numbers; use ",
                "cast(x, float32) first, or a whole number");
}
// A bool is 0 or 1.
constexpr void check_truth(value x, bool is_truth) {
  if (x.type() == boolean && !is_truth) x.g->refuse("Equal: a bool is 0 or 1, and is compared with another number");
}
}  // namespace detail

constexpr value operator+(value a, value b) { return add(a, b); }
constexpr value operator-(value a, value b) { return subtract(a, b); }
constexpr value operator*(value a, value b) { return multiply(a, b); }
constexpr value operator/(value a, value b) { return divide(a, b); }
constexpr value operator-(value x) { return neg(x); }
// A number beside a tensor becomes a constant of the tensor's dtype. One that this type cannot hold is refused, and so
// is a quotient of whole numbers by a number with a fraction's type (pixels / 255.0): TensorFlow raises a TypeError
// there.
constexpr value operator+(value a, number_beside b) { return a + b.as_constant(a); }
constexpr value operator-(value a, number_beside b) { return a - b.as_constant(a); }
constexpr value operator*(value a, number_beside b) { return a * b.as_constant(a); }
constexpr value operator/(value a, number_beside b) {
  detail::check_quotient(a, b);
  return a / b.as_constant(a);
}
constexpr value operator+(number_beside a, value b) { return a.as_constant(b) + b; }
constexpr value operator-(number_beside a, value b) { return a.as_constant(b) - b; }
constexpr value operator*(number_beside a, value b) { return a.as_constant(b) * b; }
constexpr value operator/(number_beside a, value b) {
  detail::check_quotient(b, a);
  return a.as_constant(b) / b;
}
constexpr value add(value a, number_beside b) { return a + b; }
constexpr value add(number_beside a, value b) { return a + b; }
constexpr value subtract(value a, number_beside b) { return a - b; }
constexpr value subtract(number_beside a, value b) { return a - b; }
constexpr value multiply(value a, number_beside b) { return a * b; }
constexpr value multiply(number_beside a, value b) { return a * b; }
constexpr value divide(value a, number_beside b) { return a / b; }
constexpr value divide(number_beside a, value b) { return a / b; }
constexpr value squared_difference(value a, number_beside b) { return squared_difference(a, b.as_constant(a)); }
constexpr value greater(value a, number_beside b) { return greater(a, b.as_constant(a)); }
constexpr value greater_equal(value a, number_beside b) { return greater_equal(a, b.as_constant(a)); }
constexpr value less(value a, number_beside b) { return less(a, b.as_constant(a)); }
constexpr value less_equal(value a, number_beside b) { return less_equal(a, b.as_constant(a)); }
constexpr value equal(value a, number_beside b) {
  detail::check_truth(a, b.is_truth());
  return equal(a, b.as_constant(a));
}
constexpr value not_equal(value a, number_beside b) {
  detail::check_truth(a, b.is_truth());
  return not_equal(a, b.as_constant(a));
}
constexpr value maximum(value a, number_beside b) { return maximum(a, b.as_constant(a)); }
constexpr value minimum(value a, number_beside b) { return minimum(a, b.as_constant(a)); }
constexpr value pow(value a, number_beside b) { return pow(a, b.as_constant(a)); }
// Returns x where x > 0, alpha x elsewhere.
constexpr value leaky_relu(value x, double alpha = 0.2) {
  const value positive = greater(x, 0.0), leak = x * alpha;
  return select(positive, x, leak);
}

namespace detail {
constexpr void give(backward& b, int i, value v) { b.to(i, sum_to(v, b.in(i).dims())); }
GRADUS_CARD_FUNCTION void grad_add(backward& b) {
  if (b.wants(0)) give(b, 0, b.dy);
  if (b.wants(1)) give(b, 1, b.dy);
}
GRADUS_CARD_FUNCTION void grad_sub(backward& b) {
  if (b.wants(0)) give(b, 0, b.dy);
  if (b.wants(1)) give(b, 1, -b.dy);
}
GRADUS_CARD_FUNCTION void grad_mul(backward& b) {
  if (b.wants(0)) give(b, 0, b.dy * b.in(1));
  if (b.wants(1)) give(b, 1, b.dy * b.in(0));
}
GRADUS_CARD_FUNCTION void grad_div(backward& b) {
  if (b.wants(0)) give(b, 0, b.dy / b.in(1));
  if (b.wants(1)) give(b, 1, -(b.dy * b.out() / b.in(1)));
}
GRADUS_CARD_FUNCTION void grad_pow(backward& b) {
  const value x = b.in(0), y = b.in(1);
  if (b.wants(0)) {
    const value power = pow(x, y - 1.0);
    give(b, 0, b.dy * y * power);
  }
  if (b.wants(1)) {  // where x <= 0 the derivative in y is taken as 0, as TensorFlow does
    const value positive = greater(x, 0.0), one = x.g->constant(1, x.type());
    const value logarithm = log(select(positive, x, one));
    give(b, 1, b.dy * b.out() * logarithm);
  }
}
constexpr void give_where(backward& b, value first) {  // ties go to operand 0
  const value zero = b.g.constant(0, b.dy.type());
  if (b.wants(0)) give(b, 0, select(first, b.dy, zero));
  if (b.wants(1)) give(b, 1, select(first, zero, b.dy));
}
GRADUS_CARD_FUNCTION void grad_maximum(backward& b) { give_where(b, greater_equal(b.in(0), b.in(1))); }
GRADUS_CARD_FUNCTION void grad_minimum(backward& b) { give_where(b, less_equal(b.in(0), b.in(1))); }
GRADUS_CARD_FUNCTION void grad_squared_difference(backward& b) {
  const value d = b.dy * ((b.in(0) - b.in(1)) * 2.0);
  if (b.wants(0)) give(b, 0, d);
  if (b.wants(1)) give(b, 1, -d);
}
GRADUS_CARD_FUNCTION void grad_neg(backward& b) { b.to(0, -b.dy); }
GRADUS_CARD_FUNCTION void grad_exp(backward& b) { b.to(0, b.dy * b.out()); }
GRADUS_CARD_FUNCTION void grad_log(backward& b) { b.to(0, b.dy / b.in(0)); }
GRADUS_CARD_FUNCTION void grad_log1p(backward& b) { b.to(0, b.dy / (b.in(0) + 1.0)); }
GRADUS_CARD_FUNCTION void grad_sqrt(backward& b) { b.to(0, b.dy * 0.5 / b.out()); }
GRADUS_CARD_FUNCTION void grad_rsqrt(backward& b) {
  const value cube = b.out() * square(b.out());
  b.to(0, b.dy * -0.5 * cube);
}
GRADUS_CARD_FUNCTION void grad_square(backward& b) { b.to(0, b.dy * (b.in(0) * 2.0)); }
GRADUS_CARD_FUNCTION void grad_abs(backward& b) { b.to(0, b.dy * sign(b.in(0))); }
GRADUS_CARD_FUNCTION void grad_tanh(backward& b) { b.to(0, b.g.add(cards::tanh_grad, {b.dy, b.out()})); }
GRADUS_CARD_FUNCTION void grad_sigmoid(backward& b) { b.to(0, b.g.add(cards::sigmoid_grad, {b.dy, b.out()})); }
GRADUS_CARD_FUNCTION void grad_relu(backward& b) { b.to(0, b.g.add(cards::relu_grad, {b.dy, b.out()})); }
GRADUS_CARD_FUNCTION void grad_elu(backward& b) { b.to(0, b.g.add(cards::elu_grad, {b.dy, b.out()})); }
GRADUS_CARD_FUNCTION void grad_gelu(backward& b) { b.to(0, b.g.add(cards::gelu_grad, {b.dy, b.in(0)})); }
GRADUS_CARD_FUNCTION void grad_softplus(backward& b) { b.to(0, b.dy * sigmoid(b.in(0))); }
GRADUS_CARD_FUNCTION void grad_erf(backward& b) {  // 2/sqrt(pi) e^(-x^2)
  const value bell = exp(-square(b.in(0)));
  b.to(0, b.dy * 1.1283791670955126 * bell);
}
GRADUS_CARD_FUNCTION void grad_tanh_grad(backward& b) {  // z = dy (1 - y^2)
  if (b.wants(0)) b.to(0, b.g.add(cards::tanh_grad, {b.dy, b.in(1)}));
  if (b.wants(1)) b.to(1, b.dy * b.in(0) * b.in(1) * -2.0);
}
GRADUS_CARD_FUNCTION void grad_sigmoid_grad(backward& b) {  // z = dy y (1 - y)
  if (b.wants(0)) b.to(0, b.g.add(cards::sigmoid_grad, {b.dy, b.in(1)}));
  if (!b.wants(1)) return;
  const value slope = 1.0 - b.in(1) * 2.0;
  b.to(1, b.dy * b.in(0) * slope);
}
GRADUS_CARD_FUNCTION void grad_relu_grad(backward& b) {
  if (b.wants(0)) b.to(0, b.g.add(cards::relu_grad, {b.dy, b.in(1)}));
}
GRADUS_CARD_FUNCTION void grad_cast(backward& b) {
  if (is_float(b.in(0).type()) && is_float(b.dy.type())) b.to(0, cast(b.dy, b.in(0).type()));
}
GRADUS_CARD_FUNCTION void grad_select(backward& b) {
  const value zero = b.g.constant(0, b.dy.type());
  if (b.wants(1)) give(b, 1, select(b.in(0), b.dy, zero));
  if (b.wants(2)) give(b, 2, select(b.in(0), zero, b.dy));
}
}  // namespace detail

}  // namespace gradus
