// These kernels compute a convolution and the pool behind it in one (pass/fuse_pools.hpp). The result of the
// convolution exists only a few rows of a few channels at a time, on the stack. Every number comes from the operations
// that the separate kernels do, in their order, so the bits are theirs.
#pragma once
#include "../base/build.hpp"

#include <cstring>

#include "../ops/pooled_conv.hpp"
#include "conv.hpp"
#include "elementwise.hpp"
#include "reduce.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// This describes the pool behind a convolution, as ops/pooled_conv.hpp lowers it. Its members are constants where the
// shape is known when compiling.
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
inline constexpr unsigned char no_winner = 255;  // marks a window whose numbers are all at relu's zero

// This is the gradient of a convolution, given by the pooled gradient and the winners: a number goes to its winner's
// place, and zeros go to the others. It has the interface of dense_gradient (cpu/conv.hpp).
template <class T, class S>
struct unpooled_gradient {
  static constexpr int at_once = [] {  // how many places
    if constexpr (S::is_fixed) return windows<S>::ow < 64 ? static_cast<int>(windows<S>::ow) : 64;
    return 64;
  }();
  const T* dy;
  const unsigned char* winners;
  std::int64_t oh = 0;
  [[no_unique_address]] windows<S> seen;
  [[no_unique_address]] pool_behind<S> pool;

  unpooled_gradient(const S& s, const std::byte* packed, const T* gradient)
      : dy(gradient), winners(reinterpret_cast<const unsigned char*>(packed)), seen(s), pool(s) {
    winners += seen.images * numbers() * static_cast<std::int64_t>(sizeof(T));
  }
  template <class G>
  unpooled_gradient at(const G&, std::int64_t image, std::int64_t channel) const {
    unpooled_gradient u = *this;
    u.dy += image * numbers() + channel, u.winners += image * numbers() + channel;
    return u;
  }
  template <class G>
  unpooled_gradient row(const G&, std::int64_t of) const {
    unpooled_gradient u = *this;
    u.oh = of;
    return u;
  }
  // Writes places [ow, ow + many) of the row, n channels each: each window's number at its winner's place, and zeros
  // elsewhere. With vectors it goes place by place over the channels; without, it writes zeros first, and then the
  // numbers where the winners say. Small numbers are ints, because a board's registers have 32 bits.
  template <bool Vectors>
  void write(std::int64_t ow, int many, int n, T* to, int pitch) const {
    const int pw = static_cast<int>(pool.w), first = static_cast<int>(oh % pool.h) * pw;
    const std::int64_t across = seen.ow / pool.w, begin = ow / pool.w, end = (ow + many + pool.w - 1) / pool.w;
    int left = static_cast<int>((end < across ? end : across) - begin);
    if (oh / pool.h >= seen.oh / pool.h) left = 0;
    if (!Vectors || left == 0) std::memset(to, 0, static_cast<std::size_t>((many - 1) * pitch + n) * sizeof(T));
    if (left == 0) return;
    std::int64_t from = (oh / pool.h * across + begin) * seen.out;
    int place = static_cast<int>(begin * pool.w - ow);  // the place of the window's first column, from ow
    for (; left > 0; --left, from += seen.out, place += pw) {
      const unsigned char* const winner = winners + from;
      const T* const up = dy + from;
      if constexpr (Vectors) {
        for (int column = place < 0 ? -place : 0; column < pw && place + column < many; ++column) {
          T* const at = to + (place + column) * pitch;
          const int mark = first + column;
          for (int j = 0; j < n; ++j) at[j] = winner[j] == mark ? up[j] : T(0);
        }
      } else {
        for (int j = 0; j < n; ++j) {
          const int column = winner[j] - first, at = place + column;  // may be in another row, or nowhere
          if (column >= 0 && column < pw && at >= 0 && at < many) to[at * pitch + j] = up[j];
        }
      }
    }
    if constexpr (Vectors)
      if (place < many)  // what no window sees
        std::memset(to + place * pitch, 0, static_cast<std::size_t>((many - 1 - place) * pitch + n) * sizeof(T));
  }
  template <class N, int Registers, class G, class F>
  GRADUS_INLINE void places(const G&, std::int64_t ow, std::int64_t many, std::size_t some, F f) const {
    constexpr int width = static_cast<int>(N::width), pitch = width * Registers;
    alignas(64) T rows[static_cast<std::size_t>(at_once * pitch)];
    for (std::int64_t first = 0; first < many; first += at_once) {
      const int count = many - first < at_once ? static_cast<int>(many - first) : at_once;
      write<(N::width > 1)>(ow + first, count, pitch - width + static_cast<int>(some), rows, pitch);
      f(first, rows, std::int64_t{pitch}, std::int64_t{count});
    }
  }
  template <class N, class G>
  const T* block(const G& g, index_range places, std::int64_t n, bool, T* room, std::int64_t& pitch) const {
    constexpr auto width = static_cast<std::int64_t>(N::width);
    pitch = (n + width - 1) / width * width;
    T* to = room;
    for (std::int64_t p = places.first, many; p < places.last; p += many, to += many * pitch) {
      const std::int64_t left = g.ow - p % g.ow;
      many = left < places.last - p ? left : places.last - p;
      row(g, p / g.ow)
          .template write<true>(p % g.ow, static_cast<int>(many), static_cast<int>(n), to, static_cast<int>(pitch));
    }
    return room;
  }

private:
  std::int64_t numbers() const { return (seen.oh / pool.h) * (seen.ow / pool.w) * seen.out; }  // pooled, per image
};

}  // namespace detail

// The operands are images, filters, and perhaps a bias.
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
      const T* bias = s.type(3) == dtype::none ? nullptr : at<const T>(a, 3);
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
                  detail::convolve_row<N, Registers, Last, !makes_whole_rows<S>(pitch)>(
                      g, row / down * g.oh + row % down * p.h + r, first, last, c, some, sums + r * wide * pitch, pitch,
                      at<const T>(a, 1), at<const T>(a, 2));
                const std::int64_t to = (row * across + first / p.w) * g.out + c;
                const auto windows = static_cast<int>((last - first) / p.w), line = static_cast<int>(wide * pitch);
                for (int q = 0; q < windows; ++q)
                  for (int k = 0; k < Registers; ++k) {
                    const int lane = k * static_cast<int>(N::width);
                    choose<N>(p, sums + q * static_cast<int>(p.w * pitch) + lane, line, static_cast<int>(pitch),
                              bias == nullptr ? nullptr : bias + c + lane, k + 1 < Registers ? N::width : some,
                              at<T>(a, 0) + to + q * g.out + lane, winners + to + q * g.out + lane);
                  }
              }
          });
    });
  }

private:
  static constexpr std::int64_t room = 64 * 64;  // numbers on the stack, for the largest window in all registers
  // Returns how many columns of the convolution are computed at once, a multiple of the pool's width, where the shape
  // is known; else 0.
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
  template <class S>
  static constexpr bool makes_whole_rows(std::int64_t pitch) {
    if constexpr (S::is_fixed)
      return columns_at_once<S>(pitch) == detail::windows<S>::ow;
    else
      return false;
  }
  // Computes one window's largest number as max_pool does, and its place as max_pool_grad does.
  template <class N, class P, class T>
  static GRADUS_INLINE void choose(const P& p, const T* row, int line, int pitch, const T* bias, std::size_t n,
                                   T* value, unsigned char* winner) {
    [[maybe_unused]] const N zero(T(0)), one(T(1));
    const N added = bias == nullptr ? zero : detail::load_run<N>(bias, n);
    const auto at_place = [&](const T* from) __attribute__((always_inline)) {
      N v = detail::load_run<N>(from, n);
      if (bias != nullptr) v = formula<&cards::add>::at(v, added);
      return p.relu ? formula<&cards::relu>::at(v) : v;
    };
    const int wide = static_cast<int>(p.w), all = static_cast<int>(p.h) * wide;
    N most = at_place(row);
    if constexpr (N::width == 1) {
      int best = 0;
      for (int place = 1, w = 1; place < all; ++place, ++w) {
        if (w == wide) w = 0, row += line;
        if (const N next = at_place(row + w * pitch); next.v > most.v) most = next, best = place;
      }
      *value = most.v;
      *winner = p.relu && !(most.v > T(0)) ? detail::no_winner : static_cast<unsigned char>(best);
    } else {
      N best = zero, place = zero;
      for (int k = 1, w = 1; k < all; ++k, ++w) {
        if (w == wide) w = 0, row += line;
        const N next = at_place(row + w * pitch);
        const auto larger = next > most;  // max is a > b ? a : b
        place = place + one, most = select(larger, next, most), best = select(larger, place, best);
      }
      if (p.relu) best = select(most > zero, best, N(static_cast<T>(detail::no_winner)));
      detail::store_run(most, value, n);
      alignas(64) T places[N::width];
      best.store(places);
      for (std::size_t j = 0; j < n; ++j) winner[j] = static_cast<unsigned char>(places[j]);
    }
  }
};

// The operands are images, winners and dy.
template <>
struct op_kernel<&cards::conv2d_pool_filter> {
  static constexpr bool divides = true;

  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      detail::filter_gradient::run<A>(s, at<T>(a, 0), at<const T>(a, 1),
                                      detail::unpooled_gradient<T, S>(s, a[2], at<const T>(a, 3)));
    });
  }
};

// The operands are winners and dy. Sums have the order of `Sum` over all places of the convolution (cpu/reduce.hpp).
template <>
struct op_kernel<&cards::conv2d_pool_bias> {
  static constexpr bool divides = true;

  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      const detail::windows<S> g(s);
      const detail::unpooled_gradient<T, S> up(s, a[1], at<const T>(a, 2));
      const index_range mine = s.share(g.out, wide);
      constexpr bool vectors = detail::pack<T, A>::width > 1;
      const bool trees = detail::columns_are_trees(g.images * g.oh * g.ow, g.out);
      for (std::int64_t c = mine.first; c < mine.last; c += wide) {
        const int n = mine.last - c < wide ? static_cast<int>(mine.last - c) : wide;
        T* const sums = at<T>(a, 0) + c;
        for (int j = 0; j < n; ++j) sums[j] = T(0);
        trees ? add_trees<vectors>(g, up, c, n, sums) : add_chains<vectors>(g, up, c, n, sums);
      }
    });
  }

private:
  static constexpr int wide = 16, at_once = 16;
  // Calls f(numbers) for the places in order.
  template <bool Vectors, class G, class T, class S, class F>
  static GRADUS_INLINE void each_place(const G& g, const detail::unpooled_gradient<T, S>& up, std::int64_t c, int n,
                                       F f) {
    T rows[static_cast<std::size_t>(wide * at_once)];
    for (std::int64_t i = 0; i < g.images; ++i) {
      const auto image = up.at(g, i, c);
      for (std::int64_t oh = 0; oh < g.oh; ++oh)
        for (std::int64_t ow = 0; ow < g.ow; ow += at_once) {
          const int many = g.ow - ow < at_once ? static_cast<int>(g.ow - ow) : at_once;
          image.row(g, oh).template write<Vectors>(ow, many, n, rows, wide);
          for (int k = 0; k < many; ++k) f(rows + k * wide);
        }
    }
  }
  template <bool Vectors, class G, class T, class S>
  static void add_chains(const G& g, const detail::unpooled_gradient<T, S>& up, std::int64_t c, int n, T* sums) {
    each_place<Vectors>(
        g, up, c, n, [&](const T* x) __attribute__((always_inline)) {
          for (int j = 0; j < n; ++j) sums[j] += x[j];
        });
  }
  template <bool Vectors, class G, class T, class S>
  static void add_trees(const G& g, const detail::unpooled_gradient<T, S>& up, std::int64_t c, int n, T* sums) {
    alignas(64) T lanes[16 * 16 + 16] = {};
    int at = 0;
    bool first = true;
    const auto fold = [&] {
      detail::fold_columns<detail::adding, detail::lane<T, portable>>(lanes, wide);
      for (int j = 0; j < n; ++j) sums[j] = first ? lanes[j] : sums[j] + lanes[j];
      for (T& l : lanes) l = T(0);
      first = false, at = 0;
    };
    each_place<Vectors>(
        g, up, c, n, [&](const T* x) __attribute__((always_inline)) {
          T* lane = lanes + at % 16 * wide;
          for (int j = 0; j < n; ++j) lane[j] += x[j];
          if (++at == static_cast<int>(reduction_chunk)) fold();
        });
    if (at != 0) fold();
  }
};

// The operands are winners and dy.
template <>
struct op_kernel<&cards::conv2d_unpool> {
  static constexpr bool divides = true;

  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      const detail::windows<S> g(s);
      const detail::unpooled_gradient<T, S> up(s, a[1], at<const T>(a, 2));
      const index_range mine = s.share(g.images * g.oh);
      for (std::int64_t row = mine.first; row < mine.last; ++row)
        up.at(g, row / g.oh, 0)
            .row(g, row % g.oh)
            .template write<(detail::pack<T, A>::width > 1)>(0, static_cast<int>(g.ow), static_cast<int>(g.out),
                                                             at<T>(a, 0) + row * g.ow * g.out, static_cast<int>(g.out));
    });
  }
};

using pooled_conv_ops =
    op_list<&cards::conv2d_pool, &cards::conv2d_pool_filter, &cards::conv2d_pool_bias, &cards::conv2d_unpool>;

}  // namespace gradus
