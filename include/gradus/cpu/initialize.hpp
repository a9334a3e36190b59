// First values of variables. Element i of a variable is a pure function of (seed, stream of the variable's name, i),
// and drawn with our own logarithm, so that every machine starts alike.
//
// Initializers as TensorFlow 1.15's tf.initializers; the random streams are not TensorFlow's.
#pragma once
#include <algorithm>

#include "../base/random.hpp"
#include "../ops/elementwise.hpp"
#include "math.hpp"

namespace gradus {

namespace detail {

// Standard normal by Marsaglia's polar method (1964), truncated at two deviations if asked for: attempts are blocks of
// the element's own counter.
template <class T>
T draw_normal(const philox& words, std::uint64_t stream, std::uint64_t element, bool truncated) {
  using one = lane<T, portable>;
  for (std::uint32_t attempt = 0;; ++attempt) {
    const auto w = words({static_cast<std::uint32_t>(element), static_cast<std::uint32_t>(element >> 32) ^ attempt << 8,
                          static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)});
    const one x = one::of(2 * uniform_double(w[0], w[1]) - 1), y = one::of(2 * uniform_double(w[2], w[3]) - 1);
    const one s = x * x + y * y;
    if (!(s.v < T(1)) || s.v == T(0)) continue;
    const one z = x * sqrt(one(T(-2)) * log(s) / s);
    if (!truncated || (z.v > T(-2) && z.v < T(2))) return z.v;
  }
}
template <class T>
T draw_uniform(const philox& words, std::uint64_t stream, std::uint64_t element) {
  const auto w = words({static_cast<std::uint32_t>(element), static_cast<std::uint32_t>(element >> 32),
                        static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)});
  if constexpr (sizeof(T) == 4)
    return uniform_float(w[0]);
  else
    return uniform_double(w[0], w[1]);
}

struct fans {
  double in = 1, out = 1;
};
// rank 1: both its extent; higher: the receptive field times the last two extents
constexpr fans fans_of(const shape& s) {
  if (s.rank == 0) return {};
  if (s.rank == 1) return {static_cast<double>(s[0]), static_cast<double>(s[0])};
  double field = 1;
  for (int i = 0; i < s.rank - 2; ++i) field *= s[i];
  return {field * s[-2], field * s[-1]};
}

// Kind and Distribution may be known when compiled (-1: they are not); what is not asked for is then not in the
// program.
template <class T, int Kind = -1, int Distribution = -1>
[[gnu::cold]] void initialize_as(const initializer& init, const shape& dims, std::uint64_t seed, std::uint64_t stream,
                                 T* p) {
  const auto n = static_cast<std::uint64_t>(count(dims));
  if constexpr (std::is_floating_point_v<T>) {
    using one = lane<T, portable>;
    const philox words(seed);
    const auto uniform_in = [&](double low, double high) {
      for (std::uint64_t i = 0; i < n; ++i)
        p[i] = (one::of(low) + one::of(high - low) * one(draw_uniform<T>(words, stream, i))).v;
    };
    const auto normal_of = [&](double mean, double deviation, bool truncated) {
      for (std::uint64_t i = 0; i < n; ++i)
        p[i] = (one::of(mean) + one::of(deviation) * one(draw_normal<T>(words, stream, i, truncated))).v;
    };
    const auto root = [](double x) { return sqrt(lane<double, portable>(x)).v; };
    switch (Kind >= 0 ? Kind : init.kind) {
    case initializer::uniform: return uniform_in(init.a, init.b);
    case initializer::normal: return normal_of(init.a, init.b, false);
    case initializer::truncated_normal: return normal_of(init.a, init.b, true);
    case initializer::variance_scaling: {
      const fans f = fans_of(dims);
      const double n_in = init.fan == initializer::fan_in    ? f.in
                          : init.fan == initializer::fan_out ? f.out
                                                             : (f.in + f.out) / 2;
      const double s = static_cast<double>(init.a) / (n_in > 1 ? n_in : 1);
      const int distribution = Kind >= 0 ? Distribution : init.distribution;
      if (distribution == initializer::uniform) return uniform_in(-root(3 * s), root(3 * s));
      // a normal cut at two deviations has this deviation: undone, so that the variance is s
      if (distribution == initializer::truncated_normal) return normal_of(0, root(s) / 0.87962566103423978, true);
      return normal_of(0, root(s), false);
    }
    default: break;
    }
  }
  std::fill_n(p, n, static_cast<T>(init.a));
}

}  // namespace detail

[[gnu::cold]] inline void initialize_variable(const initializer& init, dtype type, const shape& dims,
                                              std::uint64_t seed, std::uint64_t stream, std::byte* to) {
  switch (type) {
  case float32: return detail::initialize_as(init, dims, seed, stream, reinterpret_cast<float*>(to));
  case float64: return detail::initialize_as(init, dims, seed, stream, reinterpret_cast<double*>(to));
  case int32: return detail::initialize_as(init, dims, seed, stream, reinterpret_cast<std::int32_t*>(to));
  case int64: return detail::initialize_as(init, dims, seed, stream, reinterpret_cast<std::int64_t*>(to));
  case boolean: return detail::initialize_as(init, dims, seed, stream, reinterpret_cast<bool*>(to));
  default: return detail::initialize_as(init, dims, seed, stream, reinterpret_cast<std::uint8_t*>(to));
  }
}

}  // namespace gradus
