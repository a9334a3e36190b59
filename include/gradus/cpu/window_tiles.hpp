// This cuts the places of a convolution, or the pixels of its gradient, into tiles of registers. Positions that see the
// same taps of a window follow one another through the rows of an image and through images, so that tiles are full where
// images are narrow, too. What tiles there are changes no bit, because each sum is one chain.
#pragma once
#include "../base/build.hpp"

#include <cstdint>

#include "windows.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// These are the positions first, first + step, ... along an axis of the result. They see the taps tap, tap + 1, ... (or
// every so many, in a gradient) of a window; the first position sees the first of them at `place` of the operand, the
// next one `apart` from there.
struct window_run {
  std::int64_t first, step, count, tap, taps, place, apart;

  // Returns the part with positions in [begin, end).
  constexpr window_run within(std::int64_t begin, std::int64_t end) const {
    window_run r = *this;
    const std::int64_t skipped = begin > first ? (begin - first + step - 1) / step : 0;
    const std::int64_t past = end > first ? (end - first + step - 1) / step : 0;
    r.first += skipped * step, r.place += skipped * apart;
    r.count = (past < count ? past : count) - skipped;
    return r;
  }
};

// This is an axis of a convolution: n positions, with windows of k taps that begin at -before, `stride` apart, over
// `extent` pixels.
struct places_axis {
  std::int64_t n, k, stride, before, extent;

  // Returns where a run's first position has its tap 0.
  constexpr std::int64_t origin(const window_run& r) const { return r.place - r.tap; }
  constexpr std::int64_t tap_step() const { return 1; }
  // Calls f for runs that have all positions.
  template <class F>
  void each_run(F f) const {
    const whole_windows whole(n, k, stride, before, extent);
    for (std::int64_t at = 0; at < n;) {
      const std::int64_t start = at * stride - before, many = at == whole.first ? whole.last - whole.first : 0;
      const visible v(start, k, extent);
      f(window_run{at, 1, many > 0 ? many : 1, v.first, v.last - v.first, start + v.first, stride});
      at += many > 0 ? many : 1;
    }
  }
};
// This is an axis of the gradient of the image: `extent` positions, seen by n windows. A position is seen through every
// stride-th tap, at places in descending order.
struct pixels_axis {
  std::int64_t n, k, stride, before, extent;

  // Returns where a run's first position has its tap 0, or would have it if every tap were seen through a window.
  constexpr std::int64_t origin(const window_run& r) const { return r.place + r.tap / stride; }
  constexpr std::int64_t tap_step() const { return stride; }
  template <class F>
  void each_run(F f) const {
    for (std::int64_t phase = 0; phase < stride && phase < extent; ++phase) {
      const std::int64_t tap = (phase + before) % stride, nearest = (phase + before) / stride;
      const std::int64_t taps = tap < k ? (k - 1 - tap) / stride + 1 : 0, count = (extent - phase - 1) / stride + 1;
      // Seen from the pixels, the places lie in reverse order.
      const whole_windows whole(count, taps, 1, taps - 1 - nearest, n);
      for (std::int64_t at = 0; at < count;) {
        const std::int64_t many = at == whole.first ? whole.last - whole.first : 0, place = nearest + at;
        const std::int64_t skipped = place < n ? 0 : place - n + 1, end = place < taps ? place + 1 : taps;
        f(window_run{phase + at * stride, stride, many > 0 ? many : 1, tap + skipped * stride,
                     end > skipped ? end - skipped : 0, place - skipped, 1});
        at += many > 0 ? many : 1;
      }
    }
  }
};

// These are the extents of images in memory.
struct tensor_extents {
  std::int64_t h, w, channels;
  constexpr std::int64_t offset(std::int64_t image, std::int64_t row, std::int64_t column) const {
    return ((image * h + row) * w + column) * channels;
  }
};

// These are the taps of a window that a position sees along an axis: those in [first, end), or every so many of them
// where it is seen through every so many, which are those with this phase.
struct seen_taps {
  std::int32_t first, end, phase;
  seen_taps() = default;
  constexpr seen_taps(const window_run& r, std::int64_t step)
      : first(static_cast<std::int32_t>(r.tap)),
        end(static_cast<std::int32_t>(r.tap + r.taps * step)),
        phase(static_cast<std::int32_t>(r.tap % step)) {}
  friend constexpr bool operator==(const seen_taps&, const seen_taps&) = default;
};

// These are the positions of a tile: offsets of the operand's number under a position's tap 0, which may lie beside the
// image, and of the first number of its result. If `alike`, all see the same taps.
struct window_tile {
  static constexpr int most = 16;
  std::int64_t from[most], to[most];
  seen_taps seen[2][most];  // down, across
  int rows = 0;
  bool alike = true;

  // Repeats the last position, so that there are `all`.
  void fill(int all) {
    for (; rows < all; ++rows) {
      from[rows] = from[rows - 1], to[rows] = to[rows - 1];
      for (auto& s : seen) s[rows] = s[rows - 1];
    }
  }
};

// Calls f(tile) for tiles of `tall` positions that have all positions of the rows [first, last), which count through
// all images; the last tile may have fewer. Positions that see the same taps follow one another.
template <class Axis, class F>
[[gnu::noinline]] void each_tile(const Axis& down, const Axis& across, const tensor_extents& from,
                                 const tensor_extents& to, std::int64_t first, std::int64_t last, int tall,
                                 const F& f) {
  window_tile t;
  for (std::int64_t row = first; row < last;) {
    // A part of an image, or some whole ones that are about as many numbers as a cache holds.
    constexpr std::int64_t together = 1 << 16;
    const std::int64_t image = row / to.h, begin = row % to.h, size = from.offset(1, 0, 0) + to.offset(1, 0, 0);
    const std::int64_t whole = begin == 0 ? (last - row) / to.h : 0, most = together / size < 1 ? 1 : together / size;
    const std::int64_t images = whole < 1 ? 1 : whole < most ? whole : most;
    const std::int64_t end = last - image * to.h < to.h ? last - image * to.h : to.h;
    down.each_run([&](const window_run& of_image) {
      const window_run rows = of_image.within(begin, end);
      if (rows.count <= 0) return;
      across.each_run([&](const window_run& columns) {
        const seen_taps of_rows(rows, down.tap_step()), of_columns(columns, across.tap_step());
        if (t.rows > 0 && !(t.seen[0][0] == of_rows && t.seen[1][0] == of_columns)) t.alike = false;
        const std::int64_t from_step = columns.apart * from.channels, to_step = columns.step * to.channels;
        for (std::int64_t j = image; j < image + images; ++j)
          for (std::int64_t i = 0; i < rows.count; ++i) {
            std::int64_t x = from.offset(j, down.origin(rows) + i * rows.apart, across.origin(columns)),
                         y = to.offset(j, rows.first + i * rows.step, columns.first);
            for (std::int64_t left = columns.count; left > 0;) {
              const int many = left < tall - t.rows ? static_cast<int>(left) : tall - t.rows;
              for (int r = t.rows; r < t.rows + many; ++r, x += from_step, y += to_step)
                t.from[r] = x, t.to[r] = y, t.seen[0][r] = of_rows, t.seen[1][r] = of_columns;
              t.rows += many, left -= many;
              if (t.rows < tall) break;
              f(t);
              t.rows = 0, t.alike = true;
            }
          }
      });
    });
    row += whole < 1 ? end - begin : images * to.h;
  }
  if (t.rows > 0) f(t);
}

}  // namespace gradus::detail
