// host_call turns a user's C++ function of spans into an op (tf.py_func), with a gradient if one is given.
//
//   void clip_tails(std::span<float> y, std::span<const float> x) { ... }          // the result first
//   template <> struct gradus::op_kernel<&gradus::host_op<&clip_tails>> : gradus::host_kernel<&clip_tails> {};
//   ...
//   value y = host_call<&clip_tails>({x});
//
// Every op, this library's own included, gets its kernel by such a specialization of op_kernel (cpu/host.hpp): one
// card, one kernel. A session that interprets its graph also takes the card as a policy: ops<&host_op<&clip_tails>>.
//
// The function must be pure: equal calls may become one, and unused calls are not made. Its errors are raised as the
// library's own are. It takes flat spans, row-major, which do not contain the extents.
#pragma once
#include "../base/build.hpp"

#include <span>

#include "elementwise.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
template <class Function>
struct host_signature;
template <class Result, class... Operands>
struct host_signature<void (*)(std::span<Result>, std::span<const Operands>...)> {
  static constexpr int operands = static_cast<int>(sizeof...(Operands));
  static constexpr dtype result = dtype_of<Result>;
  static constexpr std::array<dtype, sizeof...(Operands)> types{dtype_of<Operands>...};
  static_assert(computable<Result> && (computable<Operands> && ...),
                "gradus: a host function takes spans of float, double, int32_t, int64_t, uint8_t or bool.");
  static_assert(sizeof...(Operands) + 1 < max_extents, "gradus: a host function takes at most 14 operands.");
};
template <auto Function>
using host_signature_of = host_signature<decltype(Function)>;

template <auto Function>
constexpr void infer_host(inference& r) {
  using f = host_signature_of<Function>;
  r.type = f::result, r.dims = r.attributes<shape_attr>().get();
  for (int i = 0; i < r.count; ++i)
    if (const dtype t = f::types[static_cast<unsigned>(i)]; r.in_type(i) != t)
      return r.refuse("operand ", i, " of the host function is a span of ", t, ", got ", r.in_type(i));
}
// dims: {0 = elements of the result, elements of each operand}
GRADUS_CARD_FUNCTION void lower_host(lowering& l) {
  l.rows = count(l.out());
  for (int i = 0; i < l.n.inputs; ++i) l.dims[1 + i] = static_cast<int>(count(l.in(i)));
}
template <auto... Gradients>
constexpr void grad_host(backward&);
}  // namespace detail

// This is the card of a function. Gradients: one function per operand, or nullptr for an operand that gets none:
//   void df(std::span<T> dx, std::span<const T> dy, std::span<const ...> each operand)
template <auto Function, auto... Gradients>
inline constexpr card host_op{"HostCall",
                              detail::host_signature_of<Function>::operands,
                              sizeof...(Gradients) == 0 ? trait::blocks : 0u,
                              detail::infer_host<Function>,
                              detail::grad_host<Gradients...>,
                              detail::lower_host};

// Returns the result of the function; it has these extents (one of them may be batch), or those of the first operand.
template <auto Function, auto... Gradients>
constexpr value host_call(std::initializer_list<value> operands, const shape& dims) {
  return operands.begin()->g->add_with(host_op<Function, Gradients...>, operands, detail::to_attr(dims));
}
template <auto Function, auto... Gradients>
constexpr value host_call(std::initializer_list<value> operands) {
  return host_call<Function, Gradients...>(operands, operands.begin()->dims());
}

namespace detail {
template <auto Gradient>
constexpr void give_host(backward& b, int i) {
  if constexpr (!std::is_same_v<decltype(Gradient), std::nullptr_t>) {
    if (!b.wants(i)) return;
    seq<value> operands;
    operands.push(b.dy);
    for (int k = 0; k < b.operands(); ++k) operands.push(b.in(k));
    const auto words = to_words(to_attr(b.in(i).dims()));
    b.to(i, b.g.add(host_op<Gradient>, operands.first, operands.count, words.data(), static_cast<int>(words.size())));
  }
}
template <auto... Gradients>
constexpr void grad_host(backward& b) {
  int i = 0;
  (give_host<Gradients>(b, i++), ...);
  if (i > b.operands()) b.g.refuse("HostCall: ", i, " gradients for ", b.operands(), " operands");
}

// ---- a check in the graph
GRADUS_CARD_FUNCTION void infer_check_between(inference& r) {
  r.type = r.in_type(0), r.dims = r.in(0);
  if (!is_float(r.type)) return r.refuse("takes float32 or float64, got ", r.type);
  for (int i = 1; i < 3; ++i)
    if (r.in_type(i) != r.type || r.in(i).rank != 0) return r.refuse("the bounds must be scalars of ", r.type);
}
GRADUS_CARD_FUNCTION void lower_check(lowering& l) { l.rows = count(l.out()); }
GRADUS_CARD_FUNCTION void grad_check(backward& b) {
  if (b.wants(0)) b.to(0, b.dy);
}
}  // namespace detail

namespace cards {
inline constexpr card check_between{"CheckBetween", 3, 0, infer_check_between, grad_check, lower_check};
}
// Returns x; an element outside [low, high] (or NaN) is an error when the step runs.
constexpr value check_between(value x, double low, double high) {
  return x.g->add(cards::check_between, {x, x.g->constant(low, x.type()), x.g->constant(high, x.type())});
}

}  // namespace gradus
