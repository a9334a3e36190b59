// These kernels read rows, and add to rows, by number.
#pragma once
#include "../base/build.hpp"

#include <cstring>

#include "../ops/gather.hpp"
#include "interpret.hpp"
#include "kernel.hpp"
#include "number.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
template <const card* Op, class Index>
std::int64_t checked_row(Index row, std::int64_t position, std::int64_t rows) {
  constexpr std::string_view name = Op->name;  // the name alone: the card leads to all the code that builds graphs
  if (row < 0 || row >= rows)
    raise(status::invalid_argument, name, ": index ", row, " at position ", position, " is outside the table's ", rows,
          " rows; indices must be in [0, ", rows, "): check the ids, or give the table more rows");
  return row;
}
// Computes y += x over a run; packs and lanes round alike.
template <class A, class T>
void add_run(T* y, const T* x, std::int64_t n) {
  if constexpr (std::is_floating_point_v<T>) {
    using N = pack<T, A>;
    constexpr auto w = static_cast<std::int64_t>(N::width);
    std::int64_t i = 0;
    for (; i + w <= n; i += w) (N::load(y + i) + N::load(x + i)).store(y + i);
    for (; i < n; ++i) y[i] += x[i];
  } else {
    for (std::int64_t i = 0; i < n; ++i) y[i] = (integer<T>(y[i]) + integer<T>(x[i])).v;
  }
}
// Rows are prefetched this many ahead, into the second cache, which takes more of them at a time than the first. Of a
// long row only the first lines are prefetched: the processor guesses the rest. Nothing is prefetched of a table of
// fewer bytes than near_table, which is in a near cache, nor of few rows, which the processor reads at once anyway.
inline constexpr std::int64_t gathered_ahead = 128, gathered_at_once = 64;
inline constexpr std::size_t gathered_first = 256, near_table = 1 << 18;
template <class Index>
class look_ahead {
public:
  look_ahead(const std::byte* table, std::size_t bytes, const Index* listed, std::int64_t rows, const index_range& mine)
      : table_(table), bytes_(bytes), listed_(listed), rows_(rows), last_(mine.last) {
    if (GRADUS_SIMD == 0) return;  // a board has no cache to fill
    if (static_cast<std::size_t>(rows) * bytes <= near_table || mine.last - mine.first <= gathered_at_once) return;
    far_ = gathered_ahead;
    for (std::int64_t i = mine.first; i < mine.last && i < mine.first + far_; ++i) prefetch(i);
  }
  // Is called for every place of the list in order, when its row is read.
  GRADUS_INLINE void at(std::int64_t i) const {
    if (GRADUS_SIMD != 0 && far_ != 0 && i + far_ < last_) prefetch(i + far_);
  }

private:
  const std::byte* table_;
  std::size_t bytes_;
  const Index* listed_;
  std::int64_t rows_, last_, far_ = 0;
  GRADUS_INLINE void prefetch(std::int64_t i) const {
    const Index row = listed_[i];
    if (row < 0 || row >= rows_) return;  // this is an error when it is that row's turn
    const std::byte* const at = table_ + static_cast<std::size_t>(row) * bytes_;
    for (std::size_t k = 0; k < (bytes_ < gathered_first ? bytes_ : gathered_first); k += 64)
      __builtin_prefetch(at + k, 0, 2);
  }
};

// Computes y[j] = the sum over k of row rows[k] times weights[k], one chain in order of k, at the `count` columns that
// begin at column j, in `Together` registers. It calls `see(k)` for each row.
template <class N, int Together, class Index, class See>
GRADUS_INLINE void sum_rows(typename N::value_type* y, const typename N::value_type* table, std::int64_t width,
                            const Index* rows, const typename N::value_type* weights, std::int64_t each,
                            std::size_t count, See see) {
  using T = typename N::value_type;
  N sum[std::size_t{Together}];
  for (N& s : sum) s = N(T(0));
  for (std::int64_t k = 0; k < each; ++k) {
    see(k);
    const T* const row = table + static_cast<std::int64_t>(rows[k]) * width;
    const N weight(weights[k]);
    for (int r = 0; r < Together; ++r) {
      const T* const from = row + r * static_cast<int>(N::width);
      sum[r] = sum[r] + (count >= N::width ? N::load(from) : N::load_partial(from, count)) * weight;
    }
  }
  for (int r = 0; r < Together; ++r) {
    T* const to = y + r * static_cast<int>(N::width);
    if (count >= N::width)
      sum[r].store(to);
    else
      sum[r].store_partial(to, count);
  }
}
}  // namespace detail

template <>
struct op_kernel<&cards::gather> {
  static constexpr bool divides = true;
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<2, std::int32_t, std::int64_t>(s, [&]<class Index>() {
      const auto bytes = s.raw(1) == 0 ? std::size_t{0} : static_cast<std::size_t>(s.dim(1)) * size_of(s.type(0));
      const std::int64_t rows = s.raw(2) == 0 ? 0 : s.dim(2);
      const index_range mine = s.share(s.dim(0));
      const Index* const listed = at<Index>(a, 2);
      const detail::look_ahead<Index> ahead(a[1], bytes, listed, rows, mine);
      const auto copy_rows = [&](std::size_t n) __attribute__((always_inline)) {
        for (std::int64_t i = mine.first; i < mine.last; ++i) {
          ahead.at(i);
          const auto row = static_cast<std::size_t>(detail::checked_row<&cards::gather>(listed[i], i, rows));
          if (n != 0) std::memcpy(a[0] + static_cast<std::size_t>(i) * n, a[1] + row * n, n);
        }
      };
      if (!S::is_fixed && bytes == 4)  // a number, which a call of memcpy would take longest to copy
        copy_rows(4);
      else
        copy_rows(bytes);
    });
  }
};

template <>
struct op_kernel<&cards::gathered_sum> {
  static constexpr bool divides = true;
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      dispatch_type<2, std::int32_t, std::int64_t>(s, [&]<class Index>() {
        using N = detail::pack<T, A>;
        constexpr std::int64_t one = N::width, together = 4 * one;
        const std::int64_t each = s.dim(1), width = s.dim(2);
        const std::int64_t rows = s.raw(3) == 0 ? 0 : s.dim(3);  // no rows are no rows of the batch
        const index_range mine = s.share(s.dim(0));
        const T *const table = at<T>(a, 1), *const weights = at<T>(a, 3);
        const Index* const listed = at<Index>(a, 2);
        const detail::look_ahead<Index> ahead(a[1], static_cast<std::size_t>(width) * sizeof(T), listed, rows,
                                              {mine.first * each, mine.last * each});
        for (std::int64_t i = mine.first; i < mine.last; ++i) {
          const Index* const own = listed + i * each;
          T* const y = at<T>(a, 0) + i * width;
          const auto see = [&](std::int64_t k) __attribute__((always_inline)) {
            ahead.at(i * each + k);
            detail::checked_row<&cards::gather>(own[k], i * each + k, rows);
          };
          const auto seen = [](std::int64_t) {};
          const T* const by = weights + i * each;
          if constexpr (one == 1) {  // little code, for boards
            for (std::int64_t j = 0; j < width; ++j) {
              detail::lane<T, A> sum(T(0));
              for (std::int64_t k = 0; k < each; ++k) {
                if (j == 0) see(k);
                sum = sum + detail::lane<T, A>(table[own[k] * width + j]) * detail::lane<T, A>(by[k]);
              }
              y[j] = sum.v;
            }
            continue;
          }
          if (width == 1) {
            detail::sum_rows<detail::lane<T, A>, 1>(y, table, width, own, by, each, 1, see);
            continue;
          }
          std::int64_t j = 0;
          const auto some = [&]<int Together>(std::size_t count) {
            if (j == 0)
              detail::sum_rows<N, Together>(y, table, width, own, by, each, count, see);
            else
              detail::sum_rows<N, Together>(y + j, table + j, width, own, by, each, count, seen);
            j += Together * one;
          };
          if constexpr (one > 1)
            while (j + together <= width) some.template operator()<4>(N::width);
          while (j + one <= width) some.template operator()<1>(N::width);
          if constexpr (one > 1)
            if (j < width) some.template operator()<1>(static_cast<std::size_t>(width - j));
        }
      });
    });
  }
};

template <>
struct op_kernel<&cards::rows_to_dense> {  // divided by columns, so that every row's values are added in order
  static constexpr bool divides = true;
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double, std::int32_t, std::int64_t, std::uint8_t>(s, [&]<class T>() {
      dispatch_type<2, std::int32_t, std::int64_t>(s, [&]<class Index>() {
        const std::int64_t width = s.raw(1) == 0 ? 0 : s.dim(1), rows = s.raw(2) == 0 ? 0 : s.dim(2);
        const index_range mine = s.share(width, 64);
        const auto bytes = static_cast<std::size_t>(mine.last - mine.first) * sizeof(T);
        T* const y = at<T>(a, 0);
        if (mine.last - mine.first == width) {
          if (bytes * static_cast<std::size_t>(rows) != 0) std::memset(y, 0, bytes * static_cast<std::size_t>(rows));
        } else if (bytes != 0) {
          for (std::int64_t row = 0; row < rows; ++row) std::memset(y + row * width + mine.first, 0, bytes);
        }
        for (std::int64_t i = 0; i < s.dim(0); ++i) {
          const std::int64_t row = detail::checked_row<&cards::rows_to_dense>(at<Index>(a, 2)[i], i, rows);
          detail::add_run<A>(y + row * width + mine.first, at<T>(a, 1) + i * width + mine.first,
                             mine.last - mine.first);
        }
      });
    });
  }
};

template <>
struct op_kernel<&cards::one_hot> {
  static constexpr bool divides = true;
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<1, std::int32_t, std::int64_t>(s, [&]<class Index>() {
      const std::size_t bytes = size_of(s.type(0));
      const std::int64_t depth = s.dim(1);
      const index_range mine = s.share(s.dim(0));
      for (std::int64_t i = mine.first; i < mine.last; ++i) {
        const std::int64_t on = at<Index>(a, 1)[i];
        std::byte* const y = a[0] + static_cast<std::size_t>(i * depth) * bytes;
        for (std::int64_t k = 0; k < depth; ++k) std::memcpy(y + static_cast<std::size_t>(k) * bytes, a[3], bytes);
        if (on >= 0 && on < depth) std::memcpy(y + static_cast<std::size_t>(on) * bytes, a[2], bytes);
      }
    });
  }
};

using gather_ops = op_list<&cards::gather, &cards::gathered_sum, &cards::rows_to_dense, &cards::one_hot>;

}  // namespace gradus
