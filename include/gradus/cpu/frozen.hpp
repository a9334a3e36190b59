// These are the kernels of layers with frozen weights (ops/frozen.hpp): they convert numbers to 8 bits, and compute
// products and convolutions of 8 bits in int32. Sums of whole numbers have one value in any order. The operations on
// floats are a division, a sum and a product, each rounded by itself, so that the bits are those of every IEEE 754
// machine, under `fast` too.
//
// One function serves all layers of a kind in a program: they differ in extents, and a board's flash is small.
#pragma once
#include "../base/build.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "../base/math.hpp"
#include "../ops/frozen.hpp"
#include "device.hpp"
#include "kernel.hpp"
#include "windows.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// Computes the scale and the zero point of n numbers, so that code c stands for (c - zero point) * scale and 0 has a
// code. Where the scale would be below the least normal number of float32, it is 0; where a number is not finite, it is
// NaN.
inline void quantization_of(const float* x, std::int64_t n, float* pair) {
  float low = 0, high = 0;
  bool finite = true;
  for (std::int64_t i = 0; i < n; ++i) {
    finite = finite && (std::bit_cast<std::uint32_t>(x[i]) & 0x7f800000u) != 0x7f800000u;
    low = x[i] < low ? x[i] : low;
    high = x[i] > high ? x[i] : high;
  }
  const float scale = high / 255 - low / 255;
  pair[0] = scale, pair[1] = 0;
  if (!finite)
    pair[0] = std::bit_cast<float>(0x7fc00000u);
  else if (!(scale >= 0x1p-126f))
    pair[0] = 0;
  else
    pair[1] = static_cast<float>(static_cast<std::int32_t>(-low / scale + 0.5f));
}
// Writes codes from 0 to 255, rounded to nearest, ties up.
inline void quantize(std::uint8_t* codes, const float* x, std::int64_t n, const float* pair) {
  const float scale = pair[0], shift = pair[1] + 0.5f;
  const bool known = scale > 0;  // else the codes say nothing: the scale is 0 or NaN
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int32_t code = known ? static_cast<std::int32_t>(x[i] / scale + shift) : 0;
    codes[i] = static_cast<std::uint8_t>(code > 255 ? 255 : code < 0 ? 0 : code);
  }
}

// This is what the codes of one part stand for.
struct code_range {
  float scale;
  std::int32_t zero;
  code_range(const float* pairs, std::int64_t part)
      : scale(pairs[2 * part]), zero(static_cast<std::int32_t>(pairs[2 * part + 1])) {}
};

// This is how many channels of a result have their sums in registers together.
inline constexpr std::int64_t frozen_tile = GRADUS_SIMD ? 16 : 4;

// Calls f(i) for every i below Channels, unrolled: the sums then stay in registers under -Os too.
template <int Channels, class F>
GRADUS_INLINE void each_channel(F f) {
  [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) { (f(I), ...); }
  (std::make_integer_sequence<int, Channels>{});
}
// Adds (x[k] - zero) * w[k * stride + c] over k < n to the sums of `Channels` channels.
template <int Channels>
GRADUS_INLINE void add_products(std::int32_t* sums, const std::uint8_t* x, std::int32_t zero, const std::int8_t* w,
                                std::int64_t stride, std::int64_t n) {
  const std::uint8_t* const end = x + (n < 0 ? 0 : n);
  for (; x != end; ++x, w += stride) {
    const std::int32_t number = *x - zero;
    each_channel<Channels>([&](int c) __attribute__((always_inline)) { sums[c] += number * w[c]; });
  }
}
// Calls f.operator()<Channels>(c) for runs of channels.
template <class F>
GRADUS_INLINE void in_channel_tiles(std::int64_t channels, F f) {
  std::int64_t c = 0;
  for (; c + frozen_tile <= channels; c += frozen_tile) f.template operator()<static_cast<int>(frozen_tile)>(c);
  for (; c < channels; ++c) f.template operator()<1>(c);
}
GRADUS_INLINE float frozen_result(const frozen_weights& w, std::int32_t sum, float scale, std::int64_t c) {
  return portable_math::product(static_cast<float>(sum), portable_math::product(scale, w.scales[c])) + w.bias[c];
}

// Computes rows of `units` numbers from rows of `in` codes, each row with its scale and zero point.
[[gnu::noinline]] inline void frozen_dense(const frozen_weights& w, float* y, const std::uint8_t* x, const float* pairs,
                                           index_range rows, std::int64_t in, std::int64_t units) {
  for (std::int64_t r = rows.first; r < rows.last; ++r) {
    const code_range codes(pairs, r);
    in_channel_tiles(units, [&]<int Channels>(std::int64_t c) {
      std::int32_t sums[static_cast<std::size_t>(Channels)] = {};
      add_products<Channels>(sums, x + r * in, codes.zero, w.codes + c, units, in);
      for (int i = 0; i < Channels; ++i) y[r * units + c + i] = frozen_result(w, sums[i], codes.scale, c + i);
    });
  }
}

// These are the extents of a convolution as run-time numbers, so that one function serves all.
struct frozen_windows {
  std::int64_t h, w, in, oh, ow, out, kh, kw, sh, sw, above, left;
  template <class S>
  explicit frozen_windows(const S& s) {
    const windows<S> g(s);
    h = g.h, w = g.w, in = g.in, oh = g.oh, ow = g.ow, out = g.out, kh = g.kh, kw = g.kw, sh = g.sh, sw = g.sw,
    above = g.above, left = g.left;
  }
  // Calls f(offset of its first number, its image, line and column in the image where its window begins) for each place
  // of these lines of the result.
  template <class F>
  void each_place(index_range lines, F f) const {
    for (std::int64_t line = lines.first; line < lines.last; ++line)
      for (std::int64_t x = 0; x < ow; ++x) f((line * ow + x) * out, line / oh, line % oh * sh - above, x * sw - left);
  }
};
[[gnu::noinline]] inline void frozen_conv2d(const frozen_weights& w, float* y, const std::uint8_t* x,
                                            const float* pairs, index_range lines, const frozen_windows& g) {
  g.each_place(lines, [&](std::int64_t to, std::int64_t image, std::int64_t top, std::int64_t side) {
    const code_range codes(pairs, image);
    const visible down(top, g.kh, g.h), across(side, g.kw, g.w);
    in_channel_tiles(g.out, [&]<int Channels>(std::int64_t c) {
      std::int32_t sums[static_cast<std::size_t>(Channels)] = {};
      for (std::int64_t kh = down.first; kh < down.last; ++kh)
        add_products<Channels>(sums, x + ((image * g.h + top + kh) * g.w + side + across.first) * g.in, codes.zero,
                               w.codes + (kh * g.kw + across.first) * g.in * g.out + c, g.out,
                               (across.last - across.first) * g.in);
      for (int i = 0; i < Channels; ++i) y[to + c + i] = frozen_result(w, sums[i], codes.scale, c + i);
    });
  });
}
[[gnu::noinline]] inline void frozen_depthwise_conv2d(const frozen_weights& w, float* y, const std::uint8_t* x,
                                                      const float* pairs, index_range lines, const frozen_windows& g) {
  const std::int64_t multiplier = g.out / g.in;
  g.each_place(lines, [&](std::int64_t to, std::int64_t image, std::int64_t top, std::int64_t side) {
    const code_range codes(pairs, image);
    const visible down(top, g.kh, g.h), across(side, g.kw, g.w);
    in_channel_tiles(g.out, [&]<int Channels>(std::int64_t c) {
      std::int32_t sums[static_cast<std::size_t>(Channels)] = {};
      for (std::int64_t kh = down.first; kh < down.last; ++kh)
        for (std::int64_t kw = across.first; kw < across.last; ++kw) {
          const std::uint8_t* const pixel = x + ((image * g.h + top + kh) * g.w + side + kw) * g.in;
          const std::int8_t* const weights = w.codes + (kh * g.kw + kw) * g.out + c;
          if (multiplier == 1)
            each_channel<Channels>([&](int i) __attribute__((always_inline)) {
              sums[i] += (pixel[c + i] - codes.zero) * weights[i];
            });
          else
            for (int i = 0; i < Channels; ++i) sums[i] += (pixel[(c + i) / multiplier] - codes.zero) * weights[i];
        }
      for (int i = 0; i < Channels; ++i) y[to + c + i] = frozen_result(w, sums[i], codes.scale, c + i);
    });
  });
}
}  // namespace detail

template <>
struct op_kernel<&cards::quantization> {
  static constexpr bool divides = true;
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    const index_range mine = s.share(s.dim(0));
    for (std::int64_t i = mine.first; i < mine.last; ++i)
      detail::quantization_of(at<const float>(a, 1) + i * s.dim(1), s.dim(1), at<float>(a, 0) + 2 * i);
  }
};
template <>
struct op_kernel<&cards::quantize> {
  static constexpr bool divides = true;
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    const index_range mine = s.share(s.dim(0));
    for (std::int64_t i = mine.first; i < mine.last; ++i)
      detail::quantize(at<std::uint8_t>(a, 0) + i * s.dim(1), at<const float>(a, 1) + i * s.dim(1), s.dim(1),
                       at<const float>(a, 2) + 2 * i);
  }
};

// This is the kernel of every layer with frozen weights; its card names them.
template <const card* Op>
  requires(Op->frozen != nullptr)
struct op_kernel<Op> {
  static constexpr bool divides = true;

  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    constexpr int layer = Op->frozen->layer;
    // They stand apart from the card, which leads to all the code that builds graphs.
    static constexpr frozen_weights weights{layer, {}, 0, Op->frozen->codes, Op->frozen->scales, Op->frozen->bias};
    float* const y = at<float>(a, 0);
    const auto* const x = at<const std::uint8_t>(a, 1);
    const auto* const pairs = at<const float>(a, 2);
    if constexpr (layer == frozen_weights::of_dense) {
      detail::frozen_dense(weights, y, x, pairs, s.share(s.dim(0)), s.dim(1), s.dim(2));
    } else {
      const detail::frozen_windows g(s);
      const index_range lines = s.share(s.dim(0) * g.oh);
      if constexpr (layer == frozen_weights::of_conv2d)
        detail::frozen_conv2d(weights, y, x, pairs, lines, g);
      else
        detail::frozen_depthwise_conv2d(weights, y, x, pairs, lines, g);
    }
  }
};

// This is the policy of sessions and interpreted models whose graph has these layers: frozen_ops<body::conv,
// body::dense>{}.
template <const auto&... Weights>
using frozen_ops = ops<&cards::quantization, &cards::quantize, &frozen_op<Weights>...>;

}  // namespace gradus
