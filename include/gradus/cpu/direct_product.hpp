// This computes a matrix product on operands in place, or packed panel by panel on the stack, as most products are
// computed (cpu/matmul.hpp chooses). It takes a few numbers at a time where there is little to do, else tiles of
// registers.
#pragma once
#include "dots.hpp"
#include "few_rows.hpp"
#include "gemm.hpp"
#include "kernel.hpp"
#include "sums.hpp"
#include "vector_products.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

template <class T, class A>
struct direct_product {
  using N = pack<T, A>;
  using one = lane<T, A>;
  static constexpr auto width = static_cast<std::int64_t>(N::width);
  static constexpr std::int64_t depth = 256;                // of a packed panel of op(b), at most two registers wide
  static constexpr int row_registers = 2 * tile_registers;  // of the tile of a single row
  static constexpr std::int64_t row_columns = row_registers * width;

  using vectors = vector_products<T, A>;
  using packed = packed_product<T, A>;

  matrix_product<T> g;

  template <class E>
  GRADUS_INLINE void put(one x, std::int64_t i, std::int64_t j, const E& e) const {
    g.c[i * g.stride + j] = e(x, g.row + i, g.column + j, std::size_t{1}).v;
  }
  static GRADUS_INLINE T dot_in_place(const T* x, const T* y, std::size_t n) {
    return gradus::reduce<N>(
        n, T(0), [ x, y ](sum_block<N> acc, std::size_t i, std::size_t k) __attribute__((always_inline)) {
          const auto b = sixteen<N>(x + i, k), c = sixteen<N>(y + i, k);
          for (std::size_t j = 0; j < acc.packs; ++j) acc.at[j] = fma(b.at[j], c.at[j], acc.at[j]);
          return acc;
        },
        plus{});
  }
  // The code of such sums is long, so it is one function for all or, where all their extents are known, part of the
  // kernel.
  template <bool Inlined>
  GRADUS_INLINE one dot_of(const T* x, const T* y) const {
    if constexpr (Inlined)
      return dot_in_place(x, y, static_cast<std::size_t>(g.k));
    else
      return dot<A, T>(x, y, static_cast<std::size_t>(g.k));
  }
  template <bool Inlined, class Number>
  GRADUS_INLINE Number dots_of(const T* x, const T* y, std::int64_t stride, std::size_t count) const {
    if constexpr (Inlined) {
      return dots<Number>(x, 1, y, stride, g.k, count, std::make_integer_sequence<int, 16>{});
    } else {
      alignas(64) T sums[Number::width];
      shared_dots<Number>(sums, x, y, stride, g.k, count);
      return Number::load(sums);
    }
  }
  template <class Number>
  [[gnu::noinline]] static void shared_dots(T* to, const T* x, const T* y, std::int64_t stride, std::int64_t k,
                                            std::size_t count);
  // Returns whether this is a product of a single column. A share of a row's columns may be a single one as well, whose
  // numbers are not adjacent.
  bool is_column() const { return g.n == 1 && (g.b.transposed || g.b.stride == 1); }
  // Computes a product whose sums are dots. The numbers along k are adjacent in one operand at least; in the other,
  // they, its rows or its columns are. Columns is g.n where that is known, else 0.
  template <bool Inlined, std::int64_t Columns = 0, class E>
  GRADUS_INLINE void run_dots(const E& e) const {
    const T *a = g.a.at, *b = g.b.at;
    const bool column = Columns > 0 ? Columns == 1 : is_column();  // compilers leave out what a constant excludes
    if (column && g.a.step() == 1) {
      for (std::int64_t i = 0; i < g.m; ++i) put(dot_of<Inlined>(a + i * g.a.row(), b), i, 0, e);
    } else if (column) {
      std::int64_t i = 0;
      for (; i < g.m && (reads_parts<N> || i + width <= g.m); i += width) {
        const auto count = static_cast<std::size_t>(g.m - i < width ? g.m - i : width);
        const N sums = dots_of<Inlined, N>(b, a + i, g.a.step(), count);
        alignas(64) T all[N::width];
        sums.store(all);
        for (std::size_t r = 0; r < count; ++r) put(all[r], i + static_cast<std::int64_t>(r), 0, e);
      }
      for (; i < g.m; ++i) put(dots_of<Inlined, one>(b, a + i, g.a.step(), 1), i, 0, e);
    } else if (g.b.transposed) {
      for (std::int64_t j = 0; j < g.n; ++j) put(dot_of<Inlined>(a, b + j * g.b.stride), 0, j, e);
    } else {
      std::int64_t j = 0;
      for (; j < g.n && (reads_parts<N> || j + width <= g.n); j += width) {
        const auto count = static_cast<std::size_t>(g.n - j < width ? g.n - j : width);
        const N sums = dots_of<Inlined, N>(a, b + j, g.b.stride, count);
        e(sums, g.row, g.column + j, count).store_partial(g.c + j, count);
      }
      for (; j < g.n; ++j) put(dots_of<Inlined, one>(a, b + j, g.b.stride, 1), 0, j, e);
    }
  }
  template <class E>
  [[gnu::noinline]] void run_all_dots(const E& e) const {
    if constexpr (vectors::possible)
      if (is_column() || g.b.transposed)
        return vectors::trees(g, [&](T x, std::int64_t i, std::int64_t j) { put(one(x), i, j, e); });
    run_dots<false>(e);
  }

  // Computes a few numbers that are not dots, inlined into the kernel of this very shape. Returns false where it
  // cannot.
  template <std::int64_t Columns = 0, class E>
  GRADUS_INLINE bool run_small(const E& e) const {
    if (g.k == 0) return false;
    const bool column = Columns > 0 ? Columns == 1 : g.n == 1;
    if (column && g.a.row() == 1 && g.stride == 1 && (reads_parts<N> || g.m % width == 0)) {  // one chain per lane
      for (std::int64_t i = 0; i < g.m; i += width) {
        const auto count = static_cast<std::size_t>(g.m - i < width ? g.m - i : width);
        N acc(T(0));
        for (std::int64_t p = 0; p < g.k; ++p) {
          const T* from = g.a.at + p * g.a.step() + i;
          acc = fma(N(g.b.at[p * g.b.row()]), count == N::width ? N::load(from) : N::load_partial(from, count), acc);
        }
        if constexpr (std::is_same_v<E, as_is>) {
          count == N::width ? acc.store(g.c + i) : acc.store_partial(g.c + i, count);
        } else {
          alignas(64) T all[N::width];
          acc.store(all);
          for (std::size_t r = 0; r < count; ++r) put(all[r], i + static_cast<std::int64_t>(r), 0, e);
        }
      }
      return true;
    }
    if (column) {
      for (std::int64_t i = 0; i < g.m; ++i) {
        one acc(T(0));
        for (std::int64_t p = 0; p < g.k; ++p)
          acc = fma(one(g.a.at[i * g.a.row() + p * g.a.step()]), one(g.b.at[p * g.b.row()]), acc);
        put(acc, i, 0, e);
      }
      return true;
    }
    if ((g.b.transposed && g.k > 1) || !(reads_parts<N> || g.n % width == 0)) return false;
    for (std::int64_t i = 0; i < g.m; ++i)
      for (std::int64_t j = 0; j < g.n; j += width) {
        const auto count = static_cast<std::size_t>(g.n - j < width ? g.n - j : width);
        N acc(T(0));
        for (std::int64_t p = 0; p < g.k; ++p) {
          const T* from = g.b.at + (g.k == 1 ? 0 : p * g.b.stride) + j;
          acc = fma(N(g.a.at[i * g.a.row() + p * g.a.step()]),
                    count == N::width ? N::load(from) : N::load_partial(from, count), acc);
        }
        acc = e(acc, g.row + i, g.column + j, count);
        if (count == N::width)
          acc.store(g.c + i * g.stride + j);
        else
          acc.store_partial(g.c + i * g.stride + j, count);
      }
    return true;
  }

  // Computes the tiles of one column panel. Where the number of rows is known, they are of nearly the same height; else
  // they go from the tallest that fit down to single rows.
  template <int Registers, bool Part, std::int64_t Rows, class E>
  static void rows_of(const tile_work<T>& w, const E& e) {
    constexpr int most = tile_rows(Registers);
    constexpr std::int64_t tiles_down = (Rows + most - 1) / most;
    constexpr std::int64_t parts =
        Rows == 0 ? 1 : tiles_down;  // a division by zero is diagnosed where it is not reached, too
    constexpr int even = Rows == 0 ? most : static_cast<int>((Rows + parts - 1) / parts);
    // Eight sums in flight are too few: the tiles are then those of an unknown number of rows, with the tallest height
    // rounded down to a multiple of four.
    constexpr bool known = Rows != 0 && !(Registers == 1 && tiles_down > 1 && even <= 8);
    constexpr int tall = known ? even : Rows == 0 ? most : most / 4 * 4;
    constexpr int less = known ? tall - 1 : lower_tile_rows(Registers);
    constexpr std::int64_t tall_tiles = known ? Rows - tiles_down * less : 0;
    std::int64_t i = 0;
    tile_work<T> first = w;
    if (known && w.tall == Rows) {
      first.tall = tall_tiles * tall;
      i = tiles<N, tall, Registers, Part>::down(first, i, e);
    } else if (w.tall >= tall) {
      if constexpr (!known) first.tall = rows_in_tall<tall, less, Registers>(w.tall);
      i = tiles<N, tall, Registers, Part>::down(first, i, e);
    }
    if constexpr (!known || tall_tiles < tiles_down)
      if (w.tall > i && w.tall >= less) i = tiles<N, less, Registers, Part>::down(w, i, e);
    if constexpr (!known && N::width > 1)
      if (w.tall > i && w.tall >= less / 2) i = tiles<N, less / 2, Registers, Part>::down(w, i, e);
    if constexpr (tall > 1)
      if (w.tall > i) tiles<N, 1, Registers, Part>::down(w, i, e);
  }
  // Returns how many of the rows, at least `tall`, tiles of that height should compute, so that those and tiles of
  // `less` rows take the least time. A tile of fewer than ten sums takes that of ten, because they wait for one
  // another.
  template <int tall, int less, int Registers>
  static std::int64_t rows_in_tall(std::int64_t rows) {
    if constexpr (N::width == 1) {  // leaves rows for one or two lower tiles if fewer single rows are then left
      std::int64_t lower = 0;
      for (int many = 1; many < 3; ++many)
        if (const std::int64_t rest = rows - many * less; rest >= 0 && rest % tall < (rows - lower) % tall)
          lower = many * less;
      return rows - lower;
    }
    constexpr auto time = [](std::int64_t height) { return height * Registers > 10 ? height * Registers : 10; };
    const std::int64_t most = rows / tall;
    std::int64_t best = rows, least = time(tall) * (most + (rows % tall != 0 ? 1 : 0));  // tiles overlap
    for (std::int64_t talls = most; talls >= 0 && talls + 3 > most; --talls) {
      const std::int64_t rest = rows - talls * tall;
      const std::int64_t all = time(tall) * talls + time(less) * ((rest + less - 1) / less);
      if (all < least) best = talls * tall, least = all;
    }
    return best;
  }
  GRADUS_INLINE tile_work<T> work(std::int64_t j, std::int64_t wide) const {
    return {g.a.at, g.a.row(), g.a.step(), g.b.at + j, g.b.stride, g.c + j, g.stride,
            g.k,    g.m,       wide,       true,       true,       g.row,   g.column + j};
  }
  // Computes the columns from j on, as many as Registers hold, or `wide` if that is fewer. If Parts, tiles that read
  // parts of registers exist for them.
  template <int Registers, bool Parts, std::int64_t Rows, class F>
  void panel(std::int64_t j, std::int64_t wide, const F& finish) const {
    const bool part = wide < Registers * width;
    if (g.b.transposed || (part && !(Parts && reads_parts<N>)) || g.m >= 96)
      return packed_panel<Registers, Rows>(j, wide, finish);
    rows_in_place<Registers, Parts, Rows>(work(j, wide), part, in_tiles(finish));
    finish_part(finish, g.part(0, g.m, j, j + wide));
  }
  template <int Registers, bool Parts, std::int64_t Rows, class E>
  GRADUS_INLINE static void rows_in_place(const tile_work<T>& w, bool part, const E& e) {
    if constexpr (Parts && reads_parts<N>)
      if (part) return rows_of<Registers, true, Rows>(w, e);
    rows_of<Registers, false, Rows>(w, e);
  }
  // `finish` is an epilogue_call, which tiles leave to the caller, so that they are compiled once; or, for single
  // numbers at a time (on a board), the epilogue itself, which is applied to a sum before it is stored.
  static GRADUS_INLINE as_is in_tiles(const epilogue_call<T>&) { return {}; }
  template <class E>
  static GRADUS_INLINE const E& in_tiles(const E& e) {
    return e;
  }
  static GRADUS_INLINE void finish_part(const epilogue_call<T>& finish, const matrix_product<T>& part) { finish(part); }
  template <class E>
  static GRADUS_INLINE void finish_part(const E&, const matrix_product<T>&) {}
  template <int Registers, std::int64_t Rows, class F>
  [[gnu::noinline]] void packed_panel(std::int64_t j, std::int64_t wide, const F& finish) const;
  template <int Registers, std::int64_t Rows, class E>
  void packed_columns(std::int64_t j, std::int64_t wide, const E& e) const {
    constexpr std::int64_t columns = Registers * width;
    alignas(64) T block[static_cast<std::size_t>(depth * columns)];
    const std::int64_t blocks = (g.k + depth - 1) / depth, steps = ((g.k + blocks - 1) / blocks + 15) / 16 * 16;
    for (std::int64_t k0 = 0; k0 < g.k; k0 += steps) {
      const std::int64_t k1 = g.k - k0 < steps ? g.k : k0 + steps;
      pack_columns<N>(block, columns, g.b, j, wide, k0, k1);
      tile_work<T> w = work(j, wide);
      w.x += k0 * w.step, w.y = block, w.y_stride = columns, w.steps = k1 - k0, w.first = k0 == 0, w.last = k1 == g.k;
      rows_of<Registers, false, Rows>(w, e);
    }
  }

  // Computes one row, with more registers side by side, so that there are enough chains.
  template <class F>
  void single_row(const F& finish) const;
  // Computes one row whose sums stay in memory.
  void row_of_chains(const epilogue_call<T>& finish) const {
    vectors::chains(g.c, g.n, g.a.at, g.a.step(), g.b.at, g.b.stride, g.k);
    finish(g);
  }
  // Computes the columns from j on where their number is not known.
  template <class F>
  void columns_from(std::int64_t j, const F& finish) const;
  // This divides a known number of columns into panels of nearly the same width: it says how many registers the wide
  // panels and the others have.
  template <std::int64_t Columns>
  struct panels_of {
    static constexpr std::int64_t registers = (Columns + width - 1) / width;
    static constexpr std::int64_t panels = (registers + tile_registers - 1) / tile_registers;
    static constexpr int wide = Columns == 0 ? 2 : static_cast<int>((registers + panels - 1) / panels);
    static constexpr std::int64_t wide_panels = registers - panels * (wide - 1);
    static constexpr bool even = wide_panels == panels;  // then each share of the columns is whole panels
  };
  template <std::int64_t Rows, std::int64_t Columns, class F>
  void known_columns(const F& finish) const {
    using plan = panels_of<Columns>;
    constexpr bool parts = Columns % width != 0;
    constexpr std::int64_t wide = plan::wide * width, narrow = wide - width;
    std::int64_t j = 0;
    for (const std::int64_t end = plan::even ? g.n : plan::wide_panels * wide; j < end; j += wide)
      panel<plan::wide, parts && plan::even, Rows>(j, g.n - j < wide ? g.n - j : wide, finish);
    if constexpr (!plan::even)
      for (; j < g.n; j += narrow) panel<plan::wide - 1, parts, Rows>(j, g.n - j < narrow ? g.n - j : narrow, finish);
  }

  // Returns whether the result is by far the largest of the three matrices.
  bool is_shallow() const { return g.k <= vectors::most_terms && g.m >= vectors::results && g.n >= 128; }
  // Computes such a product row by row, so that the result is written in the order of memory.
  [[gnu::noinline]] void shallow(const epilogue_call<T>& finish) const {
    alignas(64) T block[static_cast<std::size_t>(depth * 2 * width)];
    // Whole registers of columns, so that the packed ones fit.
    const std::int64_t most = g.b.transposed ? depth * 2 / vectors::most_terms * width : g.n;
    for (std::int64_t j = 0; j < g.n; j += most) {
      matrix_product<T> some = g.part(0, g.m, j, g.n - j < most ? g.n : j + most);
      if (g.b.transposed) {
        const std::int64_t columns = (some.n + width - 1) / width * width;
        pack_columns<N>(block, columns, some.b, 0, some.n, 0, g.k);
        some.b = {block, columns, false};
      }
      std::int64_t i = 0;
      for (; i + vectors::results <= g.m; i += vectors::results) {
        vectors::few_terms(some.c + i * some.stride, some.stride, some.n, some.a.at + i * some.a.row(), some.a.row(),
                           some.a.step(), some.b.at, some.b.stride, g.k);
        finish(some.part(i, i + vectors::results, 0, some.n));
      }
      for (; i < g.m; ++i) direct_product{some.part(i, i + 1, 0, some.n)}.row_of_chains(finish);
    }
  }

  template <std::int64_t Rows, std::int64_t Columns, class E>
  GRADUS_INLINE void one_tile(std::int64_t steps, const E& e) const {
    tile_work<T> w = work(0, Columns);
    w.steps = steps, w.tall = Rows;
    tiles<N, static_cast<int>(Rows), static_cast<int>(Columns / width), false>::alone(w, e);
  }

  // Rows and Columns are those of the whole product where they are known, else 0. MayBeLarge is false where the known
  // extents rule a large product out.
  template <std::int64_t Rows, std::int64_t Columns, bool MayBeLarge, class E>
  void run(const E& e) const {
    if constexpr (N::width > 1)
      run_apart<Rows, Columns, MayBeLarge>(e);
    else
      run_by<Rows, Columns, MayBeLarge>(e, e);
  }
  // This is long, and a kernel whose product may be small stays short without it.
  template <std::int64_t Rows, std::int64_t Columns, bool MayBeLarge, class E>
  [[gnu::noinline]] void run_apart(const E& e) const {
    run_by<Rows, Columns, MayBeLarge>(e, epilogue_call<T>::template of<N>(e));
  }
  template <std::int64_t Rows, std::int64_t Columns, bool MayBeLarge, class E, class F>
  GRADUS_INLINE void run_by(const E& e, const F& finish) const {
    if (g.m == 0 || g.n == 0) return;
    if (g.k == 0) return empty_sums<A>(g, product_into::overwrite, e);
    if constexpr (N::width > 1 && MayBeLarge)
      if (packed::pays(g.m, g.n, g.k)) return packed{g, product_into::overwrite}.run(finish);
    if constexpr (Columns % row_columns == 0)
      if (g.m == 1 && !g.b.transposed && g.n % row_columns == 0) return single_row(finish);
    if constexpr (vectors::possible && Rows <= 1)
      if (vectors::fits_chains(g)) return row_of_chains(finish);
    using few = few_rows<T, A>;
    if constexpr (few::possible && Rows <= few::most)
      if ((Rows <= 1 || g.b.transposed) && few::fits_rows(g)) return few::run_rows(g, e);
    if constexpr (few::possible && Columns < 16)
      if (few::fits_columns(g)) return few::run_columns(g, e);
    if constexpr (vectors::possible && Rows != 1)
      if (is_shallow()) return shallow(finish);
    if constexpr (Columns > 0)
      known_columns<(Rows <= 128 ? Rows : 0), Columns>(finish);
    else
      columns_from(0, finish);
  }
};

template <class T, class A>
template <class Number>
void direct_product<T, A>::shared_dots(T* to, const T* x, const T* y, std::int64_t stride, std::int64_t k,
                                       std::size_t count) {
  dots<Number>(x, 1, y, stride, k, count, std::make_integer_sequence<int, 16>{}).store(to);
}

template <class T, class A>
template <int Registers, std::int64_t Rows, class F>
void direct_product<T, A>::packed_panel(std::int64_t j, std::int64_t wide, const F& finish) const {
  if constexpr (Registers > 2) {  // narrow and deep: a panel is read for every tile, the result only for every block
    const std::int64_t pair = 2 * width;
    for (; wide > width; j += pair, wide -= pair) packed_panel<2, Rows>(j, wide < pair ? wide : pair, finish);
    if (wide > 0) packed_panel<1, Rows>(j, wide, finish);
  } else {
    packed_columns<Registers, Rows>(j, wide, in_tiles(finish));
    finish_part(finish, g.part(0, g.m, j, j + wide));
  }
}
template <class T, class A>
template <class F>
void direct_product<T, A>::single_row(const F& finish) const {
  for (std::int64_t j = 0; j < g.n; j += row_columns)
    tiles<N, 1, row_registers, false>::down(work(j, row_columns), 0, in_tiles(finish));
  finish_part(finish, g);
}
template <class T, class A>
template <class F>
void direct_product<T, A>::columns_from(std::int64_t j, const F& finish) const {
  constexpr int most = tile_registers;
  constexpr bool parts = N::width > 1;  // panels may end within a register of several numbers
  constexpr auto least = [](std::int64_t registers) { return parts ? (registers - 1) * width + 1 : registers * width; };
  for (; g.n - j >= least(most); j += most * width)
    panel<most, parts, 0>(j, g.n - j < most * width ? g.n - j : most * width, finish);
  if constexpr (most > 2)
    for (; g.n - j >= least(2); j += 2 * width)
      panel<2, parts, 0>(j, g.n - j < 2 * width ? g.n - j : 2 * width, finish);
  for (; j < g.n; j += width) panel<1, parts, 0>(j, g.n - j < width ? g.n - j : width, finish);
}

}  // namespace gradus::detail
