// This computes gradients of filters whose extents are read when it runs, as products of two matrices: the numbers that
// the places of an image see under some taps, and the gradients of these places. Both are taken a few places at a time,
// as many as the first-level cache holds, for all tiles of some taps; sums lie in memory in between, which rounds
// nothing. What lies beside the image is copied together with zeros once for these tiles.
//
// Registers hold channels of the result, and the rows of a tile are taps of a row of a window; or the other way round,
// where that leaves fewer lanes empty. Where a row of a window has few numbers, a tile has taps of three rows.
#pragma once
#include "../base/build.hpp"

#include <cstring>

#include "kernel.hpp"
#include "window_sums.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

template <class T, class A>
struct filter_product {
  using N = pack<T, A>;
  static constexpr auto width = static_cast<std::int64_t>(N::width);

  // Computes the gradient, or the share of it that s says, from images x and their gradient `dy`, which is read by the
  // interface of dense_gradient (cpu/filter_gradient.hpp).
  template <class S, class G, class Up>
  [[gnu::noinline]] static void run(const S& s, const G& g, T* df, const T* x, const Up& dy) {
    constexpr std::int64_t together = 1 << 17;  // numbers of images, about as many as the second-level cache holds
    const std::int64_t size = g.h * g.w * g.in + g.oh * g.ow * g.out, group = size < together ? together / size : 1;
    const std::int64_t registers = whole(g.out) / width, parts = (registers + most_registers - 1) / most_registers;
    const std::int64_t run = g.kw * g.in, wide = (registers + parts - 1) / parts * width;
    const bool turned = is_turned(run < most_taps ? run : most_taps, g.out < wide ? g.out : wide);
    const std::int64_t grain = turned ? width : row_grain, most = most_taps / grain * grain;
    const std::int64_t pieces = (run + most - 1) / most,
                       tall = ((run + pieces - 1) / pieces + grain - 1) / grain * grain;
    // Rows of a window whose sums have room are computed together.
    const std::int64_t fitting = static_cast<std::int64_t>(most_sums) / (run * wide),
                       most_together = fitting < most_rows ? fitting : most_rows;
    const index_range mine = s.share(g.kh * pieces);
    for (std::int64_t i = 0; i < g.images || i == 0; i += group)
      for (std::int64_t p = mine.first, rows; p < mine.last; p += rows) {
        rows = turned || run >= few_taps ? 1 : mine.last - p < most_together ? mine.last - p : most_together;
        const std::int64_t first = p % pieces * tall, n = run - first < tall ? run - first : tall;
        T* const to = df + (p / pieces * run + first) * g.out;
        if (i == 0) std::memset(to, 0, static_cast<std::size_t>(rows * n * g.out) * sizeof(T));
        for (std::int64_t c = 0; c < g.out; c += wide)
          piece<G, Up>{.g = g,
                       .dy = dy,
                       .turned = turned,
                       .kh = p / pieces,
                       .rows = rows,
                       .first = first,
                       .n = n,
                       .c = c,
                       .wide = g.out - c < wide ? g.out - c : wide}
              .add({i, g.images - i < group ? g.images : i + group}, to + c, x);
      }
  }

private:
  static constexpr std::int64_t most_taps = 64, row_grain = 12, most_registers = 12;
  static constexpr std::int64_t few_taps = 32;  // in a row of a window
  static constexpr int most_rows = 3;           // of a window that a tile has taps of
  static constexpr std::int64_t room = 32768 / static_cast<std::int64_t>(sizeof(T));    // of both operands
  static constexpr std::int64_t copied = 65536 / static_cast<std::int64_t>(sizeof(T));  // from images
  static constexpr std::int64_t most_places = 256;                                      // of a block
  static constexpr auto most_sums = static_cast<std::size_t>(most_taps * most_registers * width);
  static constexpr int last = reads_parts<N> ? some_are_read : whole_register;
  static constexpr std::int64_t whole(std::int64_t n) { return (n + width - 1) / width * width; }

  // This is how many rows of a group a tile has.
  template <int Groups>
  static constexpr int tall_tile(int registers) {
    if constexpr (Groups == 0)
      return 6;
    else if constexpr (Groups == 1)
      return tile_registers == 2 && registers == 1 ? 12 : window_rows(registers);
    else if constexpr (tile_registers == 2)
      return 12 / Groups / registers;
    else
      return Groups == 2 ? (registers == 1 ? 9 : registers == 2 ? 6 : 4) : registers == 1 ? 9 : registers == 2 ? 4 : 3;
  }

  // Returns whether registers should hold taps, and the rows of a tile be channels of the result. Fewer than eight sums
  // in flight wait for one another.
  static bool is_turned(std::int64_t taps, std::int64_t channels) {
    const auto cost = [](std::int64_t rows, std::int64_t columns, std::int64_t tall) {
      const std::int64_t registers = whole(columns) / width;
      const std::int64_t sums = (rows < tall ? rows : tall) * (registers < tile_registers ? registers : tile_registers);
      return rows * registers * (sums < 8 ? 8 : sums) / sums;
    };
    return cost(channels, taps, tall_tile<0>(1)) * 5 < cost(taps, channels, taps) * 4;
  }

  // These are `count` places: the taps see numbers from at[p] on, those of the next row of the window `group` numbers
  // behind, and the gradient of a place is at up + p * up_step. Their products are added to sums of `tall` rows (of
  // each group) and `wide` columns, padded to whole registers. If the block begins, the sums are 0 before; if there is
  // a total, the sums are complete and are added to it.
  struct block {
    const T* const* at = nullptr;
    const T* up = nullptr;
    std::int64_t count = 0, group = 0, up_step = 0;
    std::int64_t tall, wide;
    T* sums;
    std::int64_t pitch;
    T* total = nullptr;
    bool begins = false;
  };
  // Groups are rows of the window, or 0 where the rows of a tile are channels.
  template <int Groups>
  static void multiply(const block& b) {
    constexpr int widest = Groups <= 1 || tile_registers == 2 ? tile_registers : tile_registers - 1;
    const std::int64_t registers = whole(b.wide) / width;
    std::int64_t panels = (registers + widest - 1) / widest;
    for (std::int64_t done = 0, many; done < registers; done += many, --panels) {
      many = (registers - done + panels - 1) / panels;
      const std::int64_t left = b.wide - (done + many - 1) * width;
      panel<Groups, widest>(b, done * width, many, static_cast<std::size_t>(left < width ? left : width));
    }
  }
  template <int Groups, int Registers>
  static void panel(const block& b, std::int64_t c, std::int64_t registers, std::size_t some) {
    if constexpr (Registers > 1)
      if (registers < Registers) return panel<Groups, Registers - 1>(b, c, registers, some);
    const auto compute = [&]<int Rows>(std::int64_t i, std::int64_t skip) {
      tile<Groups, Rows, Registers>(b, c, some, i, skip);
    };
    if constexpr (Groups == 1)
      detail::in_tiles<tall_tile<1>(Registers), 0>(0, b.tall, compute);
    else
      even_tiles<tall_tile<Groups>(Registers)>(b.tall, compute);
  }
  // Calls f(first, skip) as in_tiles does, with the least number of tiles, whose heights are about equal. It is for few
  // rows.
  template <int Most, class F>
  static void even_tiles(std::int64_t rows, const F& f) {
    if constexpr (Most > 1) {
      const std::int64_t tiles = (rows + Most - 1) / Most;
      if ((rows + tiles - 1) / tiles < Most) return even_tiles<Most - 1>(rows, f);
    }
    for (std::int64_t i = 0; i < rows; i += Most) {
      const std::int64_t start = i + Most <= rows ? i : rows - Most;
      f.template operator()<Most>(start, i - start);
    }
  }
  template <int Groups, int Rows, int Registers>
  [[gnu::noinline]] static void tile(const block& b, std::int64_t c, std::size_t some, std::int64_t i,
                                     std::int64_t skip) {
    constexpr int groups = Groups == 0 ? 1 : Groups;
    const std::int64_t group = b.tall * b.pitch;
    sums_of_rows<N, groups * Rows, Registers, last> sums(some);
    if (!b.begins) sums.template load<groups>(b.sums + i * b.pitch + c, b.pitch, group);
    const T* up = b.up + (Groups == 0 ? i : c);
    for (const T *const *at = b.at, *const *const end = at + b.count; at != end; ++at, up += b.up_step)
      if constexpr (Groups == 0)
        sums.add_one(up, *at + c);
      else
        sums.template add_one<groups>(*at + i, up, b.group);
    if (b.total != nullptr)
      sums.template accumulate<groups>(b.total + i * b.pitch + c, b.pitch, skip, group);
    else
      sums.template store<groups>(b.sums + i * b.pitch + c, b.pitch, skip, group);
  }

  // This computes n taps from `first` on of some rows of the window, for `wide` channels from c on.
  template <class G, class Up>
  struct piece {
    const G& g;
    const Up& dy;
    bool turned;
    std::int64_t kh, rows, first, n, c, wide;
    // These are the places that see numbers of the image alone.
    whole_windows inside{g.ow, n, g.sw* g.in, g.left* g.in - first, g.w* g.in};
    // Adds the sums of some images to the filters' gradient.
    [[gnu::noinline]] void add(index_range images, T* df, const T* x) const {
      alignas(64) T sums[most_sums], total[most_sums];
      const std::int64_t pitch = turned ? whole(n) : whole(wide), tall = turned ? wide : rows * n;
      exchange(df, [&total](const T& from, std::int64_t i) { total[i] = from; });
      // Where all places that see some row of the window see all of them, the first ones begin the sums and the last
      // ones complete them.
      const bool all = rows == 1 || (g.above == 0 && (g.oh - 1) * g.sh + g.kh <= g.h);
      block b{.tall = turned ? wide : n, .wide = turned ? n : wide, .sums = sums, .pitch = pitch};
      // Blocks of several rows of the window end where rows of places end, or are parts of one.
      const std::int64_t of_place = n > g.sw * g.in ? n : g.sw * g.in, fit = copied / (rows * (of_place + 2 * width));
      std::int64_t steps = room / (rows * n + whole(wide));
      if (rows > 1 && fit < steps) steps = fit < 1 ? 1 : fit;
      if (steps > most_places) steps = most_places;
      const std::int64_t parts = rows == 1 || steps >= g.ow ? 1 : (g.ow + steps - 1) / steps;
      for (std::int64_t image = images.first; image < images.last; ++image) {
        if (!all) clear_run<N>(sums, tall * pitch);
        for (std::int64_t oh = 0, end; oh < g.oh; oh = end) {
          const index_range seen = seen_rows(oh);
          for (end = oh + 1; end < g.oh; ++end)
            if (const index_range next = seen_rows(end); next.first != seen.first || next.last != seen.last) break;
          if (seen.first >= seen.last) continue;
          const std::int64_t unit = rows == 1 ? 1 : g.ow, units = (end - oh) * g.ow / unit;
          const std::int64_t together = steps < unit ? 1 : steps / unit,
                             blocks = (units + together - 1) / together * parts;
          const auto border = [&](std::int64_t i) {
            return oh * g.ow + units * (i / parts) / (blocks / parts) * unit + i % parts * g.ow / parts;
          };
          for (std::int64_t i = 0; i < blocks; ++i) {
            b.begins = all && i == 0;
            b.total = all && i + 1 == blocks ? total : nullptr;
            add_block(b, seen, image, {border(i), border(i + 1)}, x);
          }
        }
        if (!all)
          for (std::int64_t i = 0; i < tall * pitch; i += width)
            (N::load(total + i) + N::load(sums + i)).store(total + i);
      }
      exchange(df, [&total](T& to, std::int64_t i) { to = total[i]; });
    }

  private:
    // Returns which rows of the window, of those of the piece, a row of places sees.
    index_range seen_rows(std::int64_t oh) const {
      const visible v(oh * g.sh - g.above, g.kh, g.h);
      return {v.first < kh ? kh : v.first, v.last < kh + rows ? v.last : kh + rows};
    }
    [[gnu::noinline]] void add_block(block b, index_range seen, std::int64_t image, index_range places,
                                     const T* x) const {
      alignas(64) T up[static_cast<std::size_t>(room)],
          beside[static_cast<std::size_t>(copied + most_taps + 2 * width)];
      const T* at[static_cast<std::size_t>(most_places)];
      b.at = at, b.count = places.last - places.first;
      b.up = dy.at(g, image, c).template block<N>(g, places, wide, turned, up, b.up_step);
      b.group = locate(at, beside, x + (image * g.h + seen.first) * g.w * g.in, seen.last - seen.first, places);
      b.sums += (seen.first - kh) * n * b.pitch;
      if (turned)
        multiply<0>(b);
      else if (seen.last - seen.first == 1)
        multiply<1>(b);
      else if (seen.last - seen.first == 2)
        multiply<2>(b);
      else
        multiply<3>(b);
    }
    // Says for each of some places where the numbers begin that it sees, if row 0 of the image is at x, and returns how
    // far apart those of different rows are. What is partly beside the image is copied: number by number of its
    // places, or row by row of the image where places overlap and there is little of it.
    std::int64_t locate(const T** at, T* beside, const T* x, std::int64_t groups, index_range places) const {
      const std::int64_t line = g.w * g.in, step = g.sw * g.in, start = first - g.left * g.in;
      const std::int64_t top = places.first / g.ow, bottom = (places.last - 1) / g.ow;
      const std::int64_t begin = places.first - top * g.ow, stop = places.last - bottom * g.ow;
      x += (top * g.sh - g.above) * line;
      const bool as_numbers = turned && !reads_parts<N> && n % width != 0;  // registers are read whole
      if (!as_numbers && inside.last - inside.first < g.ow) {
        const std::int64_t from = top == bottom ? begin : 0, to = top == bottom ? stop : g.ow;
        const std::int64_t numbers = (to - from - 1) * step + n, apart = whole(numbers);
        const std::int64_t loops = ((turned ? wide : n) + 7) / 8 * ((whole(turned ? n : wide) / width + 2) / 3);
        if (groups > 1 || (step < n && apart <= loops * 8 * width && (bottom - top + 1) * apart <= copied)) {
          const std::int64_t down = g.sh < groups ? g.sh : groups;
          for (std::int64_t oh = top; oh <= bottom; ++oh, x += g.sh * line, beside += down * apart) {
            for (std::int64_t k = oh == top ? 0 : groups - down; k < groups; ++k)
              copy_framed<N>(beside + k * apart, x + k * line, from * step + start, numbers, line);
            const std::int64_t ends = oh == bottom ? stop : g.ow;
            for (std::int64_t ow = oh == top ? begin : 0; ow < ends; ++ow) *at++ = beside + (ow - from) * step;
          }
          return apart;
        }
      }
      const T* const blank = beside;
      clear_run<N>(beside, n);
      beside += whole(n);
      for (std::int64_t oh = top; oh <= bottom; ++oh, x += g.sh * line) {
        const std::int64_t ends = oh == bottom ? stop : g.ow;
        std::int64_t ow = oh == top ? begin : 0;
        const auto edge = [&](std::int64_t end) {
          for (; ow < end && ow < ends; ++ow) {
            const std::int64_t place = ow * step + start;
            *at++ = blank;
            if (place >= line || place + n <= 0) continue;
            copy_framed<N>(beside, x, place, n, line);
            at[-1] = beside, beside += whole(n);
          }
        };
        if (!as_numbers) {
          edge(inside.first);
          for (const std::int64_t end = inside.last < ends ? inside.last : ends; ow < end; ++ow)
            *at++ = x + (ow * step + start);
        }
        edge(ends);
      }
      return line;
    }
    // Calls f(number of the filters, its place in the sums).
    template <class F>
    void exchange(T* df, F f) const {
      for (std::int64_t k = 0; k < rows; ++k, df += g.kw * g.in * g.out)
        for (std::int64_t j = 0; j < n; ++j)
          for (std::int64_t r = 0; r < wide; ++r)
            f(df[j * g.out + r], turned ? r * whole(n) + j : (k * n + j) * whole(wide) + r);
    }
  };
};

}  // namespace gradus::detail
