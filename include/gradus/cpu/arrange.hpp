// These kernels move elements: they copy bytes, so one text serves every dtype of a width. All but range, and pad,
// which writes some places twice, are divided among threads.
#pragma once
#include "../base/build.hpp"

#include <cstring>

#include "../ops/arrange.hpp"
#include "kernel.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// Calls f with the bytes of an element of types[I] as a template argument.
template <int I, class S, class F>
void by_width(const S& s, F f) {
  switch (gradus::size_of(s.type(I))) {
  case 1: return f.template operator()<1>();
  case 2: return f.template operator()<2>();
  case 4: return f.template operator()<4>();
  default: return f.template operator()<8>();
  }
}
// Returns an extent other than the first, which alone may be the rows: here 0 means 0.
template <class S>
std::int64_t inner(const S& s, int i) {
  return s.raw(i) == 0 ? 0 : s.dim(i);
}
inline void copy(std::byte* to, const std::byte* from, std::int64_t bytes) {
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}
template <int Width>
void fill(std::byte* to, const std::byte* one, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) std::memcpy(to + i * Width, one, Width);
}

// These are the loops outside a run: their extents, and the strides of two arrays, in elements.
struct box_loops {
  int loops = 0;
  std::int64_t extent[max_rank] = {}, step[max_rank] = {}, other[max_rank] = {};
  std::int64_t begin = 0;  // of the outermost loop

  // Keeps this caller's share: places of the outermost loop, or the only run.
  template <class S>
  void divide(const S& s) {
    const index_range mine = s.share(loops == 0 ? 1 : extent[0]);
    begin = mine.first;
    if (loops != 0) extent[0] = mine.last;
    nothing = mine.first == mine.last;
  }
  bool nothing = false;

  // Calls f(offset, other offset) for every iteration of the loops, the last loop fastest.
  template <class F>
  void each(F f) const {
    if (nothing) return;
    std::int64_t at[max_rank] = {begin}, here = begin * step[0], there = begin * other[0];
    for (int i = 0; i < loops; ++i)
      if (extent[i] == 0) return;
    for (;;) {
      f(here, there);
      int i = loops - 1;
      for (; i >= 0; --i) {
        here += step[i], there += other[i];
        if (++at[i] < extent[i]) break;
        here -= extent[i] * step[i], there -= extent[i] * other[i];
        at[i] = 0;
      }
      if (i < 0) return;
    }
  }
};

// Returns the loops of a slice or a pad: over runs of `run` elements of the inner array, and over where they begin in
// the outer one, from `origin` on.
template <class S>
box_loops box_walk(const S& s, std::int64_t& run, std::int64_t& origin) {
  box_loops w;
  const int loops = s.raw(0);
  w.loops = loops - 1;
  std::int64_t in = 1, out = 1;
  origin = 0;
  for (int i = loops - 1; i >= 0; --i) {
    const std::int64_t n = i == 0 ? s.dim(1) : inner(s, 1 + i);
    origin += inner(s, 6 + i) * out;
    if (i < loops - 1)
      w.extent[i] = n, w.step[i] = in, w.other[i] = out;
    else
      run = n;
    in *= n, out *= i == 0 ? s.dim(11) : inner(s, 11 + i);
  }
  return w;
}
}  // namespace detail

template <>
struct op_kernel<&cards::transpose> {
  static constexpr bool divides = true;
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    detail::by_width<0>(s, [&]<int Width>() {
      const int loops = s.raw(0);
      std::int64_t step[max_rank] = {};  // the operand's stride for each loop of the result
      for (int i = 0; i < loops; ++i) {
        step[i] = 1;
        for (int j = 0; j < loops; ++j)
          if (s.raw(7 + j) > s.raw(7 + i)) step[i] *= detail::inner(s, 1 + j);
      }
      detail::box_loops w;
      w.loops = loops - 1;
      const std::int64_t run = loops == 1 ? s.dim(1) : detail::inner(s, loops), stride = step[loops - 1];
      std::int64_t size = run;
      for (int i = loops - 2; i >= 0; --i)
        w.extent[i] = i == 0 ? s.dim(1) : detail::inner(s, 1 + i), w.step[i] = size, w.other[i] = step[i],
        size *= w.extent[i];
      if (run == 0) return;
      w.divide(s);
      w.each([&](std::int64_t to, std::int64_t from) {
        std::byte* y = a[0] + to * Width;
        const std::byte* x = a[1] + from * Width;
        if (stride == 1) return detail::copy(y, x, run * Width);
        for (std::int64_t k = 0; k < run; ++k) std::memcpy(y + k * Width, x + k * stride * Width, Width);
      });
    });
  }
};

template <>
struct op_kernel<&cards::slice> {
  static constexpr bool divides = true;
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    const auto width = static_cast<std::int64_t>(size_of(s.type(0)));
    std::int64_t run, origin;
    auto w = detail::box_walk(s, run, origin);
    if (run == 0) return;
    w.divide(s);
    w.each([&](std::int64_t to, std::int64_t from) {
      detail::copy(a[0] + to * width, a[1] + (origin + from) * width, run * width);
    });
  }
};

template <>
struct op_kernel<&cards::pad> {
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    detail::by_width<0>(s, [&]<int Width>() {
      std::int64_t run, origin, size = 1;
      for (int i = 0; i < s.raw(0); ++i) size *= i == 0 ? s.dim(11) : detail::inner(s, 11 + i);
      detail::fill<Width>(a[0], a[2], size);
      const auto w = detail::box_walk(s, run, origin);
      if (run == 0) return;
      w.each([&](std::int64_t from, std::int64_t to) {
        detail::copy(a[0] + (origin + to) * Width, a[1] + from * Width, run * Width);
      });
    });
  }
};

template <>
struct op_kernel<&cards::concat> {
  static constexpr bool divides = true;
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    const auto width = static_cast<std::int64_t>(size_of(s.type(0)));
    std::int64_t all = 0;
    for (int k = 0; k < s.raw(1); ++k) all += detail::inner(s, 2 + k) * width;
    const index_range mine = s.share(s.dim(0));
    std::byte* y = a[0] + mine.first * all;
    for (std::int64_t row = mine.first; row < mine.last; ++row)
      for (int k = 0; k < s.raw(1); ++k) {
        const std::int64_t run = detail::inner(s, 2 + k) * width;
        if (run != 0) detail::copy(y, a[1 + k] + row * run, run);
        y += run;
      }
  }
};

template <>
struct op_kernel<&cards::causal_mask> {
  static constexpr bool divides = true;
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    detail::by_width<0>(s, [&]<int Width>() {
      const std::int64_t n = s.dim(1);
      const index_range mine = s.share(s.dim(0) * n);
      for (std::int64_t row = mine.first; row < mine.last; ++row) {
        const std::int64_t seen = row % n + 1;
        std::byte* y = a[0] + row * n * Width;
        detail::copy(y, a[1] + row * n * Width, seen * Width);
        detail::fill<Width>(y + seen * Width, a[2], n - seen);
      }
    });
  }
};

template <>
struct op_kernel<&cards::range> {
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double, std::int32_t, std::int64_t, std::uint8_t>(s, [&]<class T>() {
      for (std::int64_t i = 0; i < s.dim(0); ++i) at<T>(a, 0)[i] = static_cast<T>(i);
    });
  }
};

using arrange_ops =
    op_list<&cards::transpose, &cards::slice, &cards::pad, &cards::concat, &cards::causal_mask, &cards::range>;

}  // namespace gradus
