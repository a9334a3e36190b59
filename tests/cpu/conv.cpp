#include "../sanitized.hpp"
#include "conv_order.hpp"

using namespace window_test;

namespace {
constexpr int drawn_shapes = is_sanitized ? 25 : 60;

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
}  // namespace

TEST_CASE("convolutions and their gradients agree with plain loops") {
  lcg random{3};
  for (int i = 0; i < drawn_shapes; ++i) {
    const problem p = draw(random);
    INFO(p.n, " x ", p.h, " x ", p.w, " x ", p.in, ", window ", p.kh, " x ", p.kw, ", strides ", p.sh, ", ", p.sw,
         ", out ", p.out);
    check_convolution<double>(p, random, 1e-12);
    check_convolution<float>(p, random, 2e-4);
  }
}

TEST_CASE("every number is its chain of fma, bit for bit, in any number of parts") {
  lcg random{5};
  for (int i = 0; i < drawn_shapes; ++i) {
    const problem p = draw(random);
    check_order<float, fast>(p, random);
    if (i % 3 == 0) check_order<double, portable>(p, random);
  }
  // tiles of every height and width, and images that are more windows than a tile
  for (int w : {1, 2, 5, 9, 15, 16, 31})
    for (int channels : {1, 6, 16, 17, 33, 80})
      check_order<float, fast>({1, 2, w, w % 3 == 0 ? 16 : 3, channels, 2, w < 3 ? w : 3, 1, w == 9 ? 2 : 1, true},
                               random);
  // many small images, whose lines go through them; strides, and few channels
  for (int images : {4, 7, 16, 33})
    for (int k : {1, 3, 5})
      for (int stride : {1, 2})
        check_order<float, fast>(
            {images, 5 + images % 3, 6, images % 2 == 0 ? 18 : 5, k == 3 ? 2 : 21, k, k, stride, stride, images != 7},
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
