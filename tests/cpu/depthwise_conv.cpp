#include "divided.hpp"
#include "windows.hpp"

#include <gradus/cpu/depthwise_conv.hpp>

using namespace window_test;

namespace {
constexpr auto depthwise_kernels = join(arrange_ops{}, depthwise_conv_ops{});

// A problem whose result has `multiplier` channels for each of the image.
problem depthwise(problem p, int multiplier) {
  p.out = p.in * multiplier;
  return p;
}
problem drawn_depthwise(lcg& random) {
  problem p = draw(random);
  if (random(3) == 0) p.in += 29;
  return depthwise(p, 1 + static_cast<int>(random(3)));
}
std::size_t filter_size(const problem& p) { return static_cast<std::size_t>(p.kh * p.kw * p.out); }

template <class T>
void check_depthwise(const problem& p, lcg& random, double tolerance) {
  const auto x = random.reals<T>(p.x_size()), w = random.reals<T>(filter_size(p)), dy = random.reals<T>(p.y_size());
  const auto in = static_cast<std::size_t>(p.in), out = static_cast<std::size_t>(p.out), multiplier = out / in;
  std::vector<double> y(p.y_size(), 0.0), dx(p.x_size(), 0.0), dw(filter_size(p), 0.0);
  p.each([&](std::size_t to, std::size_t from, std::size_t at) {
    for (std::size_t c = 0; c < in; ++c)
      for (std::size_t m = 0; m < multiplier; ++m) {
        const std::size_t weight = (at * in + c) * multiplier + m, result = to * out + c * multiplier + m;
        y[result] += static_cast<double>(x[from * in + c]) * w[weight];
        dx[from * in + c] += static_cast<double>(dy[result]) * w[weight];
        dw[weight] += static_cast<double>(dy[result]) * x[from * in + c];
      }
  });
  graph g;
  const value vx = g.placeholder("x", {batch, p.h, p.w, p.in}, dtype_of<T>);
  const value vw = g.placeholder("w", {p.kh, p.kw, p.in, p.out / p.in}, dtype_of<T>);
  const value vdy = g.placeholder("dy", {batch, p.oh(), p.ow(), p.out}, dtype_of<T>);
  const std::map<int, kernel_test::bytes> feeds{{vx.id, to_bytes(x)}, {vw.id, to_bytes(w)}, {vdy.id, to_bytes(dy)}};
  const auto get = [&](value v) { return from_bytes<T>(kernel_test::run(depthwise_kernels, g, v, p.n, feeds)); };

  const value vy = depthwise_conv2d(vx, vw, {{p.sh, p.sw}, p.same ? padding::same : padding::valid});
  REQUIRE(vy.dims() == shape{batch, p.oh(), p.ow(), p.out});
  CHECK(farthest(get(vy), y) <= tolerance);
  gradient_value contributions[2];
  const char wanted[2] = {1, 1};
  backward b{g, vy.id, vdy, contributions, wanted};
  cards::depthwise_conv2d.gradient(b);
  REQUIRE(contributions[0].dense.dims() == vx.dims());
  REQUIRE(contributions[1].dense.dims() == vw.dims());
  CHECK(farthest(get(contributions[0].dense), dx) <= tolerance);
  CHECK(farthest(get(contributions[1].dense), dw) <= tolerance);
}

// The rules of order in cpu/depthwise_conv.hpp's head, on single numbers.
template <class T, class A>
struct plain {
  using one = detail::lane<T, A>;
  problem p;
  std::vector<T> x, w, dy;

  int multiplier() const { return p.out / p.in; }
  bool inside(int y, int x_) const { return y >= 0 && y < p.h && x_ >= 0 && x_ < p.w; }
  static std::size_t at(std::initializer_list<int> extents, std::initializer_list<int> place) {
    return kernel_test::at(extents, place);
  }
  one pixel(int i, int h, int v, int c) const { return x[at({p.n, p.h, p.w, p.in}, {i, h, v, c})]; }
  one weight(int kh, int kw, int o) const { return w[at({p.kh, p.kw, p.out}, {kh, kw, o})]; }
  one upstream(int i, int oh, int ow, int o) const { return dy[at({p.n, p.oh(), p.ow(), p.out}, {i, oh, ow, o})]; }
  std::vector<T> forward() const {
    std::vector<T> y;
    kernel_test::places({p.n, p.oh(), p.ow(), p.out}, [&](const std::vector<int>& to) {
      one sum(T(0));
      kernel_test::places({p.kh, p.kw}, [&](const std::vector<int>& k) {
        const int h = to[1] * p.sh - p.above() + k[0], v = to[2] * p.sw - p.left() + k[1];
        if (inside(h, v)) sum = fma(pixel(to[0], h, v, to[3] / multiplier()), weight(k[0], k[1], to[3]), sum);
      });
      y.push_back(sum.v);
    });
    return y;
  }
  std::vector<T> filter() const {
    std::vector<T> df;
    kernel_test::places({p.kh, p.kw, p.out}, [&](const std::vector<int>& k) {
      one total(T(0));
      for (int i = 0; i < p.n; ++i) {
        one sum(T(0));
        kernel_test::places({p.oh(), p.ow()}, [&](const std::vector<int>& o) {
          const int h = o[0] * p.sh - p.above() + k[0], v = o[1] * p.sw - p.left() + k[1];
          if (inside(h, v)) sum = fma(pixel(i, h, v, k[2] / multiplier()), upstream(i, o[0], o[1], k[2]), sum);
        });
        total = total + sum;
      }
      df.push_back(total.v);
    });
    return df;
  }
  std::vector<T> input() const {
    std::vector<T> dx;
    kernel_test::places({p.n, p.h, p.w, p.in}, [&](const std::vector<int>& to) {
      one total(T(0));
      for (int m = 0; m < multiplier(); ++m) {
        one sum(T(0));
        kernel_test::places({p.kh, p.kw}, [&](const std::vector<int>& k) {
          const int down = to[1] + p.above() - k[0], across = to[2] + p.left() - k[1];
          if (down < 0 || down % p.sh != 0 || down / p.sh >= p.oh()) return;
          if (across < 0 || across % p.sw != 0 || across / p.sw >= p.ow()) return;
          const int o = to[3] * multiplier() + m;
          sum = fma(upstream(to[0], down / p.sh, across / p.sw, o), weight(k[0], k[1], o), sum);
        });
        total = m == 0 ? sum : total + sum;
      }
      dx.push_back(total.v);
    });
    return dx;
  }
};
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}
template <class T, class A>
plain<T, A> drawn(const problem& p, lcg& random) {
  return {p, random.reals<T>(p.x_size()), random.reals<T>(filter_size(p)), random.reals<T>(p.y_size())};
}
template <class T, class A>
void check_order(const problem& p, lcg& random) {
  INFO(p.n, " x ", p.h, " x ", p.w, " x ", p.in, ", window ", p.kh, " x ", p.kw, ", strides ", p.sh, ", ", p.sw,
       ", out ", p.out, p.same ? ", same" : "");
  using namespace divided_test;
  const auto q = drawn<T, A>(p, random);
  constexpr dtype t = dtype_of<T>;
  bool same = true;
  CHECK(same_bits(same_in_parts<&cards::depthwise_conv2d, T, A>(p.lowered(), p.n, p.y_size(), {t, t, t},
                                                                {q.x.data(), q.w.data()}, same),
                  q.forward()));
  CHECK(same_bits(same_in_parts<&cards::depthwise_conv2d_filter, T, A>(p.lowered(), p.n, filter_size(p), {t, t, t},
                                                                       {q.x.data(), q.dy.data()}, same),
                  q.filter()));
  CHECK(same_bits(same_in_parts<&cards::depthwise_conv2d_input, T, A>(p.lowered(), p.n, p.x_size(), {t, t, t},
                                                                      {q.w.data(), q.dy.data()}, same),
                  q.input()));
  CHECK(same);
}

// The compiled form, whose tiles are chosen by the compiler.
using lowered_dims = std::array<int, 13>;
template <const card* Op, class T, lowered_dims E>
constexpr detail::signature signature_of = [] {
  detail::signature s;
  s.op = Op;
  for (auto& t : s.types) t = dtype_of<T>;
  for (int i = 0; i < 13; ++i) s.dims[i] = E[static_cast<std::size_t>(i)];
  return s;
}();
template <const card* Op, class A, lowered_dims E, class T>
std::vector<T> compiled(const problem& p, std::size_t size, const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<T> y(size, T(-7));
  std::byte* args[] = {reinterpret_cast<std::byte*>(y.data()), reinterpret_cast<std::byte*>(const_cast<T*>(a.data())),
                       reinterpret_cast<std::byte*>(const_cast<T*>(b.data()))};
  for (int part = 0; part < 3; ++part)
    op_kernel<Op>::template run<A>(detail::fixed<signature_of<Op, T, E>>{p.n, 1, part, 3}, args);
  return y;
}
template <class T, class A, lowered_dims E>
void check_compiled(const problem& p, lcg& random) {
  const auto dims = p.lowered();
  REQUIRE(std::equal(dims.begin(), dims.end(), E.begin()));
  const auto q = drawn<T, A>(p, random);
  CHECK(same_bits(compiled<&cards::depthwise_conv2d, A, E>(p, p.y_size(), q.x, q.w), q.forward()));
  CHECK(same_bits(compiled<&cards::depthwise_conv2d_filter, A, E>(p, filter_size(p), q.x, q.dy), q.filter()));
  CHECK(same_bits(compiled<&cards::depthwise_conv2d_input, A, E>(p, p.x_size(), q.w, q.dy), q.input()));
}
}  // namespace

TEST_CASE("depthwise convolutions and their gradients agree with plain loops") {
  lcg random{3};
  for (int i = 0; i < 60; ++i) {
    const problem p = drawn_depthwise(random);
    INFO(p.n, " x ", p.h, " x ", p.w, " x ", p.in, ", window ", p.kh, " x ", p.kw, ", strides ", p.sh, ", ", p.sw,
         ", out ", p.out);
    check_depthwise<double>(p, random, 1e-12);
    check_depthwise<float>(p, random, 2e-4);
  }
}

TEST_CASE("every number is its chain of fma, bit for bit, in any number of parts") {
  lcg random{5};
  for (int i = 0; i < 80; ++i) {
    const problem p = drawn_depthwise(random);
    check_order<float, fast>(p, random);
    if (i % 3 == 0) check_order<double, portable>(p, random);
    if (i % 3 == 1) check_order<float, portable>(p, random);
    if (i % 3 == 2) check_order<double, fast>(p, random);
  }
  // rows of every number of tiles, channels that fill registers and that do not
  for (const int w : {1, 2, 5, 9, 15, 16, 31})
    for (const int channels : {1, 6, 16, 17, 33, 80})
      for (const int multiplier : {1, 2, 3})
        check_order<float, fast>(
            depthwise({1, 3, w, channels, 0, 2, w < 3 ? w : 3, 1, w == 9 ? 2 : 1, true}, multiplier), random);
  for (const int k : {1, 3, 4, 5, 7})
    check_order<float, fast>(depthwise({2, 9, 8, 20, 0, k, k, 1, 1, true}, 1), random);
  check_order<float, fast>(depthwise({2, 2, 3, 18, 0, 9, 11, 1, 2, true}, 1), random);  // filters larger than images
  check_order<float, fast>(depthwise({1, 7, 9, 18, 0, 2, 2, 3, 4, false}, 2), random);  // pixels that none sees
  check_order<float, fast>(depthwise({1, 3, 4, 2, 0, 3, 3, 1, 1, true}, 40), random);   // many of each channel
  check_order<float, fast>(depthwise({0, 4, 4, 2, 0, 2, 2, 1, 1, false}, 1), random);   // no image
  check_order<float, fast>(depthwise({2, 1, 1, 1, 0, 1, 1, 1, 1, false}, 1), random);   // one number
  check_order<float, fast>(depthwise({1, 3, 300, 2, 0, 3, 3, 1, 1, true}, 2), random);  // a long row
}

TEST_CASE("compiled: the same bits, in parts as well") {
  lcg random{6};
  check_compiled<float, fast, lowered_dims{0, 28, 28, 8, 28, 28, 8, 5, 5, 1, 1, 2, 2}>(
      {2, 28, 28, 8, 8, 5, 5, 1, 1, true}, random);
  check_compiled<float, fast, lowered_dims{0, 14, 14, 32, 12, 12, 32, 3, 3, 1, 1, 0, 0}>(
      {2, 14, 14, 32, 32, 3, 3, 1, 1, false}, random);
  check_compiled<float, portable, lowered_dims{0, 7, 7, 20, 4, 4, 40, 3, 3, 2, 2, 1, 1}>(
      {2, 7, 7, 20, 40, 3, 3, 2, 2, true}, random);
  check_compiled<double, fast, lowered_dims{0, 5, 6, 17, 5, 6, 51, 3, 4, 1, 1, 1, 1}>(
      {1, 5, 6, 17, 51, 3, 4, 1, 1, true}, random);
  check_compiled<float, fast, lowered_dims{0, 9, 8, 1, 5, 4, 30, 3, 2, 2, 2, 1, 0}>({1, 9, 8, 1, 30, 3, 2, 2, 2, true},
                                                                                    random);
}

TEST_CASE(
    "channel c has the channels from c * multiplier on; beside an image there is nothing, not even 0 times infinity") {
  graph g;
  const value x = g.placeholder("x", {batch, 1, 2, 2}), w = g.placeholder("w", {1, 2, 2, 2});
  const value y = depthwise_conv2d(x, w, {.padding = padding::same});
  const float inf = std::numeric_limits<float>::infinity();
  CHECK(from_bytes<float>(kernel_test::run(
            depthwise_kernels, g, y, 1,
            {{x.id, to_bytes<float>({1, 10, 2, 20})}, {w.id, to_bytes<float>({1, 2, 3, 4, inf, 0, 5, 6})}})) ==
        std::vector<float>{inf, 2, 130, 160, 2, 4, 60, 80});
}
