#include "divided.hpp"
#include "windows.hpp"

using namespace window_test;

namespace {
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

// The rules of order in cpu/conv.hpp's head, on single numbers.
template <class T, class A>
struct plain {
  using one = detail::lane<T, A>;
  problem p;
  std::vector<T> x, w, dy;  // w: [kh, out, kw, in] for dx

  bool inside(int y, int x_) const { return y >= 0 && y < p.h && x_ >= 0 && x_ < p.w; }
  static std::size_t at(std::initializer_list<int> extents, std::initializer_list<int> place) {
    return kernel_test::at(extents, place);
  }
  T pixel(int i, int h, int v, int c) const { return x[at({p.n, p.h, p.w, p.in}, {i, h, v, c})]; }
  T upstream(int i, int oh, int ow, int o) const { return dy[at({p.n, p.oh(), p.ow(), p.out}, {i, oh, ow, o})]; }
  std::vector<T> forward() const {
    std::vector<T> y;
    kernel_test::places({p.n, p.oh(), p.ow(), p.out}, [&](const std::vector<int>& to) {
      one sum(T(0));
      kernel_test::places({p.kh, p.kw, p.in}, [&](const std::vector<int>& k) {
        const int h = to[1] * p.sh - p.above() + k[0], v = to[2] * p.sw - p.left() + k[1];
        if (inside(h, v))
          sum =
              fma(one(pixel(to[0], h, v, k[2])), one(w[at({p.kh, p.kw, p.in, p.out}, {k[0], k[1], k[2], to[3]})]), sum);
      });
      y.push_back(sum.v);
    });
    return y;
  }
  std::vector<T> filter() const {
    std::vector<T> df;
    kernel_test::places({p.kh, p.kw, p.in, p.out}, [&](const std::vector<int>& k) {
      one total(T(0));
      for (int i = 0; i < p.n; ++i) {
        one sum(T(0));
        kernel_test::places({p.oh(), p.ow()}, [&](const std::vector<int>& o) {
          const int h = o[0] * p.sh - p.above() + k[0], v = o[1] * p.sw - p.left() + k[1];
          if (h >= 0 && h < p.h)
            sum = fma(one(inside(h, v) ? pixel(i, h, v, k[2]) : T(0)), one(upstream(i, o[0], o[1], k[3])), sum);
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
      one total(T(0)), sum(T(0));
      const auto add = [&](int kh, int kw) {
        const int down = to[1] + p.above() - kh, across = to[2] + p.left() - kw;
        if (down < 0 || down % p.sh != 0 || down / p.sh >= p.oh()) return;
        if (across < 0 || across % p.sw != 0 || across / p.sw >= p.ow()) return;
        for (int o = 0; o < p.out; ++o)
          sum = fma(one(upstream(to[0], down / p.sh, across / p.sw, o)),
                    one(w[at({p.kh, p.out, p.kw, p.in}, {kh, o, kw, to[3]})]), sum);
      };
      if (p.in >= 16 || p.kw * p.in > 256) {
        for (int kh = 0; kh < p.kh; ++kh)
          for (int kw = 0; kw < p.kw; ++kw) add(kh, kw);
        total = sum;
      } else {
        for (int kw = p.kw - 1; kw >= 0; --kw) {  // ow from left to right
          sum = one(T(0));
          for (int kh = 0; kh < p.kh; ++kh) add(kh, kw);
          total = total + sum;
        }
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
  return {p, random.reals<T>(p.x_size()), random.reals<T>(p.w_size()), random.reals<T>(p.y_size())};
}
template <class T, class A>
void check_order(const problem& p, lcg& random) {
  INFO(p.n, " x ", p.h, " x ", p.w, " x ", p.in, ", window ", p.kh, " x ", p.kw, ", strides ", p.sh, ", ", p.sw,
       ", out ", p.out, p.same ? ", same" : "");
  using namespace divided_test;
  const auto q = drawn<T, A>(p, random);
  constexpr dtype t = dtype_of<T>;
  bool same = true;
  CHECK(same_bits(
      same_in_parts<&cards::conv2d, T, A>(p.lowered(), p.n, p.y_size(), {t, t, t}, {q.x.data(), q.w.data()}, same),
      q.forward()));
  CHECK(same_bits(same_in_parts<&cards::conv2d_filter, T, A>(p.lowered(), p.n, p.w_size(), {t, t, t},
                                                             {q.x.data(), q.dy.data()}, same),
                  q.filter()));
  CHECK(same_bits(same_in_parts<&cards::conv2d_input, T, A>(p.lowered(), p.n, p.x_size(), {t, t, t},
                                                            {q.w.data(), q.dy.data()}, same),
                  q.input()));
  CHECK(same);
}

// The compiled form, whose tiles are chosen by the compiler.
using lowered_dims = std::array<int, 13>;
template <const card* Op, lowered_dims E>
constexpr detail::signature signature_of = [] {
  detail::signature s;
  s.op = Op;
  for (auto& t : s.types) t = float32;
  for (int i = 0; i < 13; ++i) s.dims[i] = E[static_cast<std::size_t>(i)];
  return s;
}();
template <const card* Op, lowered_dims E>
std::vector<float> compiled(const problem& p, std::size_t size, const std::vector<float>& a,
                            const std::vector<float>& b) {
  std::vector<float> y(size, -7.0f);
  std::byte* args[] = {reinterpret_cast<std::byte*>(y.data()),
                       reinterpret_cast<std::byte*>(const_cast<float*>(a.data())),
                       reinterpret_cast<std::byte*>(const_cast<float*>(b.data()))};
  op_kernel<Op>::template run<fast>(detail::fixed<signature_of<Op, E>>{p.n, 1}, args);
  return y;
}
template <lowered_dims E>
void check_compiled(const problem& p, lcg& random) {
  const auto dims = p.lowered();
  REQUIRE(std::equal(dims.begin(), dims.end(), E.begin()));
  const auto q = drawn<float, fast>(p, random);
  CHECK(same_bits(compiled<&cards::conv2d, E>(p, p.y_size(), q.x, q.w), q.forward()));
  CHECK(same_bits(compiled<&cards::conv2d_filter, E>(p, p.w_size(), q.x, q.dy), q.filter()));
  CHECK(same_bits(compiled<&cards::conv2d_input, E>(p, p.x_size(), q.w, q.dy), q.input()));
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

TEST_CASE("every number is its chain of fma, bit for bit, in any number of parts") {
  lcg random{5};
  for (int i = 0; i < 60; ++i) {
    const problem p = draw(random);
    check_order<float, fast>(p, random);
    if (i % 3 == 0) check_order<double, portable>(p, random);
  }
  // tiles of every height and width, and images that are more windows than a tile
  for (int w : {1, 2, 5, 9, 15, 16, 31})
    for (int channels : {1, 6, 16, 17, 33, 80})
      check_order<float, fast>({1, 2, w, w % 3 == 0 ? 16 : 3, channels, 2, w < 3 ? w : 3, 1, w == 9 ? 2 : 1, true},
                               random);
  check_order<float, fast>({0, 4, 4, 2, 3, 2, 2, 1, 1, false}, random);   // no image
  check_order<float, fast>({2, 1, 1, 1, 1, 1, 1, 1, 1, false}, random);   // one number
  check_order<float, fast>({1, 3, 300, 2, 3, 3, 3, 1, 1, true}, random);  // a long row
  check_order<float, fast>({1, 3, 5, 40, 3, 3, 3, 1, 1, true}, random);   // a long run
}

TEST_CASE("compiled: the same bits") {
  lcg random{6};
  check_compiled<lowered_dims{0, 28, 28, 1, 28, 28, 6, 5, 5, 1, 1, 2, 2}>({2, 28, 28, 1, 6, 5, 5, 1, 1, true}, random);
  check_compiled<lowered_dims{0, 14, 14, 6, 10, 10, 16, 5, 5, 1, 1, 0, 0}>({2, 14, 14, 6, 16, 5, 5, 1, 1, false},
                                                                           random);
  check_compiled<lowered_dims{0, 7, 7, 20, 4, 4, 40, 3, 3, 2, 2, 1, 1}>({2, 7, 7, 20, 40, 3, 3, 2, 2, true}, random);
  check_compiled<lowered_dims{0, 5, 6, 17, 5, 6, 70, 3, 3, 1, 1, 1, 1}>({1, 5, 6, 17, 70, 3, 3, 1, 1, true}, random);
  check_compiled<lowered_dims{0, 9, 8, 1, 5, 4, 30, 3, 2, 2, 2, 1, 0}>({1, 9, 8, 1, 30, 3, 2, 2, 2, true}, random);
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
