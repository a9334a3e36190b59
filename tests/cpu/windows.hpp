// Problems of convolution and pooling, with their places computed plainly.
#pragma once
#include "run_graph.hpp"

#include <doctest/doctest.h>
#include <gradus/cpu/arrange.hpp>
#include <gradus/cpu/conv.hpp>

#include <cmath>

namespace window_test {
using namespace gradus;
using kernel_test::from_bytes;
using kernel_test::lcg;
using kernel_test::to_bytes;

template <const card*... A, const card*... B>
constexpr auto join(op_list<A...>, op_list<B...>) {
  return op_list<A..., B...>{};
}
constexpr auto kernels = join(arrange_ops{}, conv_ops{});

// A problem, and its places computed the other way round: the image is really framed with zeros first.
struct problem {
  int n, h, w, in, out, kh, kw, sh, sw;
  bool same;

  int places(int extent, int k, int stride) const {
    if (!same) return (extent - k) / stride + 1;
    int places = 0;
    for (int start = 0; start < extent; start += stride) ++places;
    (void)k;
    return places;
  }
  int oh() const { return places(h, kh, sh); }
  int ow() const { return places(w, kw, sw); }
  static int frame(int places, int extent, int k, int stride) {  // zeros before
    int all = (places - 1) * stride + k - extent;
    return all <= 0 ? 0 : all / 2;
  }
  int above() const { return same ? frame(oh(), h, kh, sh) : 0; }
  int left() const { return same ? frame(ow(), w, kw, sw) : 0; }
  // f(place of y, place of x, place in the window) for all that lie inside the image
  template <class F>
  void each(F f) const {
    for (int i = 0; i < n; ++i)
      for (int y = 0; y < oh(); ++y)
        for (int x = 0; x < ow(); ++x)
          for (int a = 0; a < kh; ++a)
            for (int b = 0; b < kw; ++b) {
              const int py = y * sh + a - above(), px = x * sw + b - left();
              if (py >= 0 && py < h && px >= 0 && px < w)
                f(static_cast<std::size_t>((i * oh() + y) * ow() + x), static_cast<std::size_t>((i * h + py) * w + px),
                  static_cast<std::size_t>(a * kw + b));
            }
  }
  // As ops/conv.hpp lowers them.
  std::vector<int> lowered() const { return {0, h, w, in, oh(), ow(), out, kh, kw, sh, sw, above(), left()}; }
  std::size_t x_size() const { return static_cast<std::size_t>(n * h * w * in); }
  std::size_t w_size() const { return static_cast<std::size_t>(kh * kw * in * out); }
  std::size_t y_size() const { return static_cast<std::size_t>(n * oh() * ow() * out); }
};
inline problem draw(lcg& random) {
  const auto one_to = [&](std::uint32_t n) { return 1 + static_cast<int>(random(n)); };
  for (;;) {
    problem p{one_to(3), one_to(7), one_to(7), one_to(5), one_to(21),
              one_to(4), one_to(4), one_to(3), one_to(3), random(2) == 0};
    if (random(3) == 0) p.out += 40;
    if (random(4) == 0) p.in += 16;
    if (p.same || (p.kh <= p.h && p.kw <= p.w)) return p;
  }
}
template <class T>
double farthest(const std::vector<T>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::fabs(static_cast<double>(a[i]) - b[i]);
    if (!(d <= most)) most = d;
  }
  return most;
}

}  // namespace window_test
