// What every library of matrix products has to give (cpu/products.hpp): op(a) op(b) within the rounding of a sum of k
// products, for every transposition and every `into`, in windows of larger matrices.
#pragma once
#include <gradus/cpu/products.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace library_suite {

// Not inside gradus: on ARM, CHECK calls an unqualified raise.
using namespace gradus;

template <class Library, class T>
void check_product(std::int64_t m, std::int64_t n, std::int64_t k, bool ta, bool tb, product_into into) {
  const std::int64_t a_stride = (ta ? m : k) + 3, b_stride = (tb ? k : n) + 2, stride = n + 5;
  const auto value = [](std::int64_t i, double step) {
    return static_cast<T>(std::sin(step * static_cast<double>(i)));
  };
  std::vector<T> a, b, c;
  for (std::int64_t i = 0; i < (ta ? k : m) * a_stride; ++i) a.push_back(value(i, 0.7));
  for (std::int64_t i = 0; i < (tb ? n : k) * b_stride; ++i) b.push_back(value(i, 1.3));
  for (std::int64_t i = 0; i < m * stride; ++i) c.push_back(value(i, 2.1));
  const std::vector<T> before = c;
  const auto in = [](const std::vector<T>& v, std::int64_t i) {
    return static_cast<double>(v[static_cast<std::size_t>(i)]);
  };
  Library::template multiply<T>({a.data(), a_stride, ta}, {b.data(), b_stride, tb}, c.data(), stride, m, n, k, into);
  int wrong = 0;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < stride; ++j) {
      double sum = 0, size = 1;
      for (std::int64_t p = 0; p < k && j < n; ++p) {
        const double x =
            in(a, ta ? p * a_stride + i : i * a_stride + p) * in(b, tb ? j * b_stride + p : p * b_stride + j);
        sum += x, size += std::abs(x);
      }
      const double old = in(before, i * stride + j);
      const double expected = j >= n                           ? old
                              : into == product_into::add      ? old + sum
                              : into == product_into::subtract ? old - sum
                                                               : sum;
      const double allowed =
          j >= n ? 0 : size * static_cast<double>(k) * static_cast<double>(std::numeric_limits<T>::epsilon());
      wrong += !(std::abs(in(c, i * stride + j) - expected) <= allowed);
    }
  CAPTURE(m);
  CAPTURE(n);
  CAPTURE(k);
  CAPTURE(ta);
  CAPTURE(tb);
  CHECK(wrong == 0);
}

struct product_shape {
  std::int64_t m, n, k;
};
template <class Library, class T>
void check_library() {
  for (const product_into into : {product_into::overwrite, product_into::add, product_into::subtract})
    for (const bool ta : {false, true})
      for (const bool tb : {false, true})
        for (const product_shape s : {product_shape{2, 3, 1}, {33, 47, 65}, {64, 64, 64}, {7, 130, 29}})
          check_product<Library, T>(s.m, s.n, s.k, ta, tb, into);
  CHECK(Library::template takes<T>(256, 256, 256));
  CHECK(!Library::template takes<T>(1, 256, 256));  // a row: no packing pays
  CHECK(!Library::template takes<T>(4, 4, 4));
  CHECK(!Library::template takes<T>(std::int64_t{1} << 40, 2, 2));  // no int
  CHECK(!Library::template takes<T>(256, 256, 0));
}

}  // namespace library_suite
