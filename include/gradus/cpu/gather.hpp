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
GRADUS_INLINE void prefetch_gathered(const std::byte* table, std::size_t bytes, Index row, std::int64_t rows) {
  if (row < 0 || row >= rows) return;  // this is an error when it is that row's turn
  const std::byte* const at = table + static_cast<std::size_t>(row) * bytes;
  for (std::size_t k = 0; k < (bytes < gathered_first ? bytes : gathered_first); k += 64) __builtin_prefetch(at + k, 0, 2);
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
      const bool is_far = static_cast<std::size_t>(rows) * bytes > detail::near_table &&
                          mine.last - mine.first > detail::gathered_at_once;
      const std::int64_t ahead = is_far ? detail::gathered_ahead : mine.last - mine.first;
      for (std::int64_t i = mine.first; is_far && i < mine.last && i < mine.first + ahead; ++i)
        detail::prefetch_gathered(a[1], bytes, listed[i], rows);
      const auto copy_rows = [&](std::size_t n) __attribute__((always_inline)) {
        for (std::int64_t i = mine.first; i < mine.last; ++i) {
          if (i + ahead < mine.last) detail::prefetch_gathered(a[1], n, listed[i + ahead], rows);
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

using gather_ops = op_list<&cards::gather, &cards::rows_to_dense, &cards::one_hot>;

}  // namespace gradus
