// This header sums the squares of arrays, whole or along some axes, for norms. It sums in double for every dtype, in an
// order fixed by the shape, in plain loops: where the compiler fuses a square of a double into its sum, the last bit
// may differ between machines.
#pragma once
#include "../base/build.hpp"

#include <cstddef>
#include <span>

#include "../base/shape.hpp"

namespace gradus::inline GRADUS_BUILD {

// Sums pairwise above 256 elements, so that the error does not grow with n.
template <class T>
double sum_of_squares_tree(const T* x, std::size_t n) {
  if (n > 256) {
    const std::size_t half = (n / 2 + 127) / 128 * 128;
    return sum_of_squares_tree(x, half) + sum_of_squares_tree(x + half, n - half);
  }
  double lane[4] = {};
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (std::size_t k = 0; k < 4; ++k) {
      const double v = static_cast<double>(x[i + k]);
      lane[k] += v * v;
    }
  for (; i < n; ++i) lane[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return (lane[0] + lane[1]) + (lane[2] + lane[3]);
}

// An array cut into groups of elements that are summed together: elements that differ only along the axes of `mask`.
// Neighbouring axes that are both summed, or both not, are treated as one. Groups that lie side by side are visited as
// a strip of up to `strip` groups.
struct squares {
  static constexpr std::size_t strip = 64;
  std::size_t extent[max_rank] = {}, stride[max_rank] = {};
  bool summed[max_rank] = {};
  int axes = 0;

  squares(const extents& dims, unsigned mask) {
    for (int i = 0; i < dims.rank; ++i) {
      const bool along = (mask >> i & 1) != 0;
      if (axes != 0 && summed[axes - 1] == along)
        extent[axes - 1] *= static_cast<std::size_t>(dims[i]);
      else
        extent[axes] = static_cast<std::size_t>(dims[i]), summed[axes++] = along;
    }
    if (axes == 0) extent[0] = 1, summed[0] = true, axes = 1;
    std::size_t n = 1;
    for (int i = axes; i-- > 0; n *= extent[i]) stride[i] = n;
  }
  // Calls f(offset) for each choice along the axes that are summed or not, without the innermost one.
  template <class F>
  void each(bool along, std::size_t offset, F f) const {
    std::size_t at[max_rank] = {};
    for (int i = 0; i < axes; ++i)
      if (extent[i] == 0) return;
    for (;;) {
      f(offset);
      int i = axes - 2;
      for (; i >= 0; --i) {
        if (summed[i] != along) continue;
        offset += stride[i];
        if (++at[i] < extent[i]) break;
        offset -= extent[i] * stride[i], at[i] = 0;
      }
      if (i < 0) return;
    }
  }
  // Calls f(first offset, how many groups) for each strip.
  template <class F>
  void strips(F f) const {
    const std::size_t width = extent[axes - 1];
    each(false, 0, [&](std::size_t offset) {
      if (summed[axes - 1]) return f(offset, std::size_t{1});
      for (std::size_t j = 0; j < width; j += strip) f(offset + j, width - j < strip ? width - j : strip);
    });
  }
  // Computes the sums of the n groups that begin at `first`.
  template <class T>
  void sum(const T* x, std::size_t first, std::size_t n, double* sums) const {
    for (std::size_t j = 0; j < n; ++j) sums[j] = 0;
    each(true, first, [&](std::size_t offset) {
      if (summed[axes - 1])
        sums[0] += sum_of_squares_tree(x + offset, extent[axes - 1]);
      else
        for (std::size_t j = 0; j < n; ++j) {
          const double v = static_cast<double>(x[offset + j]);
          sums[j] += v * v;
        }
    });
  }
  // Calls f(offset, number of its group in the strip) for each element.
  template <class F>
  void elements(std::size_t first, std::size_t n, F f) const {
    const bool along = summed[axes - 1];
    const std::size_t count = along ? extent[axes - 1] : n;
    each(true, first, [&](std::size_t offset) {
      for (std::size_t j = 0; j < count; ++j) f(offset + j, along ? std::size_t{0} : j);
    });
  }
};

}  // namespace gradus
