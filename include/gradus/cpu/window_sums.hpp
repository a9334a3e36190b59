// This header has what convolutions are made of: sums over the numbers that windows see, a tile of them in registers,
// and ways to cut a result into tiles. A lane does what a single number would, so the size of a tile and the width of a
// register do not change the bits.
#pragma once
#include "../base/build.hpp"

#include <cstring>

#include "tile.hpp"
#include "windows.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// These load and store a run of channels that is no longer than a register.
template <class N>
GRADUS_INLINE N load_run(const typename N::value_type* p, std::size_t n) {
  return n == N::width ? N::load(p) : load_first<N>(p, n);
}
template <class N>
GRADUS_INLINE void store_run(N x, typename N::value_type* p, std::size_t n) {
  n == N::width ? x.store(p) : x.store_partial(p, n);
}

// Copies n numbers; what lies behind them, up to a register, is overwritten. The empty asm keeps compilers from calling
// memcpy or memset, which costs more than these few numbers.
template <class N, class T>
GRADUS_INLINE void copy_run(T* to, const T* from, std::int64_t n) {
  constexpr auto width = static_cast<std::int64_t>(N::width);
  std::int64_t i = 0;
  for (; i + width <= n; i += width) {
    N::load(from + i).store(to + i);
    asm volatile("");
  }
  if (i < n) load_first<N>(from + i, static_cast<std::size_t>(n - i)).store(to + i);
}
// Writes n zeros, and up to a register more.
template <class N, class T>
GRADUS_INLINE void clear_run(T* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += static_cast<std::int64_t>(N::width)) {
    N(T(0)).store(to + i);
    asm volatile("");
  }
}
// Copies the numbers [place, place + n) of a line of an image, with zeros where it ends. Up to two registers behind
// them are overwritten.
template <class N, class T>
GRADUS_INLINE void copy_framed(T* to, const T* line, std::int64_t place, std::int64_t n, std::int64_t end) {
  const visible v(place, n, end);
  if constexpr (N::width == 1) {
    std::memset(to, 0, static_cast<std::size_t>(n) * sizeof(T));
    if (v.first < v.last)
      std::memcpy(to + v.first, line + place + v.first, static_cast<std::size_t>(v.last - v.first) * sizeof(T));
  } else if (v.first >= v.last) {
    clear_run<N>(to, n);
  } else {
    clear_run<N>(to, v.first);
    copy_run<N>(to + v.first, line + place + v.first, v.last - v.first);
    clear_run<N>(to + v.last, n - v.last);
  }
}

#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int window_rows(int registers) { return registers == 1 ? 15 : tile_rows(registers); }
#else
constexpr int window_rows(int registers) { return tile_rows(registers); }
#endif

// The template argument Last says how many lanes of a tile's last register count: all (whole_register), a positive
// number, or as many as its argument says at run time (some_of_register); where the other operand is padded with
// numbers that may be read, only what is stored has to be cut (some_are_stored), and where sums are padded, only what
// is read (some_are_read).
inline constexpr int whole_register = 0, some_of_register = -1, some_are_stored = -2, some_are_read = -3;

// This holds Rows x Registers sums. add(x, row, step, y, y_stride, steps) adds x[r * row + p * step] * y[p * y_stride +
// q] over p.
template <class N, int Rows, int Registers, int Last>
struct sums_of_rows {
  using T = typename N::value_type;
  static constexpr auto width = static_cast<std::int64_t>(N::width);

  static constexpr std::uint32_t all_rows = (std::uint32_t{1} << Rows) - 1;

  N sums[static_cast<std::size_t>(Rows * Registers)];
  std::size_t some;

  GRADUS_INLINE explicit sums_of_rows(std::size_t n) : some(n) {
    each_sum([&](int i) __attribute__((always_inline)) { sums[i] = N(T(0)); });
  }
  GRADUS_INLINE void add(const T* x, std::int64_t row, std::int64_t step, const T* y, std::int64_t y_stride,
                         std::int64_t steps) {
    add(x, row, step, y, y_stride, steps, row_places{}, std::make_integer_sequence<int, (Rows + 2) / 3>{});
  }
  // Does the same for rows that lie one number apart.
  GRADUS_INLINE void add_close(const T* x, std::int64_t step, const T* y, std::int64_t y_stride, std::int64_t steps) {
    for (std::int64_t p = 0; p < steps; ++p) add_one(x + p * step, y + p * y_stride);
  }
  // Adds one step of such rows, or of Groups of such rows that are `group` numbers apart.
  template <int Groups = 1>
  GRADUS_INLINE void add_one(const T* x, const T* y, std::int64_t group = 0) {
    add_one<Groups>(x, group, y, row_places{});
  }
  // Does the same for rows that lie at x[from + places[r]]; rows whose bit in `which` is 0 are left out.
  GRADUS_INLINE void add_at(const T* x, std::int64_t from, const std::int64_t* places, std::int64_t step, const T* y,
                            std::int64_t y_stride, std::int64_t steps, std::uint32_t which) {
    if (which == all_rows)
      for (std::int64_t p = 0; p < steps; ++p)
        add_places<true>(x + (from + p * step), places, y + p * y_stride, which, row_places{});
    else
      for (std::int64_t p = 0; p < steps; ++p)
        add_places<false>(x + (from + p * step), places, y + p * y_stride, which, row_places{});
  }
  // Does the same for rows that are the image values under the taps of a filter, from tap First on: each line of the
  // filter has Run taps, lines of the image are Line numbers apart, and taps in lines outside `down` are left out.
  template <std::int64_t Run, std::int64_t Line, int First>
  GRADUS_INLINE void add_filter(const T* x, std::int64_t from, std::int64_t step, const T* y, std::int64_t y_stride,
                                std::int64_t steps, visible down) {
    const auto pixels = [&]<bool All>() __attribute__((always_inline)) {
      for (std::int64_t p = 0; p < steps; ++p)
        add_taps<Run, Line, First, All>(x, from + p * step, y + p * y_stride, down, row_places{});
    };
    if (down.first <= First / Run && down.last > (First + Rows - 1) / Run)
      pixels.template operator()<true>();
    else
      pixels.template operator()<false>();
  }
  GRADUS_INLINE void store(T* to, std::int64_t stride) const {
    each_row([&](int r, const N* v) __attribute__((always_inline)) { write(v, to + r * stride, register_places{}); });
  }
  // Stores the rows of each group from `skip` on.
  template <int Groups>
  GRADUS_INLINE void store(T* to, std::int64_t stride, std::int64_t skip, std::int64_t group) const {
    each_row([&](int r, const N* v) __attribute__((always_inline)) {
      if (r % (Rows / Groups) >= skip) write(v, to + place<Groups>(r, stride, group), register_places{});
    });
  }
  template <int Groups>
  GRADUS_INLINE void load(const T* from, std::int64_t stride, std::int64_t group) {
    each_row([&](int r, const N* v) __attribute__((always_inline)) {
      load_row(sums + (v - sums), from + place<Groups>(r, stride, group), register_places{});
    });
  }
  // Does the same for rows that lie at to[places[r]]; load_at() reads them again.
  GRADUS_INLINE void store_at(T* to, const std::int64_t* places) const {
    each_row([&](int r, const N* v) __attribute__((always_inline)) { write(v, to + places[r], register_places{}); });
  }
  GRADUS_INLINE void load_at(const T* from, const std::int64_t* places) {
    each_row([&](int r, const N* v)
                 __attribute__((always_inline)) { load_row(sums + (v - sums), from + places[r], register_places{}); });
  }
  // Adds the sums to `to`, for rows from `skip` on.
  GRADUS_INLINE void accumulate(T* to, std::int64_t stride, std::int64_t skip) const {
    each_row([&](int r, const N* v) __attribute__((always_inline)) {
      if (r >= skip) add_to(v, to + r * stride, register_places{});
    });
  }
  template <int Groups>
  GRADUS_INLINE void accumulate(T* to, std::int64_t stride, std::int64_t skip, std::int64_t group) const {
    each_row([&](int r, const N* v) __attribute__((always_inline)) {
      if (r % (Rows / Groups) >= skip) add_to(v, to + place<Groups>(r, stride, group), register_places{});
    });
  }

private:
  using memory = tiles<N, Rows, Registers, Last != whole_register>;
  using row_places = std::make_integer_sequence<int, Rows>;
  using register_places = std::make_integer_sequence<int, Registers>;

  template <int Groups>
  static GRADUS_INLINE std::int64_t place(int row, std::int64_t stride, std::int64_t group) {
    constexpr int of_group = Rows / Groups;
    return row % of_group * stride + row / of_group * group;
  }
  GRADUS_INLINE std::size_t last() const {
    return Last == whole_register ? N::width : Last < 0 ? some : static_cast<std::size_t>(Last);
  }
  GRADUS_INLINE std::size_t last_stored() const { return Last == some_are_read ? N::width : last(); }
  template <class F>
  GRADUS_INLINE void each_row(F f) const {
    [&]<int... R>(std::integer_sequence<int, R...>) __attribute__((always_inline)) {
      (f(R, sums + R * Registers), ...);
    }
    (row_places{});
  }
  // This is unrolled by pack expansion, because the sums must be registers.
  template <class F>
  static GRADUS_INLINE void each_sum(F f) {
    [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) { (f(I), ...); }
    (std::make_integer_sequence<int, Rows * Registers>{});
  }
  GRADUS_INLINE void read(N* v, const T* y) const {
    if constexpr (Last == whole_register || Last == some_are_stored)
      memory::read(v, y, register_places{});
    else
      memory::read_part(v, y, last(), register_places{});
  }
  // Rows are addressed from every third one, because a machine address adds one or two strides to a pointer.
  template <int... R, int... G>
  GRADUS_INLINE void add(const T* x, std::int64_t row, std::int64_t step, const T* y, std::int64_t y_stride,
                         std::int64_t steps, std::integer_sequence<int, R...>, std::integer_sequence<int, G...>) {
    const T* group[] = {x + 3 * G * row...};
    for (std::int64_t p = steps; p > 0; --p, y += y_stride) {
      N v[static_cast<std::size_t>(Registers)];
      read(v, y);
      (memory::multiply_add(sums + R * Registers, N(group[R / 3][R % 3 * row]), v, register_places{}), ...);
      ((group[G] += step), ...);
    }
  }
  template <int Groups, int... R>
  GRADUS_INLINE void add_one(const T* x, std::int64_t group, const T* y, std::integer_sequence<int, R...>) {
    N v[static_cast<std::size_t>(Registers)];
    read(v, y);
    (memory::multiply_add(sums + R * Registers, N(x[place<Groups>(R, 1, group)]), v, register_places{}), ...);
  }
  template <bool All, int... R>
  GRADUS_INLINE void add_places(const T* x, const std::int64_t* places, const T* y, std::uint32_t which,
                                std::integer_sequence<int, R...>) {
    N v[static_cast<std::size_t>(Registers)];
    read(v, y);
    ((All || (which >> R & 1u) != 0 ? memory::multiply_add(sums + R * Registers, N(x[places[R]]), v, register_places{})
                                    : void()),
     ...);
  }
  template <std::int64_t Run, std::int64_t Line, int First, bool All, int... R>
  GRADUS_INLINE void add_taps(const T* x, std::int64_t from, const T* y, visible down,
                              std::integer_sequence<int, R...>) {
    N v[static_cast<std::size_t>(Registers)];
    read(v, y);
    (add_tap<R, All>(v, x, from + (First + R) / Run * Line + (First + R) % Run, (First + R) / Run, down), ...);
  }
  template <int R, bool All>
  GRADUS_INLINE void add_tap(const N* v, const T* x, std::int64_t place, std::int64_t kh, visible down) {
    if (All || (kh >= down.first && kh < down.last))
      memory::multiply_add(sums + R * Registers, N(x[place]), v, register_places{});
  }
  template <int... Q>
  GRADUS_INLINE void write(const N* v, T* to, std::integer_sequence<int, Q...>) const {
    (store_run(v[Q], to + Q * width, Q + 1 < Registers ? N::width : last_stored()), ...);
  }
  template <int... Q>
  GRADUS_INLINE void load_row(N* v, const T* from, std::integer_sequence<int, Q...>) const {
    ((v[Q] = load_run<N>(from + Q * width, Q + 1 < Registers ? N::width : last_stored())), ...);
  }
  template <int... Q>
  GRADUS_INLINE void add_to(const N* v, T* to, std::integer_sequence<int, Q...>) const {
    (add_run(v[Q], to + Q * width, Q + 1 < Registers ? N::width : last_stored()), ...);
  }
  static GRADUS_INLINE void add_run(N v, T* to, std::size_t n) { store_run(load_run<N>(to, n) + v, to, n); }
};

// Adds rows to `to`, one after another, each `stride` after the one before, so that they overlap; rows before `skip`
// are left out. Each number of `to` is read and written once, because what was just written cannot be read again soon,
// unless it is read just as it was written. A row is n numbers with a register of zeros before and after it.
template <class N, class T>
GRADUS_INLINE void add_overlapping(const T* rows, std::int64_t pitch, std::int64_t n, std::int64_t skip,
                                   std::int64_t count, T* to, std::int64_t stride) {
  constexpr auto width = static_cast<std::int64_t>(N::width);
  const std::int64_t end = (count - 1) * stride + n;
  for (std::int64_t j = skip * stride; j < end; j += width) {
    const auto some = static_cast<std::size_t>(end - j < width ? end - j : width);
    std::int64_t r = j < n ? 0 : (j - n) / stride + 1;
    if (r < skip) r = skip;
    N v = load_run<N>(to + j, some);
    for (; r < count && r * stride < j + width; ++r) v = v + N::load(rows + r * pitch + width + j - r * stride);
    store_run(v, to + j, some);
  }
}

// Calls f(c, some) with a number type, a count of registers and what of the last counts (Last), for runs of n channels.
// Where n is a constant (not 0), what it does not need is not compiled. At most Widest registers are taken.
template <class A, class T, std::int64_t Constant, int Widest = tile_registers, class F>
GRADUS_INLINE void in_registers(std::int64_t n, F f) {
  using N = pack<T, A>;
  constexpr auto w = static_cast<std::int64_t>(N::width);
  constexpr bool parts = reads_parts<N> && N::width > 1;
  constexpr std::int64_t wide = Widest * w, rest = Constant % wide, pairs = Widest > 2 ? 2 * w : wide;
  constexpr int part = Constant == 0 ? some_of_register : static_cast<int>(rest % w);
  std::int64_t c = 0;
  if constexpr (Constant == 0 || Constant >= wide)
    for (; c + wide <= n; c += wide) f.template operator()<N, Widest, whole_register>(c, N::width);
  if constexpr (Widest > 2 && rest >= pairs)
    for (; c + pairs <= n; c += pairs) f.template operator()<N, 2, whole_register>(c, N::width);
  if constexpr (parts && rest % pairs > w) {
    f.template operator()<N, 2, part>(c, static_cast<std::size_t>(part));
  } else {
    if constexpr (Constant == 0 || rest % pairs >= w)
      for (; c + w <= n; c += w) f.template operator()<N, 1, whole_register>(c, N::width);
    if constexpr (parts && (Constant == 0 || rest % w != 0))
      if (c < n) f.template operator()<N, 1, part>(c, static_cast<std::size_t>(n - c));
    if constexpr (!parts && N::width > 1 && (Constant == 0 || rest % w != 0))
      for (; c < n; ++c) f.template operator()<lane<T, A>, 1, whole_register>(c, std::size_t{1});
  }
}

// Calls f(first, skip) with a count of rows, for tiles over the rows [first, last). The last tile may begin in the one
// before: `skip` of its rows are done already. Where there are `Constant` rows (not 0), tiles are about equal.
template <int Most, std::int64_t Constant, class F>
GRADUS_INLINE void in_tiles(std::int64_t first, std::int64_t last, F f) {
  const auto run = [&]<int Rows>() {
    for (std::int64_t i = first; i < last; i += Rows) {
      const std::int64_t start = i + Rows <= last ? i : last - Rows;
      f.template operator()<Rows>(start, i - start);
    }
  };
  if constexpr (Constant != 0) {
    constexpr std::int64_t tiles = (Constant + Most - 1) / Most;
    run.template operator()<static_cast<int>((Constant + tiles - 1) / tiles)>();
  } else {
    // This chooses the height of the least cost, where rows may be computed twice and a tile costs about two rows more
    // than it has. Without vectors it is one of two heights, because memory for code is scarce there.
    constexpr bool few = GRADUS_SIMD == 0;
    constexpr int heights[] = {Most, few ? 1 : Most * 4 / 5, few ? 1 : Most * 2 / 3, few ? 1 : Most / 3};
    int best = 1;
    std::int64_t least = 0;
    for (const int height : heights)
      if (const std::int64_t cost = (last - first + height - 1) / height * (height + 2);
          last - first >= height && (best == 1 || cost < least))
        best = height, least = cost;
    if (best == heights[0])
      run.template operator()<heights[0]>();
    else if (best == heights[1])
      run.template operator()<heights[1]>();
    else if (best == heights[2])
      run.template operator()<heights[2]>();
    else if (best == heights[3])
      run.template operator()<heights[3]>();
    else
      run.template operator()<1>();
  }
}

}  // namespace detail

}  // namespace gradus
