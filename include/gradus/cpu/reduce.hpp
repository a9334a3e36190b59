// These are the kernels of reductions. The order of a sum depends on the shape alone: along the last axis it is sixteen
// lanes and a tree (cpu/sums.hpp), along earlier axes one chain per column, in order; at most 16 columns of 256 rows or
// more are trees as well.
#pragma once
#include "../base/build.hpp"

#include <cstring>
#include <limits>

#include "../ops/reduce.hpp"
#include "elementwise.hpp"
#include "sums.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

struct adding {
  static constexpr bool chooses = false;  // whether the result is one of the numbers
  template <class T>
  static constexpr T zero = T(0);
  template <class N>
  static GRADUS_INLINE N join(N a, N b) {
    return a + b;
  }
  template <class A, class T>
  static GRADUS_INLINE T row(const T* x, std::size_t n) {
    return n == 1 ? x[0] + T(0) : gradus::sum<A>(x, n);
  }
};
struct taking_max {
  static constexpr bool chooses = true;
  template <class T>
  static constexpr T zero =
      std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::min();
  template <class N>
  static GRADUS_INLINE N join(N a, N b) {
    return max(a, b);
  }
  template <class A, class T>
  static T row(const T* x, std::size_t n) {
    if constexpr (std::is_floating_point_v<T>) return maximum<A>(x, n);
    T m = zero<T>;  // any order gives the same integer, so the compiler may vectorize
    for (std::size_t i = 0; i < n; ++i) m = x[i] > m ? x[i] : m;
    return m;
  }
};
struct taking_min {
  static constexpr bool chooses = true;
  template <class T>
  static constexpr T zero =
      std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
  template <class N>
  static GRADUS_INLINE N join(N a, N b) {
    return min(a, b);
  }
  template <class A, class T>
  static T row(const T* x, std::size_t n) {
    T m = zero<T>;
    for (std::size_t i = 0; i < n; ++i) m = x[i] < m ? x[i] : m;
    return m;
  }
};

// This is the operand with its axes collapsed into groups, alternately kept and reduced, with their extents and
// strides. `over` calls visit(index, offset) for every kept, or every reduced, position.
struct reduction {
  int groups = 0, first_reduced = 0;
  std::int64_t extent[max_rank + 1] = {}, stride[max_rank + 1] = {};

  template <class S>
  explicit reduction(const S& s) : groups(s.raw(1)), first_reduced(s.raw(0)) {
    std::int64_t step = 1;
    for (int i = groups - 1; i >= 0; --i) extent[i] = s.dim(2 + i), stride[i] = step, step *= extent[i];
  }
  bool reduced(int group) const { return (group % 2 == 0) == (first_reduced != 0); }
  std::int64_t reduced_count() const {
    std::int64_t n = 1;
    for (int i = 0; i < groups; ++i)
      if (reduced(i)) n *= extent[i];
    return n;
  }
  // Calls visit(index, offset) for all positions over the groups that are reduced (or, with `which` false, kept), in
  // row-major order.
  template <class Visit>
  void over(bool which, Visit visit) const {
    std::int64_t index[max_rank + 1] = {}, offset = 0, n = 1;
    for (int i = 0; i < groups; ++i)
      if (reduced(i) == which) n *= extent[i];
    for (std::int64_t at = 0; at < n; ++at) {
      visit(at, offset);
      for (int i = groups - 1; i >= 0; --i) {
        if (reduced(i) != which) continue;
        offset += stride[i];
        if (++index[i] < extent[i]) break;
        offset -= stride[i] * extent[i], index[i] = 0;
      }
    }
  }
};

// Returns whether the columns of a row-major [n, m] are summed by the tree of a row: where they are few and long, one
// chain each would leave most of a register empty, and every addition would wait for the one before.
constexpr bool columns_are_trees(std::int64_t n, std::int64_t m) { return m <= 16 && n >= 256; }

// Reduces the columns first <= j < last of a row-major [n, m]: y[j] = join over i of x[i][j], one chain in order of i.
template <class How, class N, class T>
GRADUS_INLINE void reduce_columns(T* y, const T* x, std::int64_t n, std::int64_t m, std::int64_t first,
                                  std::int64_t last) {
  constexpr std::int64_t width = N::width, together = 8;
  if (last - first <= width) {  // the columns stay in one register
    const auto left = static_cast<std::size_t>(last - first);
    const auto chain = [&](auto read) __attribute__((always_inline)) {
      N acc(How::template zero<T>);
      for (std::int64_t i = 0; i < n; ++i) acc = How::join(acc, read(x + i * m + first));
      return acc;
    };
    if (left == N::width)
      chain([](const T* p) { return N::load(p); }).store(y + first);
    else if (left != 0)
      chain([left](const T* p) { return N::load_partial(p, left); }).store_partial(y + first, left);
    return;
  }
  // Eight rows are read at a time, so that memory is read in long runs.
  for (std::int64_t i = 0; i < n; i += together) {
    const std::int64_t rows = n - i < together ? n - i : together;
    const auto some = [&](std::int64_t j, auto read) __attribute__((always_inline)) {
      N acc = i == 0 ? N(How::template zero<T>) : read(y + j);
      const T* from = x + i * m + j;
      if (rows == together)
        for (std::int64_t r = 0; r < together; ++r) acc = How::join(acc, read(from + r * m));
      else
        for (std::int64_t r = 0; r < rows; ++r) acc = How::join(acc, read(from + r * m));
      return acc;
    };
    std::int64_t j = first;
    for (; j + width <= last; j += width) some(j, [](const T* p) { return N::load(p); }).store(y + j);
    if (const auto left = static_cast<std::size_t>(last - j); left != 0)
      some(j, [left](const T* p) { return N::load_partial(p, left); }).store_partial(y + j, left);
  }
}

// reduce_long_columns reduces all columns of a row-major [n, m], each by the tree of a row. Sixteen rows are m blocks
// of sixteen numbers, and each place in them is one lane of one column. fold_columns computes the tree's last part, on
// `lanes`.
template <class How, class N, class T>
GRADUS_INLINE void fold_columns(T* lanes, std::int64_t m) {  // results: the first m; a register fits behind 16 m
  for (std::int64_t half = 8 * m; half >= m; half /= 2)
    for (std::int64_t j = 0; j < half; j += static_cast<std::int64_t>(N::width))
      How::join(N::load(lanes + j), N::load(lanes + j + half)).store(lanes + j);
}
template <class How, class N, class T>
void reduce_long_columns(T* y, const T* x, std::int64_t n, std::int64_t m) {
  constexpr auto width = static_cast<std::int64_t>(N::width), run = static_cast<std::int64_t>(reduction_chunk);
  constexpr T zero = How::template zero<T>;
  using one = lane<T, typename N::policy>;
  alignas(64) T lanes[16 * 16 + 16];
  for (std::int64_t i = 0; i < n;) {
    const std::int64_t start = i, end = n - i < run ? n : i + run;
    for (T& l : lanes) l = zero;
    for (; i + 16 <= end; i += 16)
      for (std::int64_t j = 0; j < 16 * m; j += width)
        How::join(N::load(lanes + j), N::load(x + i * m + j)).store(lanes + j);
    for (std::int64_t j = 0; i < end && j < 16 * m; ++j)
      lanes[j] = How::join(one(lanes[j]), one(j < (end - i) * m ? x[i * m + j] : zero)).v;
    fold_columns<How, N>(lanes, m);
    for (std::int64_t j = 0; j < m; ++j) y[j] = start == 0 ? lanes[j] : How::join(one(y[j]), one(lanes[j])).v;
    i = end;
  }
}

struct keep_value {
  template <class T>
  constexpr T operator()(T x, std::int64_t) const {
    return x;
  }
};
struct divide_by_count {
  template <class T>
  constexpr T operator()(T x, std::int64_t n) const {
    if constexpr (std::is_floating_point_v<T>)
      return x / static_cast<T>(n);
    else
      return n == 0 ? T(0) : static_cast<T>(x / static_cast<T>(n));
  }
};

// Runs a reduction, divided by kept position or by column.
template <class How, class A, class S, class Finish>
void run_reduction(const S& s, std::byte* const* a, Finish finish) {
  dispatch_type<0, float, double, std::int32_t, std::int64_t, std::uint8_t>(s, [&]<class T>() {
    using N = number_of<T, A>;
    T* y = at<T>(a, 0);
    const T* x = at<const T>(a, 1);
    const int groups = s.raw(1);
    const bool last = (groups % 2 != 0) == (s.raw(0) != 0);  // whether the last group is reduced
    std::int64_t many = 1, kept = 1;
    for (int i = 0; i < groups; ++i) ((groups - 1 - i) % 2 == 0) == last ? many *= s.dim(2 + i) : kept *= s.dim(2 + i);
    const index_range mine = s.share(kept, last ? 1 : 64);
    if (many == 0) {
      for (std::int64_t i = mine.first; i < mine.last; ++i) y[i] = finish(How::template zero<T>, many);
      return;
    }
    constexpr bool by_rows = std::is_floating_point_v<T> || How::chooses;
    if (by_rows && last && groups <= 2) {
      if constexpr (by_rows)
        for (std::int64_t i = mine.first; i < mine.last; ++i)
          y[i] = How::template row<A>(x + i * many, static_cast<std::size_t>(many));
    } else if (!last && groups >= 2 && groups <= 3) {  // [n, m] or [a, n, m]: columns
      const std::int64_t m = s.dim(groups + 1), n = s.dim(groups);
      for (std::int64_t at = mine.first; at < mine.last;) {
        const std::int64_t outer = groups == 2 ? 0 : at / m, begin = outer * m;
        const std::int64_t end = begin + m < mine.last ? begin + m : mine.last;
        if (std::is_floating_point_v<T> && columns_are_trees(n, m)) {
          if constexpr (std::is_floating_point_v<T>) {
            T all[16];
            reduce_long_columns<How, N>(all, x + begin * n, n, m);
            for (std::int64_t i = at; i < end; ++i) y[i] = all[i - begin];
          }
        } else {
          reduce_columns<How, N>(y + begin, x + begin * n, n, m, at - begin, end - begin);
        }
        at = end;
      }
    } else {
      const reduction r(s);
      r.over(false, [&](std::int64_t to, std::int64_t from) {
        if (to < mine.first || to >= mine.last) return;
        T acc = How::template zero<T>;
        r.over(true, [&](std::int64_t, std::int64_t offset) {
          if constexpr (std::is_floating_point_v<T>)
            acc = How::join(lane<T, A>(acc), lane<T, A>(x[from + offset])).v;
          else
            acc = How::join(integer<T>(acc), integer<T>(x[from + offset])).v;
        });
        y[to] = acc;
      });
    }
    if constexpr (!std::is_same_v<Finish, keep_value>)
      for (std::int64_t i = mine.first; i < mine.last; ++i) y[i] = finish(y[i], many);
  });
}

}  // namespace detail

template <>
struct op_kernel<&cards::sum> {
  static constexpr bool divides = true;
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    detail::run_reduction<detail::adding, A>(s, a, detail::keep_value{});
  }
};
template <>
struct op_kernel<&cards::mean> {  // the mean of no elements is NaN, as in TensorFlow
  static constexpr bool divides = true;
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    detail::run_reduction<detail::adding, A>(s, a, detail::divide_by_count{});
  }
};
template <>
struct op_kernel<&cards::max> {
  static constexpr bool divides = true;
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    detail::run_reduction<detail::taking_max, A>(s, a, detail::keep_value{});
  }
};
template <>
struct op_kernel<&cards::min> {
  static constexpr bool divides = true;
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    detail::run_reduction<detail::taking_min, A>(s, a, detail::keep_value{});
  }
};
template <>
struct op_kernel<&cards::argmax> {
  static constexpr bool divides = true;
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<1, float, double, std::int32_t, std::int64_t, std::uint8_t>(s, [&]<class T>() {
      const detail::reduction r(s);
      if (r.reduced_count() == 0)
        raise(status::invalid_argument, "ArgMax: the axis that it searches has 0 elements; ", "feed at least one");
      const T* x = at<const T>(a, 1);
      std::int64_t *y = at<std::int64_t>(a, 0), kept = 1;
      for (int i = 0; i < r.groups; ++i)
        if (!r.reduced(i)) kept *= r.extent[i];
      const index_range mine = s.share(kept);
      r.over(false, [&](std::int64_t to, std::int64_t from) {
        if (to < mine.first || to >= mine.last) return;
        std::int64_t best = 0;
        T most = x[from];
        r.over(true, [&](std::int64_t i, std::int64_t offset) {
          if (x[from + offset] > most) most = x[from + offset], best = i;
        });
        y[to] = best;
      });
    });
  }
};
template <>
struct op_kernel<&cards::size> {
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double, std::int32_t, std::int64_t>(
        s, [&]<class T>() { *at<T>(a, 0) = static_cast<T>(s.dim(0)); });
  }
};
template <>
struct op_kernel<&cards::copy> {
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    std::memcpy(a[0], a[1], static_cast<std::size_t>(s.rows) * size_of(s.type(0)));
  }
};
using reduce_ops =
    op_list<&cards::sum, &cards::mean, &cards::max, &cards::min, &cards::argmax, &cards::size, &cards::copy>;

}  // namespace gradus
