// A constraint holds for a variable after each of its updates, as tf.Variable(constraint=...); the functions of
// tf.keras.constraints are its settings.
//
//   g.variable("w", {784, 10}, {.constraint = max_norm(3)});          // every column has a norm of at most 3
//   dense(x, {.units = 10, .kernel_constraint = non_neg});
//   u.track("w", w, clip_values(-0.01, 0.01));                        // an updater's arrays
//
// w becomes constraint(w) after the rule has changed w (and after lookahead), before an average reads it. Nothing else
// is changed: initial values, the values of a restore or an assign, slots. A step that leaves w alone (frozen, skipped,
// no gradient, still accumulating) does not apply the constraint either. A gradient that comes as rows is refused, as
// in TensorFlow 1.x. run/constrain.hpp has the arithmetic.
#pragma once
#include "../base/build.hpp"

#include <initializer_list>

#include "../base/shape.hpp"

namespace gradus::inline GRADUS_BUILD {

// Axes of a variable, from the front (0, 1, ...) or from the back (-1, ...).
struct axis_set {
  unsigned front = 0, back = 0;  // bit i: axis i; axis -1 - i
  bool fits = true;

  constexpr axis_set(int axis) { add(axis); }
  constexpr axis_set(std::initializer_list<int> axes) {
    for (int axis : axes) add(axis);
  }

private:
  constexpr void add(int axis) {
    if (axis < -max_rank || axis >= max_rank)
      fits = false;
    else if (axis >= 0)
      front |= 1u << axis;
    else
      back |= 1u << (-1 - axis);
  }
};

struct constraint {
  enum kinds : int { nothing, positive, range, unit, norm, wrong_axes };
  double low = 0, high = 0, rate = 1;
  int kind = nothing;
  unsigned axes = 0;  // the axes that a norm goes over: counted from the front, and above those bits from the back

  constexpr explicit operator bool() const { return kind != nothing; }
  // Returns whether axis i of `rank` is one of them.
  constexpr bool over(int i, int rank) const { return ((axes >> i | axes >> (16 + rank - 1 - i)) & 1u) != 0; }
};

namespace detail {
constexpr constraint over_axes(int kind, double low, double high, double rate, const axis_set& axes) {
  return {low, high, rate, axes.fits ? kind : constraint::wrong_axes, axes.front | axes.back << 16};
}
}  // namespace detail

// Returns w where w >= 0, else 0 (tf.keras.constraints.NonNeg).
inline constexpr constraint non_neg{.kind = constraint::positive};
// Keeps w in [low, high]: this is the lambda w: tf.clip_by_value(w, low, high) of many programs.
constexpr constraint clip_values(double low, double high) {
  return {.low = low, .high = high, .kind = constraint::range};
}
// For the next three, a norm is sqrt(sum of w^2) over the axes; there is one for each index of the other axes. Axis 0,
// the default, is right for a dense layer's kernel [in, units]; {0, 1, 2} for conv2d's [height, width, in, filters].
// epsilon is 1e-7.
//
// Sets w to w / (epsilon + norm) (UnitNorm).
constexpr constraint unit_norm(const axis_set& axes = 0) { return detail::over_axes(constraint::unit, 0, 1, 1, axes); }
// Sets w to w min(norm, max_value) / (epsilon + norm) (MaxNorm): this also shrinks values that are short enough, by
// epsilon / norm.
constexpr constraint max_norm(double max_value = 2, const axis_set& axes = 0) {
  return detail::over_axes(constraint::norm, 0, max_value, 1, axes);
}
// Sets w to w (rate clip(norm, min_value, max_value) + (1 - rate) norm) / (epsilon + norm) (MinMaxNorm): a rate below 1
// goes only part of the way in each step.
constexpr constraint min_max_norm(double min_value = 0, double max_value = 1, double rate = 1,
                                  const axis_set& axes = 0) {
  return detail::over_axes(constraint::norm, min_value, max_value, rate, axes);
}

namespace detail {
// Returns the problem of a constraint of a variable of this rank, in words, or nullptr if there is none.
constexpr const char* constraint_problem(const constraint& c, int rank) {
  if (c.kind == constraint::nothing || c.kind == constraint::positive) return nullptr;
  if (c.kind == constraint::range)
    return c.low <= c.high ? nullptr : "clip_values needs a low that is not above its high";
  if (c.kind != constraint::unit && c.kind != constraint::norm)
    return "an axis of its constraint is none that a variable has";
  if (!(c.low >= 0 && c.low <= c.high))
    return "a constraint of norms needs a max_value that is not below its min_value, and neither below 0";
  if (!(c.rate >= 0 && c.rate <= 1)) return "min_max_norm needs a rate in [0, 1]";
  unsigned found = 0;
  for (int i = 0; i < rank; ++i) found |= (1u << i | 1u << (16 + rank - 1 - i)) & c.axes;
  if (c.axes == 0) return "a constraint of norms needs at least one axis";
  return found == c.axes ? nullptr : "an axis of its constraint is none of its own; give axes below its rank";
}
}  // namespace detail

}  // namespace gradus
