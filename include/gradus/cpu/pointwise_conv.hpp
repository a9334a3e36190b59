// These are convolutions whose windows are one pixel, and the gradients of their images, as products of matrices: a row
// for each place, a column for each channel. Where windows lie side by side, the operands are matrices as they are;
// else some rows at a time are copied together.
//
// A sum is one chain of fma over the channels, as in cpu/conv.hpp, where a gradient of few channels is +0 plus that.
#pragma once
#include "../base/build.hpp"

#include <cstring>

#include "direct_product.hpp"
#include "window_sums.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Returns whether windows are one pixel each.
template <class G>
GRADUS_INLINE constexpr bool is_pointwise(const G& g) {
  return g.kh == 1 && g.kw == 1 && g.above == 0 && g.left == 0;
}
// This is false where the known extents say no, and where numbers are single lanes: a board has no memory for the code
// of products beside that of windows.
template <class T, class A, class G>
inline constexpr bool may_be_pointwise = [] {
  if constexpr (G::known)
    return pack<T, A>::width > 1 && G::kh == 1 && G::kw == 1 && G::above == 0 && G::left == 0;
  else
    return pack<T, A>::width > 1;
}();

template <class T, class A>
struct pointwise_conv {
  using N = pack<T, A>;
  static constexpr auto width = static_cast<std::int64_t>(N::width);
  static constexpr std::int64_t room = 4096;  // numbers that are copied together

  // Computes the rows of places [first, last), which count through all images.
  template <class G>
  static void forward(const G& g, index_range rows, T* y, const T* x, const T* filters) {
    const matrix_operand<T> w{filters, g.out, false};
    y += rows.first * g.ow * g.out;
    if (g.sh == 1 && g.sw == 1)
      return multiply({x + rows.first * g.w * g.in, g.in, false}, w, y, g.out, (rows.last - rows.first) * g.ow, g.out,
                      g.in);
    const std::int64_t in_one_go = room / (g.ow * g.in);
    alignas(64) T copies[static_cast<std::size_t>(room + width)];
    for (std::int64_t row = rows.first; row < rows.last;) {
      const auto from = [&](std::int64_t r) { return x + (r / g.oh * g.h + r % g.oh * g.sh) * g.w * g.in; };
      if (in_one_go == 0) {
        multiply({from(row), g.sw * g.in, false}, w, y, g.out, g.ow, g.out, g.in);
        ++row, y += g.ow * g.out;
        continue;
      }
      const std::int64_t end = rows.last - row < in_one_go ? rows.last : row + in_one_go;
      T* to = copies;
      for (std::int64_t r = row; r < end; ++r)
        for (std::int64_t ow = 0; ow < g.ow; ++ow, to += g.in) copy_run<N>(to, from(r) + ow * g.sw * g.in, g.in);
      multiply({copies, g.in, false}, w, y, g.out, (end - row) * g.ow, g.out, g.in);
      y += (end - row) * g.ow * g.out, row = end;
    }
  }

  // Computes the gradients of the rows of pixels [first, last), which count through all images. Filters are [out, in].
  template <class G>
  static void of_input(const G& g, index_range rows, bool adds_to_zero, T* dx, const T* filters, const T* dy) {
    const matrix_operand<T> w{filters, g.in, false};
    const std::int64_t line = g.w * g.in;
    const auto product = [&](T* to, std::int64_t stride, const T* up, std::int64_t places) {
      multiply({up, g.out, false}, w, to, stride, places, g.in, g.out);
    };
    const auto add_to_zero = [&](T* to, std::int64_t n) {  // changes the sign of -0 alone
      if (adds_to_zero)
        for (std::int64_t i = 0; i < n; i += width) {
          const auto some = static_cast<std::size_t>(n - i < width ? n - i : width);
          store_run(N(T(0)) + load_run<N>(to + i, some), to + i, some);
        }
    };
    if (g.sh == 1 && g.sw == 1) {
      const std::int64_t last = rows.last * g.w, in_one_go = adds_to_zero ? room / g.in : last;
      for (std::int64_t first = rows.first * g.w; first < last; first += in_one_go) {
        const std::int64_t many = last - first < in_one_go ? last - first : in_one_go;
        product(dx + first * g.in, g.in, dy + first * g.out, many);
        add_to_zero(dx + first * g.in, many * g.in);
      }
      return;
    }
    alignas(64) T sums[static_cast<std::size_t>(room + width)];
    const std::int64_t in_one_go = room / (g.ow * g.in);
    const auto is_seen = [&](std::int64_t row) { return row % g.h % g.sh == 0; };
    const T* up = dy + (rows.first / g.h * g.oh + (rows.first % g.h + g.sh - 1) / g.sh) * g.ow * g.out;
    for (std::int64_t row = rows.first; row < rows.last;) {
      std::int64_t end = row, seen = 0;  // as many rows as fit, or one
      for (; end < rows.last && (end == row || !is_seen(end) || seen < in_one_go); ++end) seen += is_seen(end) ? 1 : 0;
      std::memset(dx + row * line, 0, static_cast<std::size_t>((end - row) * line) * sizeof(T));
      if (in_one_go == 0) {
        if (seen != 0) {
          product(dx + row * line, g.sw * g.in, up, g.ow);
          for (std::int64_t ow = 0; ow < g.ow; ++ow) add_to_zero(dx + row * line + ow * g.sw * g.in, g.in);
        }
      } else if (seen != 0) {
        product(sums, g.in, up, seen * g.ow);
        add_to_zero(sums, seen * g.ow * g.in);
        const T* from = sums;
        for (std::int64_t r = row; r < end; ++r)
          if (is_seen(r))
            for (std::int64_t ow = 0; ow < g.ow; ++ow, from += g.in)
              copy_within(dx + r * line + ow * g.sw * g.in, from, g.in);
      }
      up += seen * g.ow * g.out, row = end;
    }
  }

private:
  static void multiply(const matrix_operand<T>& a, const matrix_operand<T>& b, T* to, std::int64_t stride,
                       std::int64_t m, std::int64_t n, std::int64_t k) {
    direct_product<T, A>{{a, b, to, stride, m, n, k}}.template run<0, 0, true>(as_is{});
  }
  static GRADUS_INLINE void copy_within(T* to, const T* from, std::int64_t n) {
    for (std::int64_t i = 0; i < n; i += width)
      store_run(N::load(from + i), to + i, static_cast<std::size_t>(n - i < width ? n - i : width));
  }
};

}  // namespace gradus::detail
