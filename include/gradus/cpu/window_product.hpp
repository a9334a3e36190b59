// This computes convolutions whose extents are read when it runs, and the gradients of their images: tiles of positions
// by registers of channels. Filters are packed into panels of as many channels as a tile has, so that a tile reads them
// one after the other; a panel has some of the terms of a sum, and sums lie in the result in between, which rounds
// nothing.
//
// Every number is one chain of fma over (kh, kw, channels), over the taps that its position sees. A tile whose
// positions see different taps leaves positions out, tap by tap.
#pragma once
#include "../base/build.hpp"

#include "gemm.hpp"
#include "window_sums.hpp"
#include "window_tiles.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// This is a convolution, or the gradient of its image. Tap (kh, kw) of a position is `depth` numbers of the operand:
// those at its tap 0, plus kh / down_step * line + kw / across_step * pixel. The tap's filters begin at kh * filter_row
// + kw * filter, with filter_pitch numbers from one of the operand's channels to the next.
template <class T>
struct window_problem {
  const T* x;
  const T* filters;
  T* y;
  std::int64_t kh, kw, depth, channels;
  std::int64_t down_step, across_step, line, pixel;
  std::int64_t filter_row, filter, filter_pitch;
  tensor_extents from, to;
};

template <class T, class A>
struct window_product {
  using N = pack<T, A>;
  using problem = window_problem<T>;
  static constexpr auto width = static_cast<std::int64_t>(N::width);

  // Returns whether it can compute this, and more than a single register of channels, for which lines are faster
  // (cpu/window_lines.hpp).
  static bool takes(const problem& g) { return g.channels > width && g.kh <= most_taps && g.kw <= most_taps; }
  // Returns whether there are as many terms as tiles of any positions need to be faster than lines, which begin sooner,
  // and enough positions for packed filters to pay.
  static bool is_deep(const problem& g, std::int64_t positions) {
    return positions >= 32 && g.kh * g.kw * g.depth >= (g.channels > tile_registers * width ? 64 : 32);
  }
  // Computes the rows of positions [first, last), which count through all images.
  template <class Axis>
  [[gnu::noinline]] static void run(const problem& g, const Axis& down, const Axis& across, std::int64_t first,
                                    std::int64_t last) {
    const std::int64_t registers = (g.channels + width - 1) / width, terms = g.kh * g.kw * g.depth;
    std::int64_t panels = (registers + tile_registers - 1) / tile_registers;
    alignas(64) T panel[static_cast<std::size_t>(room)];
    for (std::int64_t done = 0, many; done < registers; done += many, --panels) {
      many = (registers - done + panels - 1) / panels;
      const std::int64_t c = done * width, columns = many * width, left = g.channels - c - columns + width;
      const std::int64_t blocks = (terms * columns + room - 1) / room, steps = (terms + blocks - 1) / blocks;
      for (std::int64_t k = 0; k < terms; k += steps) {
        const std::int64_t end = terms - k < steps ? terms : k + steps;
        pack_panel(panel, g, c, columns, k, end);
        const work w{.g = &g,
                     .panel = panel,
                     .first = k,
                     .last = end,
                     .columns = columns,
                     .c = c,
                     .some = static_cast<std::size_t>(left < width ? left : width),
                     .prefetches = (last - first) * g.to.offset(0, 1, 0) > large};
        each_tile(down, across, g.from, g.to, first, last, window_rows(static_cast<int>(many)), tile_of(w, many));
      }
    }
  }

private:
  static constexpr std::int64_t most_taps = 16, large = 1 << 18;
  static constexpr std::int64_t room = 131072 / static_cast<std::int64_t>(sizeof(T));

  // This is a panel: terms [first, last) of the sums of `columns` channels from c on.
  struct work {
    const problem* g;
    const T* panel;
    std::int64_t first, last, columns, c;
    std::size_t some;
    bool prefetches;  // what it writes
  };
  using computing = void (*)(const work&, const window_tile&);

  static void pack_panel(T* to, const problem& g, std::int64_t c, std::int64_t columns, std::int64_t first,
                         std::int64_t last) {
    const std::int64_t wide = g.channels - c < columns ? g.channels - c : columns;
    for (std::int64_t k = first; k < last;) {
      const std::int64_t tap = k / g.depth, begin = k % g.depth;
      const std::int64_t end = last - k < g.depth - begin ? begin + last - k : g.depth;
      const matrix_operand<T> of_tap{g.filters + tap / g.kw * g.filter_row + tap % g.kw * g.filter, g.filter_pitch,
                                     false};
      pack_columns<N>(to, columns, of_tap, c, wide, begin, end);
      to += (end - begin) * columns, k += end - begin;
    }
  }

  // This computes tiles of so many registers. Where at most half of the positions are left, a lower tile does it.
  struct any_tile {
    const work* w;
    computing tall, low;
    int half;
    void operator()(window_tile& t) const {
      const bool few = t.rows <= half;
      t.fill(few ? half : t.tall);
      (few ? low : tall)(*w, t);
    }
  };
  template <int Registers = tile_registers>
  static any_tile tile_of(const work& w, std::int64_t registers) {
    // Where a tile has more than two registers, channels are never cut so that one has a single one.
    if constexpr (Registers > (tile_registers > 2 ? 2 : 1))
      if (registers < Registers) return tile_of<Registers - 1>(w, registers);
    constexpr int tall = window_rows(Registers), half = tall / 2;
    return {&w, &tile<Registers, tall>, &tile<Registers, half>, half};
  }

  static GRADUS_INLINE std::int64_t part(std::int64_t n, std::int64_t of) { return of == 1 ? n : n / of; }
  template <int Registers, int Rows>
  [[gnu::noinline]] static void tile(const work& w, const window_tile& t) {
    const problem& g = *w.g;
    sums_of_rows<N, Rows, Registers, some_are_stored> sums(w.some);
    if (w.first != 0)
      sums.load_at(g.y + w.c, t.to);
    else if (w.prefetches)
      for (int r = 0; r < Rows; ++r)  // the numbers of a large result are far away
        for (int q = 0; q < Registers; ++q) __builtin_prefetch(g.y + w.c + t.to[r] + q * width, 1);
    // Adds the terms from `term` on, as far as they are in the panel.
    const auto add = [&](std::int64_t kh, std::int64_t kw, std::int64_t taps, std::uint32_t which)
        __attribute__((always_inline)) {
      const std::int64_t term = (kh * g.kw + kw) * g.depth, end = term + taps * g.depth;
      const std::int64_t first = term < w.first ? w.first : term, last = end < w.last ? end : w.last;
      if (first < last)
        sums.add_at(g.x, part(kh, g.down_step) * g.line + part(kw, g.across_step) * g.pixel + first - term, t.from, 1,
                    w.panel + (first - w.first) * w.columns, w.columns, last - first, which);
    };
    if (t.alike) {
      const seen_taps down = t.seen[0][0], across = t.seen[1][0];
      const bool adjacent = g.pixel == g.depth;
      for (std::int64_t kh = down.first; kh < down.end; kh += g.down_step)
        if (adjacent && across.first < across.end)
          add(kh, across.first, across.end - across.first, sums.all_rows);
        else
          for (std::int64_t kw = across.first; kw < across.end; kw += g.across_step) add(kh, kw, 1, sums.all_rows);
    } else {
      // Bit r says whether position r sees a tap of the axis.
      std::uint32_t downs[most_taps] = {}, acrosses[most_taps] = {};
      for (int r = 0; r < Rows; ++r) {
        for (std::int64_t k = t.seen[0][r].first; k < t.seen[0][r].end; k += g.down_step)
          downs[k] |= std::uint32_t{1} << r;
        for (std::int64_t k = t.seen[1][r].first; k < t.seen[1][r].end; k += g.across_step)
          acrosses[k] |= std::uint32_t{1} << r;
      }
      for (std::int64_t kh = w.first / g.depth / g.kw; kh < g.kh && kh * g.kw * g.depth < w.last; ++kh)
        for (std::int64_t kw = 0; kw < g.kw; ++kw)
          if (const std::uint32_t which = downs[kh] & acrosses[kw]; which != 0) add(kh, kw, 1, which);
    }
    sums.store_at(g.y + w.c, t.to);
  }
};

}  // namespace gradus::detail
