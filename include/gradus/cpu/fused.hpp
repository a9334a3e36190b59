// These are the kernels of what pass/fuse.hpp makes around an expression: a product in front, or a reduction at the
// end. (The expression alone is in cpu/elementwise.hpp.) The numbers are those of the separate ops, bit for bit.
#pragma once
#include "../ops/fused.hpp"
#include "elementwise.hpp"
#include "matmul.hpp"
#include "reduce.hpp"
#include "sums.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// This is an expression over a matrix, computed at `count` places of one row. Operand K lies at a[First + K].
template <class A, expression X, int First>
struct matrix_formula {
  using T = element_t<X.type>;
  std::byte* const* a;
  std::int64_t columns;

  template <class N, int K>
  GRADUS_INLINE N operand(std::int64_t row, std::int64_t column, std::size_t count) const {
    using U = element_t<X.operand_type[K]>;
    const U* p = at<const U>(a, First + K);
    if constexpr (X.varies[K] == (along_rows | along_columns))
      return load_as<N>(p + row * columns + column, count);
    else if constexpr (X.varies[K] == along_columns)
      return load_as<N>(p + column, count);
    else
      return N(static_cast<T>(p[X.varies[K] == along_rows ? row : 0]));
  }
  template <class N, int Step>
  static GRADUS_INLINE void step(N* local) {
    constexpr auto& from = X.arg[Step];
    N& out = local[X.inputs + Step];
    if constexpr (X.op[Step]->operands == 1)
      out = formula<X.op[Step]>::at(local[from[0]]);
    else if constexpr (X.op[Step]->operands == 2)
      out = formula<X.op[Step]>::at(local[from[0]], local[from[1]]);
    else
      out = formula<X.op[Step]>::at(local[from[0]], local[from[1]], local[from[2]]);
  }
  // Computes the expression; its first `Given` operands are in `local` already.
  template <int Given, class N>
  GRADUS_INLINE N finish(N* local, std::int64_t row, std::int64_t column, std::size_t count) const {
    // This is certain to be inlined: a call would put every sum of a tile into memory.
    [&]<int... K>(std::integer_sequence<int, K...>) __attribute__((always_inline)) {
      ((void)(local[Given + K] = operand<N, Given + K>(row, column, count)), ...);
    }
    (std::make_integer_sequence<int, X.inputs - Given>{});
    [&]<int... Step>(std::integer_sequence<int, Step...>) __attribute__((always_inline)) {
      (step<N, Step>(local), ...);
    }
    (std::make_integer_sequence<int, X.steps>{});
    return local[X.inputs + X.steps - 1];
  }
  template <class N>
  GRADUS_INLINE N value(std::int64_t row, std::int64_t column, std::size_t count) const {
    N local[static_cast<std::size_t>(X.inputs + X.steps)];
    return finish<0>(local, row, column, count);
  }
  // Computes the expression; its operand 0 is a product's sums.
  template <class N>
  GRADUS_INLINE N operator()(N sums, std::int64_t row, std::int64_t column, std::size_t count) const {
    N local[static_cast<std::size_t>(X.inputs + X.steps)];
    local[0] = sums;
    return finish<1>(local, row, column, count);
  }
};

// This is the same, interpreted: it computes at most `chunk` places at a time.
template <class T>
class interpreted_formula {
public:
  interpreted_formula(const expression& x, const void* steps, std::byte* const* operands, std::int64_t columns)
      : x_(x), operands_(operands), columns_(columns), numbers_(x, steps) {}

  const T* value(std::int64_t row, std::int64_t column, std::int64_t count) {
    for (int k = 0; k < x_.inputs; ++k)
      numbers_.take(k, operands_[k], offset_in_matrix(x_, k, row, column, columns_),
                    (x_.varies[k] & along_columns) != 0, count);
    return numbers_.compute(count, nullptr);
  }

private:
  const expression& x_;
  std::byte* const* operands_;
  std::int64_t columns_;
  chunk_numbers<T> numbers_;
};

// Returns the sum of an expression's values over the columns of a row: value(row, i, n) returns the 16 from column i
// on, of which n count.
template <class N, class Value>
typename N::value_type sum_of_row(std::int64_t row, std::int64_t columns, Value value) {
  using T = typename N::value_type;
  return gradus::reduce<N>(
      static_cast<std::size_t>(columns), T(0),
      [&](sum_block<N> acc, std::size_t i, std::size_t n) {
        const sum_block<N> b = value(row, static_cast<std::int64_t>(i), n);
        for (std::size_t j = 0; j < acc.packs; ++j) acc.at[j] = acc.at[j] + b.at[j];
        return acc;
      },
      plus{});
}

}  // namespace detail

namespace detail {
// These are the formulas after a product, interpreted: they are applied to its numbers once those are stored.
template <class T>
struct interpreted_epilogue : as_is {
  interpreting<T>* formulas;  // in the kernel's frame: products copy the epilogue
  std::int64_t columns;

  void stored(std::int64_t row, std::int64_t last_row, std::int64_t column, std::int64_t last_column) const {
    if (column == 0 && last_column == columns) return formulas->run({row, last_row});
    for (; row < last_row; ++row) formulas->part_of_row(row, column, last_column - column, columns);
  }
};
}  // namespace detail

template <>
struct op_kernel<&cards::fused_matmul> {
  static constexpr bool divides = true;

  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    const std::int64_t columns = s.dim(3);
    dispatch_type<0, float, double>(s, [&]<class T>() {
      if constexpr (S::is_fixed) {
        multiply_operands_as<A, T>(s, a, detail::matrix_formula<A, S::value.formula, 2>{a, columns});
      } else {
        std::byte* result_and_operands[max_operands + 1] = {a[0], a[0]};
        for (int k = 1; k < s.value.formula.inputs; ++k) result_and_operands[k + 1] = a[2 + k];
        detail::interpreting<T> formulas(s.value.formula, s.steps, result_and_operands, s.dim(0) * s.dim(1),
                                         s.batch_size);
        multiply_operands_as<A, T>(s, a, detail::interpreted_epilogue<T>{{}, &formulas, columns});
      }
    });
  }
};

template <>
struct op_kernel<&cards::fused_reduction> {
  static constexpr bool divides = true;

  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      using N = detail::pack<T, A>;
      const std::int64_t columns = s.dim(1);
      T* y = at<T>(a, 0);
      if constexpr (S::is_fixed) {
        const detail::matrix_formula<A, S::value.formula, 1> f{a, columns};
        const auto block_at = [&](std::int64_t row, std::int64_t i, std::size_t n) __attribute__((always_inline)) {
          sum_block<N> b;
          if (n == 16) {
            for (std::size_t j = 0; j < b.packs; ++j)
              b.at[j] = f.template value<N>(row, i + static_cast<std::int64_t>(j * N::width), N::width);
            return b;
          }
          alignas(64) T padded[16] = {};  // +0 where there is no number, whatever the formulas give there
          for (std::size_t j = 0; j < n; j += N::width) {
            const std::size_t some = n - j < N::width ? n - j : N::width;
            f.template value<N>(row, i + static_cast<std::int64_t>(j), some).store_partial(padded + j, some);
          }
          return sum_block<N>::load(padded);
        };
        if (s.raw(2) == 0) {
          if (columns != 1) return sum_rows<N>(s, y, block_at);
          const index_range mine = s.share(s.dim(0));
          for (std::int64_t row = mine.first; row < mine.last; ++row)  // a tree of one number
            y[row] = (detail::lane<T, A>(T(0)) + f.template value<detail::lane<T, A>>(row, 0, 1)).v;
          return;
        }
        const auto add = [&](std::int64_t row, std::int64_t j, std::size_t n, T * sums) __attribute__((always_inline)) {
          (N::load(sums) + f.template value<N>(row, j, n)).store(sums);
        };
        sum_columns<static_cast<std::int64_t>(N::width)>(s, y, add);
      } else {
        detail::interpreted_formula<T> f{s.value.formula, s.steps, a + 1, columns};
        const T* numbers = nullptr;
        const auto block_at = [&](std::int64_t row, std::int64_t i, std::size_t n) {
          if (i % detail::chunk == 0)
            numbers = f.value(row, i, columns - i < detail::chunk ? columns - i : detail::chunk);
          return detail::sixteen<N>(numbers + i % detail::chunk, n);
        };
        if (s.raw(2) == 0) return sum_rows<N>(s, y, block_at);
        sum_columns<detail::chunk>(s, y, [&](std::int64_t row, std::int64_t j, std::size_t n, T* sums) {
          const T* add = f.value(row, j, static_cast<std::int64_t>(n));
          for (std::size_t i = 0; i < n; ++i) sums[i] += add[i];
        });
      }
    });
  }

private:
  // Computes the tree of docs/arithmetic.md over each row.
  template <class N, class S, class T, class Block>
  static void sum_rows(const S& s, T* y, Block block_at) {
    const std::int64_t columns = s.dim(1);
    const index_range mine = s.share(s.dim(0));
    for (std::int64_t row = mine.first; row < mine.last; ++row) {
      const T total = detail::sum_of_row<N>(row, columns, block_at);
      y[row] = s.raw(3) != 0 ? total / static_cast<T>(columns) : total;
    }
  }
  // Computes one chain down each column, or the tree of a long one: add(row, j, n, sums) adds the numbers at columns j
  // <= q < j + n.
  template <std::int64_t Wide, class S, class T, class Add>
  static void sum_columns(const S& s, T* y, Add add) {
    const std::int64_t rows = s.dim(0);
    const index_range mine = s.share(s.dim(1), Wide);
    const bool trees = detail::columns_are_trees(rows, s.dim(1));
    for (std::int64_t j = mine.first; j < mine.last; j += Wide) {
      const auto n = static_cast<std::size_t>(mine.last - j < Wide ? mine.last - j : Wide);
      alignas(64) T sums[static_cast<std::size_t>(Wide)] = {};
      if (trees)
        long_columns<(Wide < 16 ? Wide : 16)>(sums, rows, [&](std::int64_t row, T* to) { add(row, j, n, to); });
      else
        for (std::int64_t row = 0; row < rows; ++row) add(row, j, n, sums);
      for (std::size_t i = 0; i < n; ++i)
        y[j + static_cast<std::int64_t>(i)] = s.raw(3) != 0 ? sums[i] / static_cast<T>(rows) : sums[i];
    }
  }
  template <std::int64_t Pitch, class T, class Add>
  static void long_columns(T* sums, std::int64_t rows, Add add) {
    constexpr auto run = static_cast<std::int64_t>(reduction_chunk);
    for (std::int64_t first = 0; first < rows; first += run) {
      alignas(64) T lanes[static_cast<std::size_t>(16 * Pitch + 16)] = {};
      for (std::int64_t i = 0; i < run && first + i < rows; ++i) add(first + i, lanes + i % 16 * Pitch);
      detail::fold_columns<detail::adding, detail::lane<T, portable>>(lanes, Pitch);
      for (std::int64_t q = 0; q < Pitch; ++q) sums[q] = first == 0 ? lanes[q] : sums[q] + lanes[q];
    }
  }
};

using fused_ops = op_list<&cards::fused_matmul, &cards::fused_reduction>;

}  // namespace gradus
