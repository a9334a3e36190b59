// A factored view shows a tensor along two of its axes, for rules that keep means over each of the two (adafactor.hpp).
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "../base/shape.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// The view has the shape [outer, rows, middle, columns, inner], where rows and columns are the two axes, first and
// second in memory. Means over the columns are [outer, rows, middle, inner], means over the rows [outer, middle,
// columns, inner].
struct factored_axes {
  bool factored = false;
  int first = 0, second = 0;
  bool divides_rows = true;  // the mean that is divided by its own mean, R, is the one over the columns
  std::int64_t outer = 1, rows = 1, middle = 1, columns = 1, inner = 1;

  // Returns the view of dims in which R is the mean over `axis` and C the mean over `other`.
  static factored_axes over(const extents& dims, int axis, int other) {
    factored_axes a;
    a.factored = true;
    a.first = axis < other ? axis : other, a.second = axis < other ? other : axis;
    a.divides_rows = axis == a.second;
    for (int k = 0; k < dims.rank; ++k) {
      std::int64_t* extent = &a.inner;
      if (k < a.first)
        extent = &a.outer;
      else if (k == a.first)
        extent = &a.rows;
      else if (k < a.second)
        extent = &a.middle;
      else if (k == a.second)
        extent = &a.columns;
      *extent *= dims[k];
    }
    return a;
  }
  std::int64_t row_means() const { return outer * rows * middle * inner; }
  std::int64_t column_means() const { return outer * middle * columns * inner; }
  std::int64_t slab() const { return columns * inner; }

  // Calls body(offset, n, r, k) for runs of n elements that cover the tensor in order. With inner = 1 a run is a whole
  // row: its elements all belong to *r, and to k[0] ... k[n - 1] in turn. Otherwise it is one column's elements in a
  // row, which belong to r[0] ... r[n - 1] as well. of_rows is [row_means()], of_columns [column_means()].
  template <class T, class Body>
  void runs(const T* of_rows, const T* of_columns, Body body) const {
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < middle; ++j) {
          const std::int64_t row = (o * rows + i) * middle + j;
          const T* const r = of_rows + row * inner;
          const T* const k = of_columns + (o * middle + j) * slab();
          if (inner == 1)
            body(row * columns, static_cast<std::size_t>(columns), r, k);
          else
            for (std::int64_t q = 0; q < columns; ++q)
              body((row * columns + q) * inner, static_cast<std::size_t>(inner), r, k + q * inner);
        }
  }
};

// Computes to [width] = the sum of f(x) over `count` runs of `width` numbers, in parts of 64 runs. `part` is scratch
// memory of width numbers.
template <class Math, class T, class F>
void sum_of_runs(T* to, T* part, const T* x, std::int64_t count, std::int64_t width, F f) {
  if (width == 1) {
    *to = Math::reduce(static_cast<std::size_t>(count), f, x);
    return;
  }
  const auto n = static_cast<std::size_t>(width);
  const auto add = [](auto& sum, auto y) { sum = sum + y; };
  const auto add_f = [f](auto& sum, auto y) { sum = sum + f(y); };
  std::fill_n(to, n, T(0));
  for (std::int64_t i = 0; i < count;) {
    std::fill_n(part, n, T(0));
    for (const std::int64_t end = count - i < 64 ? count : i + 64; i < end; ++i)
      Math::map(n, add_f, part, x + i * width);
    Math::map(n, add, to, static_cast<const T*>(part));
  }
}

}  // namespace gradus::detail
