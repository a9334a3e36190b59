// These kernels compute attention a head at a time: scores, mask, softmax and products, in blocks of 64 positions that
// stay in the first-level cache, read and written where they lie among the other heads.
//
// Arithmetic: every product is a chain of fused multiply-adds in order of the position summed over (for scores: of the
// place in the head). A causal chain may run on through weights of +0, to the end of the group of eight rows. Row sums
// are trees, as everywhere. A weight is e^(x - most) times 1 / sum.
#pragma once
#include "../ops/attention.hpp"
#include "kernel.hpp"
#include "math.hpp"
#include "sums.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

template <class T, class A>
struct attending {
  using N = pack<T, A>;
  static constexpr auto width = static_cast<std::int64_t>(N::width);
  static constexpr std::int64_t block = N::width > 1 ? 64 : 16;  // positions; fewer without SIMD, for a small stack
  static constexpr std::int64_t group = 8;                       // rows with the same reach

  // These are the terms first <= p < last of a product's sums. If there are none, the tile is not computed.
  struct reach {
    std::int64_t first, last;
  };
  struct left_operand {
    const T* at;
    std::int64_t row, step;
  };

  std::int64_t heads, time, each;
  bool causal;
  std::int64_t wide = heads * each, stride = 3 * wide;

  // Computes c = a b, or c += a b if `adds`, for a tile of Rows rows x Columns registers. If Part, only the first
  // `count` places of the register are used.
  template <int Rows, int Columns, bool Part>
  static GRADUS_INLINE void tile(T* c, std::int64_t c_row, bool adds, left_operand a, const T* b, std::int64_t b_row,
                                 std::int64_t steps, std::size_t count) {
    N acc[static_cast<std::size_t>(Rows)][static_cast<std::size_t>(Columns)];
    for (int r = 0; r < Rows; ++r)
      for (int q = 0; q < Columns; ++q) {
        const T* from = c + r * c_row + q * width;
        acc[r][q] = !adds ? N(T(0)) : Part ? N::load_partial(from, count) : N::load(from);
      }
    const T* x = a.at;
    for (std::int64_t p = 0; p < steps; ++p, b += b_row, x += a.step) {
      N w[static_cast<std::size_t>(Columns)];
      for (int q = 0; q < Columns; ++q) w[q] = Part ? N::load_partial(b, count) : N::load(b + q * width);
      for (int r = 0; r < Rows; ++r) {
        const N v(x[r * a.row]);
        for (int q = 0; q < Columns; ++q) acc[r][q] = fma(v, w[q], acc[r][q]);
      }
    }
    for (int r = 0; r < Rows; ++r)
      for (int q = 0; q < Columns; ++q) {
        T* to = c + r * c_row + q * width;
        if constexpr (Part)
          acc[r][q].store_partial(to, count);
        else
          acc[r][q].store(to);
      }
  }
  // Computes c [m, n] = a b, or += if `adds`. reaches(first row of a group, first column of a tile) returns a reach.
  template <class Reaches>
  static void multiply(T* c, std::int64_t c_row, bool adds, left_operand a, const T* b, std::int64_t b_row,
                       std::int64_t m, std::int64_t n, Reaches reaches) {
    constexpr int most = N::width >= 16 ? 4 : 2;  // registers side by side
    for (std::int64_t i = 0; i < m; i += group) {
      const std::int64_t rows = m - i < group ? m - i : group;
      const auto columns = [&]<int Rows, int Columns, bool Part>(std::int64_t j, std::size_t count) {
        const reach p = reaches(i, j);
        if (p.first >= p.last) return;
        const auto some = [&]<int R>(std::int64_t r) __attribute__((always_inline)) {
          tile<R, Columns, Part>(c + (i + r) * c_row + j, c_row, adds,
                                 {a.at + (i + r) * a.row + p.first * a.step, a.row, a.step}, b + p.first * b_row + j,
                                 b_row, p.last - p.first, count);
        };
        std::int64_t r = 0;
        for (; r + Rows <= rows; r += Rows) some.template operator()<Rows>(r);
        for (; r < rows; ++r) some.template operator()<1>(r);
      };
      std::int64_t j = 0;
      for (; j + most * width <= n; j += most * width) columns.template operator()<4, most, false>(j, N::width);
      if constexpr (most == 4)
        if (j + 2 * width <= n) columns.template operator()<8, 2, false>(j, N::width), j += 2 * width;
      for (; j + width <= n; j += width) columns.template operator()<8, 1, false>(j, N::width);
      if (j < n) columns.template operator()<8, 1, true>(j, static_cast<std::size_t>(n - j));
    }
  }
  // Transposes `n` positions of a head into columns: to[p * block + q] = from[q * from_row + p].
  void turn(T* to, const T* from, std::int64_t from_row, std::int64_t n) const {
    std::int64_t q = 0;
#if GRADUS_SIMD && GRADUS_SHUFFLES
    if constexpr (N::width > 1)
      for (; q + width <= n; q += width) {
        std::int64_t p = 0;
        for (; p + width <= each; p += width) {
          typename N::reg r[N::width];
          for (std::int64_t k = 0; k < width; ++k) r[k] = N::load(from + (q + k) * from_row + p).raw();
          simd::transpose<N::width / 2>(r, std::make_index_sequence<N::width>{});
          for (std::int64_t k = 0; k < width; ++k) N(typename N::batch(r[k])).store(to + (p + k) * block + q);
        }
        for (; p < each; ++p)
          for (std::int64_t k = 0; k < width; ++k) to[p * block + q + k] = from[(q + k) * from_row + p];
      }
#endif
    for (; q < n; ++q)
      for (std::int64_t p = 0; p < each; ++p) to[p * block + q] = from[q * from_row + p];
  }
  static std::int64_t rest(std::int64_t n) { return n < block ? n : block; }
  T scale() const { return static_cast<T>(1 / __builtin_sqrt(static_cast<double>(each))); }

  // Turns one row of scores, of which the first `seen` count, into weights; the other weights are 0.
  void weigh(T* x, std::int64_t seen) const {
    constexpr T least = -std::numeric_limits<T>::infinity();
    const N by(scale());
    const N most = N(maximum<A>(x, static_cast<std::size_t>(seen))) * by;
    const T total = gradus::reduce<N>(
        static_cast<std::size_t>(seen), T(0),
        [&](gradus::sum_block<N> acc, std::size_t i, std::size_t k) {
          for (std::size_t j = 0; j < acc.packs; ++j) {
            const std::size_t at = j * N::width;
            if (at >= k) break;
            if (k - at >= N::width) {
              const N e = exp(N::load(x + i + at) * by - most);
              e.store(x + i + at);
              acc.at[j] = acc.at[j] + e;
            } else {
              const N e = exp(N::load_partial(x + i + at, k - at, least) * by - most);
              e.store_partial(x + i + at, k - at);
              acc.at[j] = acc.at[j] + e;
            }
          }
          return acc;
        },
        plus{});
    const N share = N(T(1)) / N(total);
    for (std::int64_t j = 0; j < time; j += width) {
      const std::int64_t left = seen - j;
      const N w = left >= width ? N::load(x + j) * share
                  : left > 0    ? N::load_partial(x + j, static_cast<std::size_t>(left)) * share
                                : N(T(0));
      if (time - j >= width)
        w.store(x + j);
      else
        w.store_partial(x + j, static_cast<std::size_t>(time - j));
    }
  }

  void weights(T* y, const T* q) const;
  // Returns how many of `most` positions the group of rows from i on may attend to.
  std::int64_t seen(std::int64_t i, std::int64_t most) const { return causal && i + group < most ? i + group : most; }

  void mix(T* y, const T* weights, const T* values) const;

  // Computes the gradients of queries, keys and values; dy and y are [time, wide].
  void gradients(T* dq, const T* q, const T* weights, const T* y, const T* dy) const;

private:
  // Computes ds = w (dw - sum(w dw)) / sqrt(each), where sum(w dw) = sum(y dy). On entry, ds holds dw.
  void score_gradients(T* ds, const T* w, const T* y, const T* dy, std::int64_t n) const {
    const N mean(dot<A>(y, dy, static_cast<std::size_t>(each))), by(scale());
    const auto at = [&](N weight, N dw) __attribute__((always_inline)) { return weight * (dw - mean) * by; };
    std::int64_t j = 0;
    for (; j + width <= n; j += width) at(N::load(w + j), N::load(ds + j)).store(ds + j);
    const auto left = static_cast<std::size_t>(n - j);
    if (left != 0) at(N::load_partial(w + j, left), N::load_partial(ds + j, left)).store_partial(ds + j, left);
  }
};

template <class T, class A>
void attending<T, A>::weights(T* y, const T* q) const {
  const T* keys = q + wide;
  alignas(64) T turned[static_cast<std::size_t>(max_head_width * block)];
  for (std::int64_t k = 0; k < time; k += block) {
    const std::int64_t n = rest(time - k), from = causal ? k : 0;
    turn(turned, keys + k * stride, stride, n);
    multiply(y + from * time + k, time, false, {q + from * stride, stride, 1}, turned, block, time - from, n,
             [&](std::int64_t i, std::int64_t j) -> reach {
               return {0, causal && k + j >= from + i + group ? 0 : each};
             });
  }
  for (std::int64_t i = 0; i < time; ++i) weigh(y + i * time, causal ? i + 1 : time);
}

template <class T, class A>
void attending<T, A>::mix(T* y, const T* weights, const T* values) const {
  multiply(y, wide, false, {weights, time, 1}, values, stride, time, each, [&](std::int64_t i, std::int64_t) -> reach {
    return {0, seen(i, time)};
  });
}

template <class T, class A>
void attending<T, A>::gradients(T* dq, const T* q, const T* weights, const T* y, const T* dy) const {
  const T *keys = q + wide, *values = q + 2 * wide;
  T *dkeys = dq + wide, *dvalues = dq + 2 * wide;
  alignas(64) T turned[static_cast<std::size_t>(max_head_width * block)];
  alignas(64) T ds[static_cast<std::size_t>(block * block)];
  for (std::int64_t k = 0; k < time; k += block) {
    const std::int64_t n = rest(time - k), first = causal ? k : 0;
    turn(turned, values + k * stride, stride, n);
    for (std::int64_t r = first; r < time; r += block) {
      const std::int64_t rows = rest(time - r);
      const bool corner = causal && r == k;  // the block lies on the diagonal
      const auto along = [&](std::int64_t i, std::int64_t) -> reach { return {0, corner ? seen(i, n) : n}; };
      const auto down = [&](std::int64_t j, std::int64_t) -> reach { return {corner ? j : 0, rows}; };
      const T* w = weights + r * time + k;
      multiply(ds, block, false, {dy + r * wide, wide, 1}, turned, block, rows, n,
               [&](std::int64_t i, std::int64_t j) -> reach {
                 return {0, corner && j >= i + group ? 0 : each};
               });
      for (std::int64_t i = 0; i < rows; ++i)
        score_gradients(ds + i * block, w + i * time, y + (r + i) * wide, dy + (r + i) * wide,
                        corner ? seen(i / group * group, n) : n);
      multiply(dvalues + k * stride, stride, r != first, {w, 1, time}, dy + r * wide, wide, n, each, down);
      multiply(dkeys + k * stride, stride, r != first, {ds, 1, block}, q + r * stride, stride, n, each, down);
      multiply(dq + r * stride, stride, k != 0, {ds, block, 1}, keys + k * stride, stride, rows, each, along);
    }
  }
}

// These depend neither on a model's extents nor on its other ops: programs that link gradus::compiled compile none of
// them (compiled/kernels.cpp). `declared` is extern, and nothing there.
#if defined(GRADUS_COMPILED) && GRADUS_SIMD
#define GRADUS_SHARED_ATTENTION(declared, T)                                    \
  declared template void attending<T, fast>::weights(T*, const T*) const;       \
  declared template void attending<T, fast>::mix(T*, const T*, const T*) const; \
  declared template void attending<T, fast>::gradients(T*, const T*, const T*, const T*, const T*) const;
GRADUS_SHARED_ATTENTION(extern, float)
GRADUS_SHARED_ATTENTION(extern, double)
#endif

// Calls f(attending, index, sample, head) for this caller's share of the heads of all samples.
template <class T, class A, class S, class F>
void each_head(const S& s, F f) {
  const std::int64_t heads = s.dim(1);
  const index_range mine = s.share(s.dim(0) * heads);
  const attending<T, A> a{heads, s.dim(2), s.dim(3), s.raw(4) != 0};
  for (std::int64_t i = mine.first; i < mine.last; ++i) f(a, i, i / heads, i % heads);
}

}  // namespace detail

template <>
struct op_kernel<&cards::attention_weights> {
  static constexpr bool divides = true;
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      detail::each_head<T, A>(s, [&](const auto& h, std::int64_t i, std::int64_t sample, std::int64_t head) {
        h.weights(at<T>(a, 0) + i * h.time * h.time, at<const T>(a, 1) + sample * h.time * h.stride + head * h.each);
      });
    });
  }
};
template <>
struct op_kernel<&cards::attention_mix> {
  static constexpr bool divides = true;
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      detail::each_head<T, A>(s, [&](const auto& h, std::int64_t i, std::int64_t sample, std::int64_t head) {
        h.mix(at<T>(a, 0) + sample * h.time * h.wide + head * h.each, at<const T>(a, 1) + i * h.time * h.time,
              at<const T>(a, 2) + sample * h.time * h.stride + 2 * h.wide + head * h.each);
      });
    });
  }
};
template <>
struct op_kernel<&cards::attention_grad> {  // operands: packed, weights, result, gradient of the result
  static constexpr bool divides = true;
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      detail::each_head<T, A>(s, [&](const auto& h, std::int64_t i, std::int64_t sample, std::int64_t head) {
        const std::int64_t packed = sample * h.time * h.stride + head * h.each,
                           result = sample * h.time * h.wide + head * h.each;
        h.gradients(at<T>(a, 0) + packed, at<const T>(a, 1) + packed, at<const T>(a, 2) + i * h.time * h.time,
                    at<const T>(a, 3) + result, at<const T>(a, 4) + result);
      });
    });
  }
};
using attention_ops = op_list<&cards::attention_weights, &cards::attention_mix, &cards::attention_grad>;

}  // namespace gradus
