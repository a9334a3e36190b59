// These kernels compute softmax and cross-entropy over rows: the largest number, then the exponentials with their sum,
// then the result, each in one sweep over a row that is in cache by then. The work is divided by rows.
#pragma once
#include "../ops/softmax.hpp"
#include "kernel.hpp"
#include "math.hpp"
#include "sums.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// Computes y = e^(x - shift) and returns its sum, in the order of every row sum. y may be x.
template <class A, class T>
T exponentials(T* y, const T* x, T shift, std::size_t n) {
  using N = pack<T, A>;
  return gradus::reduce<N>(
      n, T(0),
      [x, y, s = N(shift)](sum_block<N> acc, std::size_t i, std::size_t k) {
        for (std::size_t j = 0; j < acc.packs && j * N::width < k; ++j) {
          const std::size_t at = i + j * N::width, left = k - j * N::width;
          if (left >= N::width) {
            const N e = exp(N::load(x + at) - s);
            e.store(y + at);
            acc.at[j] = acc.at[j] + e;
          } else {  // lanes past the end give e^-inf = 0
            const N e = exp(N::load_partial(x + at, left, -std::numeric_limits<T>::infinity()) - s);
            e.store_partial(y + at, left);
            acc.at[j] = acc.at[j] + e;
          }
        }
        return acc;
      },
      plus{});
}
// Returns the sum of e^(x - shift), whose terms are not stored.
template <class A, class T>
T sum_of_exponentials(const T* x, T shift, std::size_t n) {
  using N = pack<T, A>;
  return gradus::reduce<N>(
      n, T(0),
      [x, s = N(shift)](sum_block<N> acc, std::size_t i, std::size_t k) {
        const auto b = sixteen<N>(x + i, k, -std::numeric_limits<T>::infinity());
        for (std::size_t j = 0; j < acc.packs; ++j) acc.at[j] = acc.at[j] + exp(b.at[j] - s);
        return acc;
      },
      plus{});
}
// Sets y to f(p, q) over a row, a pack of each at a time.
template <class A, class T, class F>
void map_rows(T* y, const T* p, const T* q, std::size_t n, F f) {
  using N = pack<T, A>;
  std::size_t j = 0;
  for (; j + N::width <= n; j += N::width) f(N::load(p + j), N::load(q + j)).store(y + j);
  if (j < n) f(N::load_partial(p + j, n - j), N::load_partial(q + j, n - j)).store_partial(y + j, n - j);
}
template <class S, class F>
void with_label_type(const S& s, F f) {
  dispatch_type<2, std::int32_t, std::int64_t>(s, f);
}
inline std::int64_t checked_label(std::int64_t label, std::int64_t row, std::int64_t classes) {
  if (label < 0 || label >= classes)
    raise(status::invalid_argument, "sparse_softmax_cross_entropy: label ", label, " of row ", row, " is outside [0, ",
          classes, "); check the labels or the number of classes");
  return label;
}
template <class T, class A>
T scalar_log(T x) {
  return log(lane<T, A>(x)).v;
}

// This holds rows of at most 16 numbers, as many rows at once as a register has lanes: lane r of at[j] is number j of
// row r. A single row would fill its registers in part and wait for itself; the trees and the functions are the same.
template <class N>
struct short_rows {
  using T = typename N::value_type;
  static constexpr auto width = static_cast<std::int64_t>(N::width);
#if GRADUS_SIMD && GRADUS_SHUFFLES
  static constexpr bool supported = N::width > 1;
#else
  static constexpr bool supported = false;
#endif
  static constexpr bool fit(std::int64_t n) { return supported && n <= 16; }

  N at[16], most, total;

  // Computes e^(x - most of its row), and the sum of each row.
  GRADUS_INLINE void exponentials(const T* x, std::int64_t n) {
    const N least(-std::numeric_limits<T>::infinity());
    N lanes[16];
    for (std::int64_t j = 0; j < 16; j += width) turned(x + j, n, n - j, -std::numeric_limits<T>::infinity(), at + j);
    for (std::int64_t j = 0; j < 16; ++j) lanes[j] = max(least, at[j]);
    for (std::int64_t half = 8; half >= 1; half /= 2)
      for (std::int64_t j = 0; j < half; ++j) lanes[j] = max(lanes[j], lanes[j + half]);
    most = lanes[0];
    for (std::int64_t j = 0; j < n; ++j) lanes[j] = at[j] = exp(at[j] - most);
    for (std::int64_t j = n; j < 16; ++j) lanes[j] = at[j] = N(T(0));
    for (std::int64_t half = 8; half >= 1; half /= 2)
      for (std::int64_t j = 0; j < half; ++j) lanes[j] = lanes[j] + lanes[j + half];
    total = lanes[0];
  }
  GRADUS_INLINE void store(T* y, std::int64_t n) const {
    for (std::int64_t j = 0; j < n; j += width) {
      alignas(64) T rows[static_cast<std::size_t>(width * width)];
      N block[N::width];
      for (std::int64_t i = 0; i < width; ++i) at[j + i].store(rows + i * width);
      turned(rows, width, width, T(0), block);
      for (std::int64_t i = 0; i < width; ++i) {
        if (n - j < width)
          block[i].store_partial(y + i * n + j, static_cast<std::size_t>(n - j));
        else
          block[i].store(y + i * n + j);
      }
    }
  }

private:
  // Gives the columns of `width` rows, which lie `stride` apart and have `count` numbers each; the others are `rest`.
  static GRADUS_INLINE void turned([[maybe_unused]] const T* x, [[maybe_unused]] std::int64_t stride,
                                   [[maybe_unused]] std::int64_t count, [[maybe_unused]] T rest,
                                   [[maybe_unused]] N* columns) {
#if GRADUS_SIMD && GRADUS_SHUFFLES
    if constexpr (supported) {
      typename N::reg r[N::width];
      for (std::int64_t i = 0; i < width; ++i)
        r[i] = (count >= width ? N::load(x + i * stride)
                : count > 0    ? N::load_partial(x + i * stride, static_cast<std::size_t>(count), rest)
                               : N(rest))
                   .raw();
      simd::transpose<N::width / 2>(r, std::make_index_sequence<N::width>{});
      for (std::int64_t i = 0; i < width; ++i) columns[i] = N(typename N::batch(r[i]));
    }
#endif
  }
};

}  // namespace detail

template <>
struct op_kernel<&cards::softmax> {
  static constexpr bool divides = true;
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      using N = detail::pack<T, A>;
      const auto n = static_cast<std::size_t>(s.dim(1));
      const index_range mine = s.share(s.dim(0));
      for (std::int64_t r = mine.first; r < mine.last; ++r) {
        T* y = at<T>(a, 0) + r * s.dim(1);
        const T* x = at<const T>(a, 1) + r * s.dim(1);
        const T total = detail::exponentials<A>(y, x, maximum<A>(x, n), n);
        detail::map_rows<A>(y, y, y, n, [t = N(total)](N e, N) { return e / t; });
      }
    });
  }
};
template <>
struct op_kernel<&cards::log_softmax> {
  static constexpr bool divides = true;
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      using N = detail::pack<T, A>;
      const auto n = static_cast<std::size_t>(s.dim(1));
      const index_range mine = s.share(s.dim(0));
      for (std::int64_t r = mine.first; r < mine.last; ++r) {
        T* y = at<T>(a, 0) + r * s.dim(1);
        const T* x = at<const T>(a, 1) + r * s.dim(1);
        const T most = maximum<A>(x, n);
        const T log_sum = detail::scalar_log<T, A>(detail::sum_of_exponentials<A>(x, most, n));
        detail::map_rows<A>(y, x, x, n, [m = N(most), l = N(log_sum)](N v, N) { return (v - m) - l; });
      }
    });
  }
};
template <>
struct op_kernel<&cards::softmax_grad> {  // y (dy - sum(dy y))
  static constexpr bool divides = true;
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      using N = detail::pack<T, A>;
      const auto n = static_cast<std::size_t>(s.dim(1));
      const index_range mine = s.share(s.dim(0));
      for (std::int64_t r = mine.first; r < mine.last; ++r) {
        T* dx = at<T>(a, 0) + r * s.dim(1);
        const T *dy = at<const T>(a, 1) + r * s.dim(1), *y = at<const T>(a, 2) + r * s.dim(1);
        detail::map_rows<A>(dx, dy, y, n, [t = N(dot<A>(dy, y, n))](N g, N v) { return v * (g - t); });
      }
    });
  }
};
template <>
struct op_kernel<&cards::log_softmax_grad> {  // dy - e^y sum(dy)
  static constexpr bool divides = true;
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      using N = detail::pack<T, A>;
      const auto n = static_cast<std::size_t>(s.dim(1));
      const index_range mine = s.share(s.dim(0));
      for (std::int64_t r = mine.first; r < mine.last; ++r) {
        T* dx = at<T>(a, 0) + r * s.dim(1);
        const T *dy = at<const T>(a, 1) + r * s.dim(1), *y = at<const T>(a, 2) + r * s.dim(1);
        detail::map_rows<A>(dx, dy, y, n, [t = N(gradus::sum<A>(dy, n))](N g, N v) { return g - exp(v) * t; });
      }
    });
  }
};
template <>
struct op_kernel<&cards::softmax_xent> {  // sum_j labels_j (log sum_k e^z_k - z_j), z = x - max x
  static constexpr bool divides = true;
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      const auto n = static_cast<std::size_t>(s.dim(1));
      T* y = at<T>(a, 0);
      const index_range mine = s.share(s.dim(0));
      for (std::int64_t r = mine.first; r < mine.last; ++r) {
        const T *x = at<const T>(a, 1) + r * s.dim(1), *labels = at<const T>(a, 2) + r * s.dim(1);
        const T most = maximum<A>(x, n);
        using N = detail::pack<T, A>;
        const N shift(most), log_sum(detail::scalar_log<T, A>(detail::sum_of_exponentials<A>(x, most, n)));
        y[r] = gradus::reduce<N>(
            n, T(0),
            [=](sum_block<N> acc, std::size_t i, std::size_t k) {
              const auto l = detail::sixteen<N>(labels + i, k), z = detail::sixteen<N>(x + i, k, most);
              for (std::size_t j = 0; j < acc.packs; ++j)
                acc.at[j] = fma(l.at[j], log_sum - (z.at[j] - shift), acc.at[j]);
              return acc;
            },
            detail::plus{});
      }
    });
  }
};
template <>
struct op_kernel<&cards::sparse_xent> {
  static constexpr bool divides = true;
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      detail::with_label_type(s, [&]<class L>() {
        const std::int64_t n = s.dim(1);
        T* y = at<T>(a, 0);
        const L* label = at<const L>(a, 2);
        const index_range mine = s.share(s.dim(0));
        std::int64_t r = mine.first;
        using rows = detail::short_rows<detail::pack<T, A>>;
        if constexpr (rows::supported)
          for (; rows::fit(n) && r + rows::width <= mine.last; r += rows::width) {
            const T* x = at<const T>(a, 1) + r * n;
            alignas(64) T labelled[rows::width];
            for (std::int64_t i = 0; i < rows::width; ++i)
              labelled[i] = x[i * n + detail::checked_label(label[r + i], r + i, n)];
            rows all;
            all.exponentials(x, n);
            (log(all.total) - (detail::pack<T, A>::load(labelled) - all.most)).store(y + r);
          }
        for (; r < mine.last; ++r) {
          const T* x = at<const T>(a, 1) + r * n;
          const auto k = detail::checked_label(label[r], r, n);
          const T most = maximum<A>(x, static_cast<std::size_t>(n));
          const T log_sum =
              detail::scalar_log<T, A>(detail::sum_of_exponentials<A>(x, most, static_cast<std::size_t>(n)));
          y[r] = log_sum - (x[k] - most);
        }
      });
    });
  }
};
template <>
struct op_kernel<&cards::sparse_xent_grad> {  // (softmax - onehot) dy
  static constexpr bool divides = true;
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      detail::with_label_type(s, [&]<class L>() {
        using N = detail::pack<T, A>;
        const std::int64_t n = s.dim(1);
        const auto wide = static_cast<std::size_t>(n);
        const T* dy = at<const T>(a, 3);
        const L* label = at<const L>(a, 2);
        const index_range mine = s.share(s.dim(0));
        std::int64_t r = mine.first;
        using rows = detail::short_rows<N>;
        if constexpr (rows::supported)
          for (; rows::fit(n) && r + rows::width <= mine.last; r += rows::width) {
            alignas(64) T labels[rows::width];
            for (std::int64_t i = 0; i < rows::width; ++i)
              labels[i] = static_cast<T>(detail::checked_label(label[r + i], r + i, n));
            rows all;
            all.exponentials(at<const T>(a, 1) + r * n, n);
            const N g = N::load(dy + r), mark = N::load(labels);
            for (std::int64_t j = 0; j < n; ++j) {
              const N e = all.at[j];
              all.at[j] = select(mark == N(static_cast<T>(j)), e - all.total, e) / all.total * g;
            }
            all.store(at<T>(a, 0) + r * n, n);
          }
        for (; r < mine.last; ++r) {
          T* dx = at<T>(a, 0) + r * n;
          const T* x = at<const T>(a, 1) + r * n;
          const auto k = detail::checked_label(label[r], r, n);
          const T total = detail::exponentials<A>(dx, x, maximum<A>(x, wide), wide);
          dx[k] = dx[k] - total;  // (e_k - total) / total = softmax_k - 1
          detail::map_rows<A>(dx, dx, dx, wide, [t = N(total), g = N(dy[r])](N e, N) { return e / t * g; });
        }
      });
    });
  }
};
using softmax_ops = op_list<&cards::softmax, &cards::log_softmax, &cards::softmax_grad, &cards::log_softmax_grad,
                            &cards::softmax_xent, &cards::sparse_xent, &cards::sparse_xent_grad>;

}  // namespace gradus
