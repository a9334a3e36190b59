// This cuts the places of a convolution, or the pixels of its gradient, into lines that tiles of registers run along:
// places that see the same taps of a window and lie equally far apart, in a row of an image, in a column of it, or at
// the same place of image after image. So tiles are high where images are narrow, and at the borders. What lines there
// are changes no bit, because each sum is one chain.
#pragma once
#include "../base/build.hpp"

#include "window_sums.hpp"

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
  static constexpr std::int64_t origin(const window_run& r) { return r.place - r.tap; }
  static constexpr std::int64_t tap_step() { return 1; }
  // Calls f for runs that have all positions.
  template <class F>
  GRADUS_INLINE void each_run(F f) const {
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

  // Returns where a run's first position would have its tap 0 if it saw that one.
  constexpr std::int64_t origin(const window_run& r) const { return r.place + r.tap / stride; }
  constexpr std::int64_t tap_step() const { return stride; }
  template <class F>
  GRADUS_INLINE void each_run(F f) const {
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

// This is a line of `count` positions: offsets of the first number of the operand and of the result, and how far it is
// to those of the next position.
struct window_line {
  std::int64_t from, from_step, to, to_step, count;
};

// Returns about how long the tiles of a line of n take. Fewer than eight sums in flight wait for one another.
constexpr std::int64_t line_cost(std::int64_t n) {
  constexpr std::int64_t most = window_rows(1), least = most / 3;
  constexpr auto of = [](std::int64_t height, std::int64_t all) {
    return (all + height - 1) / height * ((height < 8 ? 8 : height) + 2);
  };
  if (n < least || least == 0) return of(1, n);
  std::int64_t cost = of(least, n);
  for (const std::int64_t height : {most, most * 4 / 5, most * 2 / 3})
    if (height <= n && of(height, n) < cost) cost = of(height, n);
  return cost;
}

// Calls f(line, run of rows, run of columns) for lines that have all positions of the rows [first, last), which count
// through all images.
template <class Axis, class F>
GRADUS_INLINE void each_line(const Axis& down, const Axis& across, const tensor_extents& from, const tensor_extents& to,
                             std::int64_t first, std::int64_t last, F f) {
  for (std::int64_t row = first; row < last;) {
    // A part of an image, or some whole ones that are about as many numbers as a cache holds.
    constexpr std::int64_t together = 1 << 16, most_images = 20;
    const std::int64_t image = row / to.h, begin = row % to.h;
    std::int64_t images = 1, end = last - image * to.h < to.h ? last - image * to.h : to.h;
    if (begin == 0 && end == to.h) {
      const std::int64_t left = last / to.h - image, size = from.offset(1, 0, 0) + to.offset(1, 0, 0);
      const std::int64_t most = together / size < 1 ? 1 : together / size < most_images ? together / size : most_images;
      images = (left + most - 1) / most, images = (left + images - 1) / images;
    }
    down.each_run([&](const window_run& of_image) __attribute__((always_inline)) {
      const window_run rows = of_image.within(begin, end);
      if (rows.count <= 0) return;
      across.each_run([&](const window_run& columns) __attribute__((always_inline)) {
        const std::int64_t counts[] = {columns.count, rows.count, images};
        const std::int64_t from_steps[] = {columns.apart * from.channels, rows.apart * from.offset(0, 1, 0),
                                           from.offset(1, 0, 0)};
        const std::int64_t to_steps[] = {columns.step * to.channels, rows.step * to.offset(0, 1, 0),
                                         to.offset(1, 0, 0)};
        int along = 0;
        for (int i = 1; i < 3; ++i)  // compares the costs of a position
          if (line_cost(counts[i]) * counts[along] * 10 < line_cost(counts[along]) * counts[i] * 9) along = i;
        const int inner = along == 0 ? 1 : 0, outer = along == 2 ? 1 : 2;
        for (std::int64_t j = 0; j < counts[outer]; ++j)
          for (std::int64_t i = 0; i < counts[inner]; ++i)
            f(window_line{from.offset(image, rows.place, columns.place) + j * from_steps[outer] + i * from_steps[inner],
                          from_steps[along],
                          to.offset(image, rows.first, columns.first) + j * to_steps[outer] + i * to_steps[inner],
                          to_steps[along], counts[along]},
              rows, columns);
      });
    });
    row += images == 1 ? end - begin : images * to.h;
  }
}

}  // namespace gradus::detail
