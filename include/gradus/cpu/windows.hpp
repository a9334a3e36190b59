// This header says where the windows of convolutions and pools lie in their images.
#pragma once
#include "../base/build.hpp"

#include <cstdint>

namespace gradus::inline GRADUS_BUILD::detail {

// These are the extents as ops/conv.hpp lowers them. They are constants where the shape is known when compiling:
// `known` is then true.
template <class S, bool = S::is_fixed>
struct windows {
  static constexpr bool known = false;
  std::int64_t images, h, w, in, oh, ow, out, kh, kw, sh, sw, above, left;
  explicit windows(const S& s)
      : images(s.dim(0)),
        h(s.raw(1)),
        w(s.raw(2)),
        in(s.raw(3)),
        oh(s.raw(4)),
        ow(s.raw(5)),
        out(s.raw(6)),
        kh(s.raw(7)),
        kw(s.raw(8)),
        sh(s.raw(9)),
        sw(s.raw(10)),
        above(s.raw(11)),
        left(s.raw(12)) {}
};
template <class S>
struct windows<S, true> {
  static constexpr bool known = true;
  std::int64_t images;
  static constexpr std::int64_t h = S::raw(1), w = S::raw(2), in = S::raw(3), oh = S::raw(4), ow = S::raw(5),
                                out = S::raw(6), kh = S::raw(7), kw = S::raw(8), sh = S::raw(9), sw = S::raw(10),
                                above = S::raw(11), left = S::raw(12);
  explicit windows(const S& s) : images(s.dim(0)) {}
};
// This is the part [first, last) of a window of k places at `start` that lies in [0, n).
struct visible {
  std::int64_t first, last;
  constexpr visible(std::int64_t start, std::int64_t k, std::int64_t n)
      : first(start < 0 ? -start : 0), last(n - start < k ? n - start : k) {}
};
// These are the windows that lie in [0, extent) as a whole, of n windows of k places that are `stride` apart and begin
// at -before.
struct whole_windows {
  std::int64_t first, last;
  constexpr whole_windows(std::int64_t n, std::int64_t k, std::int64_t stride, std::int64_t before, std::int64_t extent)
      : first(before > 0 ? (before + stride - 1) / stride : 0),
        last(extent + before >= k ? (extent + before - k) / stride + 1 : 0) {
    if (last > n) last = n;
    if (first > last) first = last;
  }
};

// These are the extents that are constants in a kernel that sees G, or 0.
template <class G>
struct known_windows {
  static constexpr std::int64_t in = 0, out = 0, kh = 0, kw = 0, run = 0, across = 0;
};
template <class G>
  requires G::known
struct known_windows<G> {
  static constexpr whole_windows whole{G::ow, G::kw, G::sw, G::left, G::w};
  static constexpr std::int64_t in = G::in, out = G::out, kh = G::kh, kw = G::kw, run = G::kw * G::in,
                                across = whole.last - whole.first;
};

}  // namespace gradus::detail
