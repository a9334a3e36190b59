#include "run_graph.hpp"

#include <gradus/cpu/arrange.hpp>
#include <gradus/cpu/conv.hpp>

#include <doctest/doctest.h>

#include <cmath>

using namespace gradus;
using kernel_test::from_bytes;
using kernel_test::lcg;
using kernel_test::to_bytes;

namespace {
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
  std::size_t x_size() const { return static_cast<std::size_t>(n * h * w * in); }
  std::size_t w_size() const { return static_cast<std::size_t>(kh * kw * in * out); }
  std::size_t y_size() const { return static_cast<std::size_t>(n * oh() * ow() * out); }
};
problem draw(lcg& random) {
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

template <class T>
void check_convolution(const problem& p, lcg& random, double tolerance) {
  const auto x = random.reals<T>(p.x_size()), w = random.reals<T>(p.w_size()), dy = random.reals<T>(p.y_size());
  const auto in = static_cast<std::size_t>(p.in), out = static_cast<std::size_t>(p.out);
  std::vector<double> y(p.y_size(), 0.0), dx(p.x_size(), 0.0), dw(p.w_size(), 0.0);
  p.each([&](std::size_t to, std::size_t from, std::size_t at) {
    for (std::size_t c = 0; c < in; ++c)
      for (std::size_t o = 0; o < out; ++o) {
        const double weight = w[(at * in + c) * out + o], pixel = x[from * in + c], upstream = dy[to * out + o];
        y[to * out + o] += pixel * weight;
        dx[from * in + c] += upstream * weight;
        dw[(at * in + c) * out + o] += upstream * pixel;
      }
  });
  graph g;
  const value vx = g.placeholder("x", {batch, p.h, p.w, p.in}, dtype_of<T>);
  const value vw = g.placeholder("w", {p.kh, p.kw, p.in, p.out}, dtype_of<T>);
  const value vdy = g.placeholder("dy", {batch, p.oh(), p.ow(), p.out}, dtype_of<T>);
  const std::map<int, kernel_test::bytes> feeds{{vx.id, to_bytes(x)}, {vw.id, to_bytes(w)}, {vdy.id, to_bytes(dy)}};
  const auto get = [&](value v) { return from_bytes<T>(kernel_test::run(kernels, g, v, p.n, feeds)); };

  const value vy = conv2d(vx, vw, {.strides = {p.sh, p.sw}, .padding = p.same ? padding::same : padding::valid});
  REQUIRE(vy.dims() == shape{batch, p.oh(), p.ow(), p.out});
  CHECK(farthest(get(vy), y) <= tolerance);
  gradient_value contributions[2];
  const char wanted[2] = {1, 1};
  backward b{g, vy.id, vdy, contributions, wanted};
  cards::conv2d.gradient(b);
  REQUIRE(contributions[0].dense.dims() == vx.dims());
  REQUIRE(contributions[1].dense.dims() == vw.dims());
  CHECK(farthest(get(contributions[0].dense), dx) <= tolerance);
  CHECK(farthest(get(contributions[1].dense), dw) <= tolerance);
}

template <class T>
void check_pools(problem p, lcg& random, double tolerance) {
  p.out = p.in;
  const auto channels = static_cast<std::size_t>(p.in);
  std::vector<T> x(p.x_size());
  for (auto& v : x) v = static_cast<T>(random(6)) - T(3);  // many ties, some windows all negative
  const auto dy = random.reals<T>(p.y_size());
  std::vector<double> most(p.y_size(), -1e30), sum(p.y_size(), 0.0), inside(p.y_size(), 0.0);
  std::vector<std::size_t> first(p.y_size(), 0);
  p.each([&](std::size_t to, std::size_t from, std::size_t) {
    for (std::size_t c = 0; c < channels; ++c) {
      const double v = x[from * channels + c];
      const std::size_t t = to * channels + c;
      if (v > most[t]) most[t] = v, first[t] = from * channels + c;
      sum[t] += v, inside[t] += 1;
    }
  });
  std::vector<double> max_grad(p.x_size(), 0.0), avg_grad(p.x_size(), 0.0), mean(p.y_size());
  for (std::size_t t = 0; t < most.size(); ++t) max_grad[first[t]] += dy[t], mean[t] = sum[t] / inside[t];
  p.each([&](std::size_t to, std::size_t from, std::size_t) {
    for (std::size_t c = 0; c < channels; ++c)
      avg_grad[from * channels + c] += dy[to * channels + c] / inside[to * channels + c];
  });
  graph g;
  const value vx = g.placeholder("x", {batch, p.h, p.w, p.in}, dtype_of<T>);
  const value vdy = g.placeholder("dy", {batch, p.oh(), p.ow(), p.in}, dtype_of<T>);
  const std::map<int, kernel_test::bytes> feeds{{vx.id, to_bytes(x)}, {vdy.id, to_bytes(dy)}};
  const auto get = [&](value v) { return from_bytes<T>(kernel_test::run(kernels, g, v, p.n, feeds)); };
  const pool_options o{{p.kh, p.kw}, {p.sh, p.sw}, p.same ? padding::same : padding::valid};
  const auto gradient_of = [&](value y) {
    gradient_value contribution;
    const char wanted = 1;
    backward b{g, y.id, vdy, &contribution, &wanted};
    g.nodes[y.id].op->gradient(b);
    return get(contribution.dense);
  };
  const value highest = max_pool(vx, o), average = avg_pool(vx, o);
  REQUIRE(highest.dims() == vdy.dims());
  CHECK(farthest(get(highest), most) == 0);
  CHECK(farthest(gradient_of(highest), max_grad) <= tolerance);
  CHECK(farthest(get(average), mean) <= tolerance);
  CHECK(farthest(gradient_of(average), avg_grad) <= tolerance);
}
}  // namespace

TEST_CASE("convolutions and their gradients agree with plain loops") {
  lcg random{3};
  for (int i = 0; i < 60; ++i) {
    const problem p = draw(random);
    INFO(p.n, " x ", p.h, " x ", p.w, " x ", p.in, ", window ", p.kh, " x ", p.kw, ", strides ", p.sh, ", ", p.sw,
         ", out ", p.out);
    check_convolution<double>(p, random, 1e-12);
    check_convolution<float>(p, random, 2e-4);
  }
}

TEST_CASE("pools and their gradients agree with plain loops") {
  lcg random{4};
  for (int i = 0; i < 60; ++i) {
    const problem p = draw(random);
    check_pools<double>(p, random, 1e-13);
    check_pools<float>(p, random, 1e-5);
  }
}

TEST_CASE("same padding is TensorFlow's: the odd zero is after the image") {
  using detail::place_windows;
  CHECK((place_windows(5, 2, 2, true).out == 3 && place_windows(5, 2, 2, true).before == 0));
  CHECK((place_windows(4, 3, 2, true).out == 2 && place_windows(4, 3, 2, true).before == 0));
  CHECK((place_windows(5, 3, 2, true).out == 3 && place_windows(5, 3, 2, true).before == 1));
  CHECK((place_windows(13, 6, 5, true).out == 3 && place_windows(13, 6, 5, true).before == 1));
  CHECK((place_windows(13, 6, 5, false).out == 2 && place_windows(13, 6, 5, false).before == 0));
  // One row 1 2 3 4, a window of ones of width 2, stride 1: the last place sees 4 and one zero.
  graph g;
  const value x = g.placeholder("x", {batch, 1, 4, 1}), w = g.placeholder("w", {1, 2, 1, 1});
  const value y = conv2d(x, w, {.padding = padding::same});
  CHECK(from_bytes<float>(kernel_test::run(kernels, g, y, 1,
                                           {{x.id, to_bytes<float>({1, 2, 3, 4})}, {w.id, to_bytes<float>({1, 1})}})) ==
        std::vector<float>{3, 5, 7, 4});
}

TEST_CASE("fast and portable differ in rounding only; float lanes and registers agree") {
  lcg random{9};
  const problem p{2, 5, 5, 3, 13, 3, 3, 1, 1, true};  // 13 channels: registers and single lanes in one row
  const auto x = random.reals<float>(p.x_size()), w = random.reals<float>(p.w_size());
  graph g;
  const value vx = g.placeholder("x", {batch, 5, 5, 3}), vw = g.placeholder("w", {3, 3, 3, 13});
  const value one = g.placeholder("one", {3, 3, 3, 1});
  const value all = conv2d(vx, vw, {.padding = padding::same}), alone = conv2d(vx, one, {.padding = padding::same});
  std::map<int, kernel_test::bytes> feeds{{vx.id, to_bytes(x)}, {vw.id, to_bytes(w)}, {one.id, {}}};
  feeds[one.id] = to_bytes(std::vector<float>(27, 0.0f));
  const auto y = from_bytes<float>(kernel_test::run(kernels, g, all, 2, feeds));
  for (std::size_t c = 0; c < 13; ++c) {
    std::vector<float> filter;
    for (std::size_t i = 0; i < 27; ++i) filter.push_back(w[i * 13 + c]);
    feeds[one.id] = to_bytes(filter);
    const auto z = from_bytes<float>(kernel_test::run(kernels, g, alone, 2, feeds));
    bool same = true;
    for (std::size_t i = 0; i < z.size(); ++i)
      same = same && std::bit_cast<int>(z[i]) == std::bit_cast<int>(y[i * 13 + c]);
    CHECK(same);
  }
  const auto slow = from_bytes<float>(kernel_test::run<portable>(kernels, g, all, 2, feeds));
  for (std::size_t i = 0; i < y.size(); ++i) CHECK(std::fabs(slow[i] - y[i]) < 1e-5f);
}
