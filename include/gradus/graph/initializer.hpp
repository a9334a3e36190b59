// This header has the first values of variables: tf.initializers (1.15), and the numbers behind them as functions of a
// shape.
//
// The random streams are not TensorFlow's: an element is a pure function of (seed of the run, the variable's name, its
// place), the same on every machine. Settings are float32, whatever the variable's dtype, where TensorFlow's have the
// variable's: a variable of float64 gets the float32's value (0.1 is 0.100000001490116 there).
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <type_traits>

#include "../base/dtype.hpp"
#include "../base/math.hpp"
#include "../base/shape.hpp"

namespace gradus::inline GRADUS_BUILD {

struct initializer {
  enum kinds : int { constant, uniform, normal, truncated_normal, variance_scaling, orthogonal, identity, from_value };
  enum modes : int { fan_in, fan_out, fan_average };
  int kind = constant;
  // constant: value a; uniform: [a, b); normal, truncated_normal: mean a, deviation b; variance_scaling: scale a;
  // orthogonal, identity: gain a; from_value: another value of the graph (variable_from in ops/state.hpp)
  float a = 0, b = 0;
  int fan = fan_average;
  int distribution = truncated_normal;  // of variance_scaling: uniform, normal or truncated_normal
  bool rounded = false;                 // constant: the whole number that was given is not a
};
inline constexpr initializer zeros{}, ones{.a = 1};
namespace detail {
// Returns whether a number with so many bits of precision can be n.
template <class N>
constexpr bool fits_in_bits(N n, int bits) {
  auto m = static_cast<std::uint64_t>(n);
  if (n < N(0)) m = 0 - m;
  while (m != 0 && m % 2 == 0) m /= 2;
  return m < std::uint64_t{1} << bits;
}
}  // namespace detail
// Begins with this number everywhere. A whole number that float32 cannot hold is refused for a variable of whole
// numbers: 16777217 would begin as 16777216.
template <class N>
  requires std::is_arithmetic_v<N>
constexpr initializer constant_initializer(N v) {
  initializer i{.a = static_cast<float>(v)};
  if constexpr (std::is_integral_v<N>)
    i.rounded = !detail::fits_in_bits(v, 24);
  else
    i.rounded = can_hold(int64, static_cast<double>(i.a)) && static_cast<double>(i.a) != static_cast<double>(v);
  return i;
}
// Draws from [low, high), as tf.random_uniform_initializer(minval, maxval).
constexpr initializer random_uniform(float low, float high) {
  return {.kind = initializer::uniform, .a = low, .b = high};
}
constexpr initializer random_normal(float mean, float deviation) {
  return {.kind = initializer::normal, .a = mean, .b = deviation};
}
// Numbers are drawn again until they are within two deviations of the mean. The deviation is the one before the cut:
// the result has 0.8796 of it.
constexpr initializer truncated_normal(float mean, float deviation) {
  return {.kind = initializer::truncated_normal, .a = mean, .b = deviation};
}
// As tf.variance_scaling_initializer: the variance is s = scale / max(1, n), where n is the fan in, the fan out or
// their mean.
//   initializer::truncated_normal   TensorFlow's "truncated_normal" and "normal": deviation sqrt(s) / 0.8796 before it
//                                   is cut at two deviations, so that sqrt(s) is left
//   initializer::normal             TensorFlow's "untruncated_normal": deviation sqrt(s)
//   initializer::uniform            within +- sqrt(3 s)
// A scale that is not above 0, and an unknown mode or distribution, are refused where a variable is made.
constexpr initializer variance_scaling(float scale = 1, int fan = initializer::fan_in,
                                       int distribution = initializer::truncated_normal) {
  return {.kind = initializer::variance_scaling, .a = scale, .fan = fan, .distribution = distribution};
}
// Glorot, Bengio 2010 (Xavier; TensorFlow's default); He et al. 2015; LeCun et al. 1998.
inline constexpr initializer glorot_uniform = variance_scaling(1, initializer::fan_average, initializer::uniform),
                             glorot_normal =
                                 variance_scaling(1, initializer::fan_average, initializer::truncated_normal),
                             he_uniform = variance_scaling(2, initializer::fan_in, initializer::uniform),
                             he_normal = variance_scaling(2, initializer::fan_in, initializer::truncated_normal),
                             lecun_uniform = variance_scaling(1, initializer::fan_in, initializer::uniform),
                             lecun_normal = variance_scaling(1, initializer::fan_in, initializer::truncated_normal);
// tf.orthogonal_initializer: rows [all but the last extent] x columns [the last]; the shorter side is an orthonormal
// set times gain, every such set as likely as another (Saxe, McClelland, Ganguli 2014). The rank must be 2 or more. The
// cost is O(m n min(m, n)).
constexpr initializer orthogonal(float gain = 1) { return {.kind = initializer::orthogonal, .a = gain}; }
// tf.initializers.identity: gain on the diagonal. The rank must be 2.
constexpr initializer identity_initializer(float gain = 1) { return {.kind = initializer::identity, .a = gain}; }

// The fan in and fan out of one unit. For rank 0 they are 1 and 1; for rank 1 its extent, twice; for higher ranks the
// receptive field (all but the last two extents) times the last but one, and times the last.
struct fans {
  double in = 1, out = 1;
};
constexpr fans fans_of(const shape& s) {
  if (s.rank == 0) return {};
  if (s.rank == 1) return {static_cast<double>(s[0]), static_cast<double>(s[0])};
  double field = 1;
  for (int i = 0; i < s.rank - 2; ++i) field *= s[i];
  return {field * s[-2], field * s[-1]};
}

namespace detail {
// Returns the problem of an initializer for a variable of this shape, in words, or nullptr if there is none.
constexpr const char* initializer_problem(const initializer& i, const shape& dims, dtype type = dtype::float32) {
  if (is_16_bit_float(type) && i.kind != initializer::constant && i.kind != initializer::from_value)
    return "numbers of 16 bits are not drawn; begin with zeros, or with a cast of float32 (variable_from)";
  const bool draws = i.kind == initializer::uniform || i.kind == initializer::normal ||
                     i.kind == initializer::truncated_normal || i.kind == initializer::orthogonal;
  if (!is_float(type) && !is_16_bit_float(type) && draws)
    return "only numbers of 32 or 64 bits with a fraction are drawn; begin with zeros or a constant, or with a cast of "
           "float32 (variable_from)";
  if (i.kind == initializer::constant && i.rounded && !is_float(type) && !is_16_bit_float(type))
    return "an initializer's number is float32, which cannot hold this whole number; give one that it can, or assign "
           "the number, or begin with it as a tensor (variable_from)";
  if (i.kind == initializer::constant && !can_hold(type, static_cast<double>(i.a)))
    return "the constant is no number of this type";
  switch (i.kind) {
  case initializer::constant:
  case initializer::uniform:
  case initializer::normal:
  case initializer::truncated_normal:
  case initializer::from_value: return nullptr;
  case initializer::variance_scaling:
    if (!(i.a > 0)) return "variance_scaling needs a scale above 0";
    if (i.fan < initializer::fan_in || i.fan > initializer::fan_average)
      return "variance_scaling knows the modes fan_in, fan_out and fan_average";
    if (i.distribution < initializer::uniform || i.distribution > initializer::truncated_normal)
      return "variance_scaling knows the distributions uniform, normal and "
             "truncated_normal";
    return nullptr;
  case initializer::orthogonal: return dims.rank >= 2 ? nullptr : "orthogonal needs a shape of rank 2 or more";
  case initializer::identity: return dims.rank == 2 ? nullptr : "identity_initializer needs a shape of rank 2";
  default: return "there is no initializer of this kind";
  }
}
}  // namespace detail

// A normal distribution that is cut at two deviations has this deviation.
inline constexpr double truncated_normal_deviation = 0.87962566103423978;

// Returns the variance that variance_scaling aims at: scale / max(1, n).
constexpr double scaled_variance(const initializer& i, const shape& dims) {
  const fans f = fans_of(dims);
  const double n = i.fan == initializer::fan_in ? f.in : i.fan == initializer::fan_out ? f.out : (f.in + f.out) / 2;
  return static_cast<double>(i.a) / (n > 1 ? n : 1);
}
// Returns the limit of variance_scaling with the uniform distribution, which draws from between minus this and this.
constexpr double uniform_limit(const initializer& i, const shape& dims) {
  return portable_math::sqrt(3 * scaled_variance(i, dims));
}
// Returns the deviation of the normal distribution that numbers are drawn from, before anything is cut off. For
// variance_scaling it follows from its distribution (for the uniform one, which has no normal, it is its own
// deviation); for random_normal and truncated_normal it is as given.
constexpr double stddev_before_truncation(const initializer& i, const shape& dims) {
  if (i.kind != initializer::variance_scaling) return static_cast<double>(i.b);
  const double s = portable_math::sqrt(scaled_variance(i, dims));
  return i.distribution == initializer::truncated_normal ? s / truncated_normal_deviation : s;
}

}  // namespace gradus
