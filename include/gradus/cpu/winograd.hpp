// This header computes convolutions of 3x3 and their gradients with fewer multiplications: Winograd's minimal filtering
// in two dimensions (Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2016, sections 4.1 and 4.2).
//
//   #include <gradus/cpu/winograd.hpp>
//   auto trainer = gradus::make_trainer<model>(gradus::winograd<4>{}, gradus::adam{.rate = 1e-3}, ...);
//
// A tile of M x M places of the result is computed from (M + 2)^2 products for each channel of the image and of the
// result, where 9 M^2 are needed otherwise: 4 times as many multiplications with M = 4, 2.25 times with M = 2. Images,
// filters and sums are transformed by small matrices, which costs rounding errors: docs/arithmetic.md defines the sums
// and states the errors. The bits do not depend on threads, on register width, or on whether a step is compiled.
//
// cpu/conv.hpp calls the convolution_algorithm that an arithmetic names. Each thread keeps memory for transformed
// numbers until it ends (docs/rooms/cpu.md says how much).
#pragma once
#include "../base/build.hpp"

#include <cstddef>
#include <cstdint>
#include <new>
#include <string_view>

#include "kernel.hpp"
#include "window_sums.hpp"
#include "winograd_transforms.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// This is memory that a thread keeps, so that no step allocates.
template <class T>
class thread_scratch {
public:
  thread_scratch() = default;
  thread_scratch(const thread_scratch&) = delete;
  thread_scratch& operator=(const thread_scratch&) = delete;
  ~thread_scratch() { release(); }
  // Returns room for n numbers, which begins with a cache line; what it held before is lost if it grows.
  T* room(std::size_t n) {
    if (n > size_) {
      release();
      at_ = static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(64)));
      size_ = n;
    }
    return at_;
  }
  static thread_scratch& of_this_thread() {
    thread_local thread_scratch mine;
    return mine;
  }

private:
  void release() {
    if (at_ != nullptr) ::operator delete(at_, std::align_val_t(64));
    at_ = nullptr, size_ = 0;
  }
  T* at_ = nullptr;
  std::size_t size_ = 0;
};

// This is a convolution of 3x3 by steps of 1, or the gradient of its image, which is a convolution of dy whose filters
// are turned round. Tap (kh, kw) of the operand's channel c is filters[kh * filter_row + kw * filter + c * pitch].
template <class T>
struct winograd_problem {
  const T* x;
  const T* filters = nullptr;
  T* y;
  std::int64_t filter_row = 0, filter = 0, pitch = 0;
  std::int64_t images, depth, channels;
  std::int64_t h, w, oh, ow, above, left;
};

template <class T, class A, int M>
struct winograd_product {
  using N = pack<T, A>;
  using transforms = winograd_transforms<M>;
  using problem = winograd_problem<T>;
  static constexpr int side = M + 2, points = side * side;
  static constexpr auto width = static_cast<std::int64_t>(N::width);

  // Returns whether this takes less time than direct sums, and needs at most 64 MB for transformed filters of floats.
  // It depends on shape alone, as the bits do. Time is counted in multiplications: transforming a channel of a tile
  // takes the time of for_channel of them, and transforming the filters that of for_filters tiles.
  static constexpr bool takes(const problem& g) {
    constexpr std::int64_t for_channel = M == 2 ? 12 : 8, for_filters = M == 2 ? 10 : 16, least = 16;
    if (g.depth < least || g.channels < least) return false;
    const std::int64_t deep = (g.depth + 15) / 16 * 16, wide = (g.channels + 15) / 16 * 16, pairs = deep * wide;
    if (points * pairs > most_filters) return false;
    const std::int64_t tiles = g.images * tiles_of(g.oh) * tiles_of(g.ow);
    const std::int64_t here = points * (tiles * (pairs + for_channel * (deep + wide)) + for_filters * pairs);
    const std::int64_t direct = g.images * taps(g.oh, g.above, g.h) * taps(g.ow, g.left, g.w) * pairs;
    return here * 20 <= direct * 17;
  }
  static constexpr std::int64_t tiles_of(std::int64_t n) { return (n + M - 1) / M; }

  // Computes rows of tiles [first, last), which count through all images.
  [[gnu::noinline]] static void run(const problem& g, std::int64_t first, std::int64_t last) {
    if (first >= last) return;
    const std::int64_t deep = whole(g.depth), wide = whole(g.channels), across = tiles_of(g.ow);
    const std::int64_t tall = block_of(deep, wide), end = last * across;
    const std::int64_t of_images = tall * deep + width, of_sums = tall * wide + width;
    const std::int64_t of_filters = g.depth * wide + width;
    T* const filters =
        thread_scratch<T>::of_this_thread().room(static_cast<std::size_t>(points * (of_filters + of_images + of_sums)));
    T *const images = filters + points * of_filters, *const sums = images + points * of_images;
    transform_filters(g, filters, of_filters);
    for (std::int64_t at = first * across; at < end; at += tall) {
      const std::int64_t some = end - at < tall ? end - at : tall;
      for (std::int64_t t = 0; t < some; ++t) {
        const tile_place p(g, at + t);
        transform_image(g, p, 0, g.depth, images + t * deep, of_images);
      }
      for (std::int64_t i = 0; i < points; ++i)
        multiply({.x = images + i * of_images,
                  .row = deep,
                  .step = 1,
                  .y = filters + i * of_filters,
                  .to = sums + i * of_sums,
                  .m = some,
                  .columns = wide,
                  .steps = g.depth,
                  .begins = true});
      for (std::int64_t t = 0; t < some; ++t) transform_result(g, tile_place(g, at + t), sums + t * wide, of_sums);
    }
  }

  // Computes the gradient of filters [3, 3, depth, channels] by the operand's channels [first, last), counted in
  // registers, from images g.x and their gradient `dy`; g.y is where it goes.
  [[gnu::noinline]] static void of_filters(const problem& g, const T* dy, std::int64_t first, std::int64_t last) {
    const std::int64_t begin = first * width, stop = last * width < g.depth ? last * width : g.depth;
    if (begin >= stop) return;
    const std::int64_t deep = (last - first) * width, wide = whole(g.channels);
    const std::int64_t all = g.images * tiles_of(g.oh) * tiles_of(g.ow), tall = block_of(deep, wide);
    const std::int64_t of_images = tall * deep + width, of_gradients = tall * wide + width,
                       of_sums = deep * wide + width;
    T* const sums = thread_scratch<T>::of_this_thread().room(
        static_cast<std::size_t>(points * (of_sums + of_images + of_gradients)));
    T *const images = sums + points * of_sums, *const gradients = images + points * of_images;
    for (std::int64_t at = 0; at < all; at += tall) {
      const std::int64_t some = all - at < tall ? all - at : tall;
      for (std::int64_t t = 0; t < some; ++t) {
        const tile_place p(g, at + t);
        transform_image(g, p, begin, stop, images + t * deep, of_images);
        transform_gradient(g, p, dy, gradients, t, some, of_gradients);
      }
      for (std::int64_t i = 0; i < points; ++i)
        multiply({.x = images + i * of_images,
                  .row = 1,
                  .step = deep,
                  .y = gradients + i * of_gradients,
                  .to = sums + i * of_sums,
                  .m = stop - begin,
                  .columns = wide,
                  .steps = some,
                  .begins = at == 0});
    }
    for (std::int64_t c = begin; c < stop; ++c)
      for (std::int64_t k = 0; k < g.channels; k += width) {
        const T* const from = sums + (c - begin) * wide + k;
        transform_both<side, 3, N>([&](int i, int j) { return N::load(from + (i * side + j) * of_sums); },
                                   [](const N* u, N* to) { transforms::of_filter(u, to); },
                                   [&](int i, int j, N v) {
                                     store_run(v, g.y + ((i * 3 + j) * g.depth + c) * g.channels + k,
                                               rest_of(g.channels, k));
                                   });
      }
  }

private:
  static constexpr std::int64_t most_filters = std::int64_t{1} << 24;
  static constexpr std::int64_t room = 131072;  // numbers of a block: transformed images, and sums

  // Returns how many taps of n windows of three, the first of which begins at -before, lie in [0, extent).
  static constexpr std::int64_t taps(std::int64_t n, std::int64_t before, std::int64_t extent) {
    std::int64_t sum = 0;
    for (std::int64_t k = -before; k < 3 - before; ++k) {
      const std::int64_t first = k < 0 ? -k : 0, last = n < extent - k ? n : extent - k;
      if (first < last) sum += last - first;
    }
    return sum;
  }
  static constexpr std::int64_t whole(std::int64_t n) { return (n + width - 1) / width * width; }
  static constexpr std::size_t rest_of(std::int64_t n, std::int64_t from) {
    return static_cast<std::size_t>(n - from < width ? n - from : width);
  }
  // Returns how many tiles are in a block: as many as the second-level cache holds, or where filters are large, as many
  // that reading the filters takes no longer than reading the tiles.
  static constexpr std::int64_t block_of(std::int64_t deep, std::int64_t wide) {
    const std::int64_t held = room / (points * (deep + wide)), even = deep * wide / (2 * (deep + wide));
    const std::int64_t n = (held > even ? held : even) / 12 * 12;
    return n < 12 ? 12 : n;
  }

  // This is the place of a tile's first result, and what of the tile lies inside.
  struct tile_place {
    std::int64_t image, oh, ow;
    int rows, columns;
    tile_place(const problem& g, std::int64_t tile) {
      const std::int64_t across = tiles_of(g.ow), down = tiles_of(g.oh);
      image = tile / across / down, oh = tile / across % down * M, ow = tile % across * M;
      rows = static_cast<int>(g.oh - oh < M ? g.oh - oh : M), columns = static_cast<int>(g.ow - ow < M ? g.ow - ow : M);
    }
  };

  // Numbers of panels of filters lie as a tile of registers reads them: panel after panel, then the operand's channels.
  template <class F>
  static GRADUS_INLINE void each_panel(std::int64_t columns, F f) {
    const std::int64_t registers = columns / width;
    std::int64_t panels = (registers + tile_registers - 1) / tile_registers;
    for (std::int64_t done = 0, many; done < registers; done += many, --panels) {
      many = (registers - done + panels - 1) / panels;
      f(done * width, many);
    }
  }
  [[gnu::noinline]] static void transform_filters(const problem& g, T* to, std::int64_t pitch) {
    const std::int64_t wide = whole(g.channels);
    each_panel(wide, [&](std::int64_t begin, std::int64_t many) {
      for (std::int64_t c = 0; c < g.depth; ++c)
        for (std::int64_t q = 0; q < many; ++q) {
          const std::int64_t k = begin + q * width;
          const T* const from = g.filters + c * g.pitch + k;
          T* const at = to + g.depth * begin + (c * many + q) * width;
          transform_both<3, side, N>(
              [&](int i, int j) { return load_run<N>(from + i * g.filter_row + j * g.filter, rest_of(g.channels, k)); },
              [](const N* f, N* u) { transforms::filter(f, u); },
              [&](int i, int j, N v) { v.store(at + (i * side + j) * pitch); });
        }
    });
  }
  // Transforms channels [begin, end) of the pixels that a tile sees, with zeros beside the image.
  static void transform_image(const problem& g, const tile_place& p, std::int64_t begin, std::int64_t end, T* to,
                              std::int64_t pitch) {
    const std::int64_t top = p.oh - g.above, start = p.ow - g.left, line = g.w * g.depth;
    const T* const from = g.x + ((p.image * g.h + top) * g.w + start) * g.depth;
    const auto transform = [](const N* d, N* v) { transforms::image(d, v); };
    const bool inside = top >= 0 && start >= 0 && top + side <= g.h && start + side <= g.w;
    for (std::int64_t c = begin; c < end; c += width) {
      const auto store = [&](int i, int j, N v) { v.store(to + (i * side + j) * pitch + (c - begin)); };
      const std::size_t some = rest_of(end, c);
      if (inside && some == N::width)
        transform_both<side, side, N>([&](int i, int j) { return N::load(from + i * line + j * g.depth + c); },
                                      transform, store);
      else
        transform_both<side, side, N>(
            [&](int i, int j) {
              return top + i >= 0 && top + i < g.h && start + j >= 0 && start + j < g.w
                         ? load_run<N>(from + i * line + j * g.depth + c, some)
                         : N(T(0));
            },
            transform, store);
    }
  }
  static void transform_result(const problem& g, const tile_place& p, const T* from, std::int64_t pitch) {
    T* const to = g.y + ((p.image * g.oh + p.oh) * g.ow + p.ow) * g.channels;
    for (std::int64_t k = 0; k < g.channels; k += width)
      transform_both<side, M, N>([&](int i, int j) { return N::load(from + (i * side + j) * pitch + k); },
                                 [](const N* m, N* y) { transforms::result(m, y); },
                                 [&](int i, int j, N v) {
                                   if (i < p.rows && j < p.columns)
                                     store_run(v, to + (i * g.ow + j) * g.channels + k, rest_of(g.channels, k));
                                 });
  }
  // Transforms the gradient of tile t of a block of `tall` tiles, with zeros where the result ends.
  static void transform_gradient(const problem& g, const tile_place& p, const T* dy, T* to, std::int64_t t,
                                 std::int64_t tall, std::int64_t pitch) {
    const T* const from = dy + ((p.image * g.oh + p.oh) * g.ow + p.ow) * g.channels;
    each_panel(whole(g.channels), [&](std::int64_t begin, std::int64_t many) {
      for (std::int64_t q = 0; q < many; ++q) {
        const std::int64_t k = begin + q * width;
        T* const at = to + tall * begin + (t * many + q) * width;
        transform_both<M, side, N>(
            [&](int i, int j) {
              return i < p.rows && j < p.columns
                         ? load_run<N>(from + (i * g.ow + j) * g.channels + k, rest_of(g.channels, k))
                         : N(T(0));
            },
            [](const N* y, N* v) { transforms::gradient(y, v); },
            [&](int i, int j, N v) { v.store(at + (i * side + j) * pitch); });
      }
    });
  }

  // This is a product of m rows: row r is x[r * row + p * step], y lies in panels, sums go to `to`, `columns` apart.
  // If it does not begin, it goes on with what lies there.
  struct product {
    const T* x;
    std::int64_t row, step;
    const T* y;
    T* to;
    std::int64_t m, columns, steps;
    bool begins;
  };
  static void multiply(const product& g) {
    each_panel(g.columns, [&](std::int64_t begin, std::int64_t many) { panel<tile_registers>(g, begin, many); });
  }
  template <int Registers>
  static void panel(const product& g, std::int64_t begin, std::int64_t registers) {
    if constexpr (Registers > 1)
      if (registers < Registers) return panel<Registers - 1>(g, begin, registers);
    const T* const y = g.y + g.steps * begin;
    in_tiles<window_rows(Registers), 0>(0, g.m, [&]<int Rows>(std::int64_t i, std::int64_t skip) {
      sums_of_rows<N, Rows, Registers, whole_register> sums(N::width);
      T* const to = g.to + i * g.columns + begin;
      if (!g.begins) sums.template load<1>(to, g.columns, 0);
      sums.add(g.x + i * g.row, g.row, g.step, y, Registers * width, g.steps);
      sums.template store<1>(to, g.columns, skip, 0);
    });
  }
};

// This is what cpu/conv.hpp calls: each function returns whether it has computed the result.
template <class A, int M>
struct winograd_convolutions {
  static constexpr std::string_view name = M == 2 ? "winograd<2>" : "winograd<4>";  // in a cluster's fingerprint
  template <class T, class S, class G>
  static bool forward(const S& s, const G& g, T* y, const T* x, const T* filters) {
    const winograd_problem<T> p{.x = x,
                                .filters = filters,
                                .y = y,
                                .filter_row = 3 * g.in * g.out,
                                .filter = g.in * g.out,
                                .pitch = g.out,
                                .images = g.images,
                                .depth = g.in,
                                .channels = g.out,
                                .h = g.h,
                                .w = g.w,
                                .oh = g.oh,
                                .ow = g.ow,
                                .above = g.above,
                                .left = g.left};
    return run(s, g, p);
  }
  // Filters are [3, out, 3, in].
  template <class T, class S, class G>
  static bool of_input(const S& s, const G& g, T* dx, const T* filters, const T* dy) {
    const winograd_problem<T> p{.x = dy,
                                .filters = filters + 2 * (3 * g.out + 1) * g.in,
                                .y = dx,
                                .filter_row = -3 * g.out * g.in,
                                .filter = -g.in,
                                .pitch = 3 * g.in,
                                .images = g.images,
                                .depth = g.out,
                                .channels = g.in,
                                .h = g.oh,
                                .w = g.ow,
                                .oh = g.h,
                                .ow = g.w,
                                .above = 2 - g.above,
                                .left = 2 - g.left};
    return run(s, g, p);
  }
  template <class T, class S, class G>
  static bool of_filters(const S& s, const G& g, T* df, const T* x, const T* dy) {
    using product = winograd_product<T, A, M>;
    const winograd_problem<T> p{.x = x,
                                .y = df,
                                .images = g.images,
                                .depth = g.in,
                                .channels = g.out,
                                .h = g.h,
                                .w = g.w,
                                .oh = g.oh,
                                .ow = g.ow,
                                .above = g.above,
                                .left = g.left};
    if (!fits(g) || !product::takes(p)) return false;
    const index_range mine = s.share((g.in + product::width - 1) / product::width);
    product::of_filters(p, dy, mine.first, mine.last);
    return true;
  }

private:
  template <class G>
  static constexpr bool fits(const G& g) {
    return g.kh == 3 && g.kw == 3 && g.sh == 1 && g.sw == 1;
  }
  template <class T, class S, class G>
  static bool run(const S& s, const G& g, const winograd_problem<T>& p) {
    using product = winograd_product<T, A, M>;
    if (!fits(g) || !product::takes(p)) return false;
    const index_range mine = s.share(p.images * product::tiles_of(p.oh));
    product::run(p, mine.first, mine.last);
    return true;
  }
};

}  // namespace detail

// This is the arithmetic A (by default `fast`), except that convolutions of 3x3 by steps of 1, with at least 16
// channels on either side, and their gradients, are computed in tiles of M x M places (M is 2 or 4) by Winograd's
// algorithm.
template <int M = 4, arithmetic A = fast>
struct winograd : A {
  static_assert(M == 2 || M == 4, "gradus: winograd<2> and winograd<4> compute tiles of 2 x 2 and 4 x 4 places.");
  using convolution_algorithm = detail::winograd_convolutions<A, M>;
};

}  // namespace gradus
