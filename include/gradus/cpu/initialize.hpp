// This computes the first values of variables. The number drawn for element i of a variable is a pure function of
// (seed, stream of the variable's name, i), computed with the library's own logarithm, so that every machine starts
// alike.
//
// The initializers are those of TensorFlow 1.15's tf.initializers; the random streams are not TensorFlow's.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <vector>

#include "../base/random.hpp"
#include "../ops/elementwise.hpp"
#include "math.hpp"
#include "sums.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// Draws a standard normal by Marsaglia's polar method (1964), truncated at two deviations on request. Each attempt
// takes another block of the element's own counter.
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

// Makes normals [rows, columns] orthonormal along the longer side, in double. Each vector loses its components along
// those before it and is normalized (modified Gram-Schmidt), twice over: the first pass leaves errors as large as the
// condition of the draw, the second as large as the machine's rounding. The diagonal of R is positive, which makes
// every Q equally likely (Mezzadri, "How to generate random matrices from the classical compact groups", 2007).
template <class T>
[[gnu::cold]] void orthonormalize(T* p, std::size_t rows, std::size_t columns) {
  using many = pack<double, portable>;
  const bool tall = rows > columns;
  const std::size_t vectors = tall ? columns : rows, length = tall ? rows : columns;
  const std::size_t step = tall ? 1 : columns, stride = tall ? columns : 1;  // from vector to vector; within a vector
  std::vector<double> q(vectors * length);
  for (std::size_t k = 0; k < vectors; ++k)
    for (std::size_t i = 0; i < length; ++i) q[k * length + i] = static_cast<double>(p[k * step + i * stride]);
  const auto each = [length](double* x, auto f) {
    std::size_t i = 0;
    for (; i + many::width <= length; i += many::width) f(many::load(x + i), i, many::width).store(x + i);
    if (i < length) f(many::load_partial(x + i, length - i), i, length - i).store_partial(x + i, length - i);
  };
  for (int pass = 0; pass < 2; ++pass)
    for (std::size_t k = 0; k < vectors; ++k) {
      double* x = &q[k * length];
      for (std::size_t j = 0; j < k; ++j) {
        const double* before = &q[j * length];
        const many along(dot<portable>(x, before, length));
        each(x, [&](many v, std::size_t i, std::size_t n) {
          const many b = n == many::width ? many::load(before + i) : many::load_partial(before + i, n);
          return v - along * b;
        });
      }
      const many norm(sqrt(lane<double, portable>(sum_of_squares<portable>(x, length))).v);
      each(x, [&](many v, std::size_t, std::size_t) { return v / norm; });
    }
  for (std::size_t k = 0; k < vectors; ++k)
    for (std::size_t i = 0; i < length; ++i) p[k * step + i * stride] = static_cast<T>(q[k * length + i]);
}

// These are the parameters of a draw, computed in double: low and high - low of uniform numbers, else mean and
// deviation.
template <class T>
struct drawn_from {
  T first = 0, second = 0;
};
template <class T>
constexpr drawn_from<T> drawing_of(const initializer& init, const shape& dims) {
  const bool scaled = init.kind == initializer::variance_scaling;
  double first = static_cast<double>(init.a), second = static_cast<double>(init.b);
  if (init.kind == initializer::orthogonal)
    first = 0, second = 1;
  else if (scaled && init.distribution == initializer::uniform)
    first = -uniform_limit(init, dims), second = -2 * first;
  else if (scaled)
    first = 0, second = stddev_before_truncation(init, dims);
  else if (init.kind == initializer::uniform)
    second -= first;
  return {static_cast<T>(first), static_cast<T>(second)};
}

// Kind and Distribution may be known at compile time (-1: they are not); the program then has no code for the others. A
// program that also knows `from` at compile time need not compute it in double.
template <class T, int Kind = -1, int Distribution = -1>
[[gnu::cold]] void initialize_as(const initializer& init, drawn_from<T> from, const shape& dims, std::uint64_t seed,
                                 std::uint64_t stream, T* p) {
  const auto n = static_cast<std::uint64_t>(count(dims));
  if constexpr (std::is_floating_point_v<T>) {
    using one = lane<T, portable>;
    const philox words(seed);
    const one first(from.first), second(from.second);
    const auto uniform_numbers = [&] {
      for (std::uint64_t i = 0; i < n; ++i) p[i] = (first + second * one(draw_uniform<T>(words, stream, i))).v;
    };
    const auto normal_numbers = [&](bool truncated) {
      for (std::uint64_t i = 0; i < n; ++i)
        p[i] = (first + second * one(draw_normal<T>(words, stream, i, truncated))).v;
    };
    switch (Kind >= 0 ? Kind : init.kind) {
    case initializer::uniform: return uniform_numbers();
    case initializer::normal: return normal_numbers(false);
    case initializer::truncated_normal: return normal_numbers(true);
    case initializer::variance_scaling: {
      const int distribution = Kind >= 0 ? Distribution : init.distribution;
      if (distribution == initializer::uniform) return uniform_numbers();
      return normal_numbers(distribution == initializer::truncated_normal);
    }
    case initializer::orthogonal: {
      normal_numbers(false);
      if (n == 0) return;
      const auto columns = static_cast<std::size_t>(dims.back());
      orthonormalize(p, static_cast<std::size_t>(n) / columns, columns);
      for (std::uint64_t i = 0; i < n; ++i) p[i] = (one(p[i]) * one::of(static_cast<double>(init.a))).v;
      return;
    }
    default: break;
    }
  }
  if ((Kind >= 0 ? Kind : init.kind) == initializer::identity) {
    std::fill_n(p, n, T(0));
    const auto columns = static_cast<std::uint64_t>(dims.back());
    for (std::uint64_t i = 0; i < columns && i * (columns + 1) < n; ++i) p[i * (columns + 1)] = static_cast<T>(init.a);
    return;
  }
  std::fill_n(p, n, static_cast<T>(init.a));
}

}  // namespace detail

[[gnu::cold]] void initialize_variable(const initializer& init, dtype type, const shape& dims, std::uint64_t seed,
                                       std::uint64_t stream, std::byte* to);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "initialize.ipp"
#endif
