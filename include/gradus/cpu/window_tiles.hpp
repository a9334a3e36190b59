// This cuts the places of a convolution, or the pixels of its gradient, into tiles of any positions. Those that see the
// same taps of a window follow one another through the rows of an image and through images, so that tiles are full
// where images are narrow, too. What tiles there are changes no bit, because each sum is one chain.
#pragma once
#include "../base/build.hpp"

#include "window_lines.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// These are the taps of a window that a position sees along an axis: those in [first, end), or every so many of them.
struct seen_taps {
  std::int32_t first, end;
  friend constexpr bool operator==(const seen_taps&, const seen_taps&) = default;
};

// These are the positions of a tile: offsets of the operand's number under a position's tap 0, which may lie beside the
// image, and of the first number of its result. If `alike`, all see the same taps.
struct window_tile {
  static constexpr int most = 16;
  std::int64_t from[most], to[most];
  seen_taps seen[2][most];  // down, across
  int tall, rows = 0;
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
  t.tall = tall;
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
        const auto seen = [](const window_run& r, std::int64_t step) {
          return seen_taps{static_cast<std::int32_t>(r.tap), static_cast<std::int32_t>(r.tap + r.taps * step)};
        };
        const seen_taps of_rows = seen(rows, down.tap_step()), of_columns = seen(columns, across.tap_step());
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
