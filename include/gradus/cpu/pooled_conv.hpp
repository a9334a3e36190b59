// Kernels of a convolution and the pool behind it in one (pass/fuse_pools.hpp). The convolution exists a few rows of a
// few channels at a time, on the stack. Every number comes from the operations that the separate kernels do, in their
// order, so the bits are theirs.
#pragma once
#include "../ops/pooled_conv.hpp"
#include "conv.hpp"
#include "elementwise.hpp"
#include "reduce.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// The pool behind a convolution, as ops/pooled_conv.hpp lowers it. Constants where the shape is known when compiling.
template <class S, bool = S::is_fixed>
struct pool_behind {
  std::int64_t h, w;
  bool relu;
  explicit pool_behind(const S& s) : h(s.raw(13)), w(s.raw(14)), relu(s.raw(15) != 0) {}
};
template <class S>
struct pool_behind<S, true> {
  static constexpr std::int64_t h = S::raw(13), w = S::raw(14);
  static constexpr bool relu = S::raw(15) != 0;
  explicit pool_behind(const S&) {}
};
inline constexpr unsigned char no_winner = 255;  // of a window whose numbers are all at relu's zero

// What conv2d_pool made: numbers of all images, then a byte for each.
template <class T>
const unsigned char* winners_of(const std::byte* packed, std::int64_t numbers) {
  return reinterpret_cast<const unsigned char*>(packed) + numbers * static_cast<std::int64_t>(sizeof(T));
}

// The gradient of a convolution as it is in the pooled gradient and the winners: a number goes to its winner's place,
// and zeros to the others. As dense_gradient.
template <class T>
struct unpooled_gradient {
  static constexpr std::int64_t at_once = 64;  // places
  const T* dy;
  const unsigned char* winners;
  std::int64_t ph, pw, down, across, out;

  template <class G>
  unpooled_gradient of_image(const G&, std::int64_t i) const {
    unpooled_gradient u = *this;
    u.dy += i * down * across * out, u.winners += i * down * across * out;
    return u;
  }
  // Places [ow, ow + many) of row oh, n channels from c.
  void write(std::int64_t oh, std::int64_t ow, std::int64_t many, std::int64_t c, std::int64_t n, T* to,
             std::int64_t pitch) const {
    const std::int64_t row = oh / ph;
    std::int64_t column = ow / pw, inside = ow % pw;
    for (std::int64_t k = 0; k < many; ++k, to += pitch) {
      const bool seen = row < down && column < across;
      const auto mark = static_cast<unsigned char>(oh % ph * pw + inside);
      const std::int64_t from = (row * across + column) * out + c;
      for (std::int64_t j = 0; j < n; ++j) to[j] = seen && winners[from + j] == mark ? dy[from + j] : T(0);
      if (++inside == pw) inside = 0, ++column;
    }
  }
  template <class N, int Registers, class G, class F>
  GRADUS_INLINE void places(const G&, std::int64_t oh, std::int64_t ow, std::int64_t many, std::int64_t c,
                            std::size_t some, F f) const {
    constexpr auto pitch = static_cast<std::int64_t>(N::width) * Registers;
    const std::int64_t n = pitch - static_cast<std::int64_t>(N::width) + static_cast<std::int64_t>(some);
    alignas(64) T rows[static_cast<std::size_t>(at_once * pitch)];
    for (std::int64_t first = 0; first < many; first += at_once) {
      const std::int64_t count = many - first < at_once ? many - first : at_once;
      write(oh, ow + first, count, c, n, rows, pitch);
      f(first, rows, pitch, count);
    }
  }
};
template <class T, class S>
unpooled_gradient<T> unpool(const S& s, const std::byte* packed, const T* dy) {
  const windows<S> g(s);
  const pool_behind<S> p(s);
  const std::int64_t down = g.oh / p.h, across = g.ow / p.w;
  return {dy, winners_of<T>(packed, g.images * down * across * g.out), p.h, p.w, down, across, g.out};
}

}  // namespace detail

// operands: images, filters, perhaps a bias
template <>
struct op_kernel<&cards::conv2d_pool> {
  static constexpr bool divides = true;

  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<1, float, double>(s, [&]<class T>() {
      using G = detail::windows<S>;
      const G g(s);
      const detail::pool_behind<S> p(s);
      const std::int64_t down = g.oh / p.h, across = g.ow / p.w;
      unsigned char* const winners = reinterpret_cast<unsigned char*>(a[0]) +
                                     g.images * down * across * g.out * static_cast<std::int64_t>(sizeof(T));
      const T* bias = s.value.types[3] == dtype::none ? nullptr : at<const T>(a, 3);
      const index_range mine = s.share(g.images * down);
      detail::in_registers<A, T, detail::known_windows<G>::out>(
          g.out, [&]<class N, int Registers, int Last>(std::int64_t c, std::size_t some) {
            constexpr auto pitch = static_cast<std::int64_t>(N::width) * Registers;
            constexpr std::int64_t columns = columns_at_once<S>(pitch), width = columns == 0 ? 1 : columns;
            const std::int64_t wide = columns != 0 ? width : room / (p.h * pitch) / p.w * p.w;
            alignas(64) T sums[static_cast<std::size_t>(columns != 0 ? held<S>(pitch) : room)];
            for (std::int64_t row = mine.first; row < mine.last; ++row)
              for (std::int64_t first = 0; first < across * p.w; first += wide) {
                const std::int64_t last = first + wide < across * p.w ? first + wide : across * p.w;
                for (std::int64_t r = 0; r < p.h; ++r)
                  detail::convolve_row<N, Registers, Last, whole_rows<S>(pitch)>(
                      g, row / down * g.oh + row % down * p.h + r, first, last, c, some, sums + r * wide * pitch, pitch,
                      at<const T>(a, 1), at<const T>(a, 2));
                const std::int64_t to = (row * across + first / p.w) * g.out + c;
                for (std::int64_t q = 0; q < (last - first) / p.w; ++q)
                  for (int k = 0; k < Registers; ++k) {
                    const std::int64_t lane = k * static_cast<std::int64_t>(N::width);
                    choose<N>(p, sums + q * p.w * pitch + lane, wide * pitch, pitch,
                              bias == nullptr ? nullptr : bias + c + lane, k + 1 < Registers ? N::width : some,
                              at<T>(a, 0) + to + q * g.out + lane, winners + to + q * g.out + lane);
                  }
              }
          });
    });
  }

private:
  static constexpr std::int64_t room = 64 * 64;  // numbers on the stack: a window of the largest pool, all registers
  // Columns of the convolution that are made at once, where the shape is known; else 0. A multiple of the pool's.
  template <class S>
  static constexpr std::int64_t columns_at_once(std::int64_t pitch) {
    if constexpr (S::is_fixed) {
      using P = detail::pool_behind<S>;
      const std::int64_t all = detail::windows<S>::ow / P::w * P::w, most = room / (P::h * pitch) / P::w * P::w;
      return all < most ? all : most;
    } else {
      return 0;
    }
  }
  template <class S>
  static constexpr std::int64_t held(std::int64_t pitch) {
    if constexpr (S::is_fixed)
      return detail::pool_behind<S>::h * columns_at_once<S>(pitch) * pitch;
    else
      return room;
  }
  // How many whole windows a row has, where a whole row is made at once.
  template <class S>
  static constexpr std::int64_t whole_rows(std::int64_t pitch) {
    if constexpr (S::is_fixed)
      if (columns_at_once<S>(pitch) == detail::windows<S>::ow) return detail::known_windows<detail::windows<S>>::across;
    return 0;
  }
  // One window's largest, and its place: that of max_pool and that of max_pool_grad.
  template <class N, class P, class T>
  static GRADUS_INLINE void choose(const P& p, const T* sums, std::int64_t line, std::int64_t pitch, const T* bias,
                                   std::size_t n, T* value, unsigned char* winner) {
    const N zero(T(0)), one(T(1)), added = bias == nullptr ? zero : detail::load_run<N>(bias, n);
    const auto at_place = [&](std::int64_t h, std::int64_t w) __attribute__((always_inline)) {
      N v = detail::load_run<N>(sums + h * line + w * pitch, n);
      if (bias != nullptr) v = formula<&cards::add>::at(v, added);
      return p.relu ? formula<&cards::relu>::at(v) : v;
    };
    N most = at_place(0, 0), largest = most, best = zero, place = zero;
    for (std::int64_t h = 0; h < p.h; ++h)
      for (std::int64_t w = 0; w < p.w; ++w, place = place + one) {
        const N next = at_place(h, w);
        const auto larger = next > largest;
        most = max(next, most), largest = select(larger, next, largest), best = select(larger, place, best);
      }
    if (p.relu) best = select(largest > zero, best, N(static_cast<T>(detail::no_winner)));
    detail::store_run(most, value, n);
    alignas(64) T places[N::width];
    best.store(places);
    for (std::size_t j = 0; j < n; ++j) winner[j] = static_cast<unsigned char>(places[j]);
  }
};

// operands: images, winners, dy
template <>
struct op_kernel<&cards::conv2d_pool_filter> {
  static constexpr bool divides = true;

  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      detail::filter_gradient::run<A>(s, at<T>(a, 0), at<const T>(a, 1), detail::unpool(s, a[2], at<const T>(a, 3)));
    });
  }
};

// operands: winners, dy. The order of `Sum` over all places of the convolution (cpu/reduce.hpp).
template <>
struct op_kernel<&cards::conv2d_pool_bias> {
  static constexpr bool divides = true;

  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      const detail::windows<S> g(s);
      const auto up = detail::unpool(s, a[1], at<const T>(a, 2));
      const index_range mine = s.share(g.out, wide);
      const bool trees = detail::columns_are_trees(g.images * g.oh * g.ow, g.out);
      for (std::int64_t c = mine.first; c < mine.last; c += wide) {
        const std::int64_t n = mine.last - c < wide ? mine.last - c : wide;
        T* const sums = at<T>(a, 0) + c;
        for (std::int64_t j = 0; j < n; ++j) sums[j] = T(0);
        trees ? add_trees(g, up, c, n, sums) : add_chains(g, up, c, n, sums);
      }
    });
  }

private:
  static constexpr std::int64_t wide = 16, at_once = 16;
  // f(numbers) for the places in order.
  template <class G, class T, class F>
  static GRADUS_INLINE void each_place(const G& g, const detail::unpooled_gradient<T>& up, std::int64_t c,
                                       std::int64_t n, F f) {
    T rows[static_cast<std::size_t>(wide * at_once)];
    for (std::int64_t i = 0; i < g.images; ++i) {
      const auto image = up.of_image(g, i);
      for (std::int64_t oh = 0; oh < g.oh; ++oh)
        for (std::int64_t ow = 0; ow < g.ow; ow += at_once) {
          const std::int64_t many = g.ow - ow < at_once ? g.ow - ow : at_once;
          image.write(oh, ow, many, c, n, rows, wide);
          for (std::int64_t k = 0; k < many; ++k) f(rows + k * wide);
        }
    }
  }
  template <class G, class T>
  static void add_chains(const G& g, const detail::unpooled_gradient<T>& up, std::int64_t c, std::int64_t n, T* sums) {
    each_place(
        g, up, c, n, [&](const T* x) __attribute__((always_inline)) {
          for (std::int64_t j = 0; j < n; ++j) sums[j] += x[j];
        });
  }
  template <class G, class T>
  static void add_trees(const G& g, const detail::unpooled_gradient<T>& up, std::int64_t c, std::int64_t n, T* sums) {
    alignas(64) T lanes[16 * 16 + 16] = {};
    std::int64_t at = 0;
    bool first = true;
    const auto fold = [&] {
      detail::fold_columns<detail::adding, detail::lane<T, portable>>(lanes, wide);
      for (std::int64_t j = 0; j < n; ++j) sums[j] = first ? lanes[j] : sums[j] + lanes[j];
      for (T& l : lanes) l = T(0);
      first = false, at = 0;
    };
    each_place(
        g, up, c, n, [&](const T* x) __attribute__((always_inline)) {
          T* lane = lanes + at % 16 * wide;
          for (std::int64_t j = 0; j < n; ++j) lane[j] += x[j];
          if (++at == static_cast<std::int64_t>(reduction_chunk)) fold();
        });
    if (at != 0) fold();
  }
};

// operands: winners, dy
template <>
struct op_kernel<&cards::conv2d_unpool> {
  static constexpr bool divides = true;

  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      const detail::windows<S> g(s);
      const auto up = detail::unpool(s, a[1], at<const T>(a, 2));
      const index_range mine = s.share(g.images * g.oh);
      for (std::int64_t row = mine.first; row < mine.last; ++row)
        up.of_image(g, row / g.oh).write(row % g.oh, 0, g.ow, 0, g.out, at<T>(a, 0) + row * g.ow * g.out, g.out);
    });
  }
};

using pooled_conv_ops =
    op_list<&cards::conv2d_pool, &cards::conv2d_pool_filter, &cards::conv2d_pool_bias, &cards::conv2d_unpool>;

}  // namespace gradus
