#include "conv_order.hpp"

#include <gradus/cpu/winograd.hpp>

using namespace window_test;

namespace {
// Sums in tiles as docs/arithmetic.md defines them, on single numbers.
template <class T, class A, int M>
struct by_tiles {
  using one = detail::lane<T, A>;
  using of = detail::winograd_transforms<M>;
  static constexpr int side = M + 2, points = side * side;
  const plain<T, A>& q;

  static int tiles(int n) { return (n + M - 1) / M; }
  using tile = std::array<one, static_cast<std::size_t>(points)>;
  template <int In, class Load, class Transform>
  static tile transformed(Load load, Transform transform) {
    tile to;
    detail::transform_both<In, side, one>(load, transform,
                                          [&](int i, int j, one x) { to[static_cast<std::size_t>(i * side + j)] = x; });
    return to;
  }
  template <class Pixel>
  static tile of_image(int oh, int ow, int above, int left, Pixel pixel) {
    return transformed<side>([&](int i, int j) { return one(pixel(oh - above + i, ow - left + j)); },
                             [](const one* d, one* v) { of::image(d, v); });
  }
  // Pixel(image, row, column, channel) is 0 beside the image; filter(kh, kw, from, to).
  template <class Pixel, class Filter>
  static std::vector<T> convolution(int images, int oh, int ow, int depth, int channels, int above, int left,
                                    Pixel pixel, Filter filter) {
    std::vector<T> y(static_cast<std::size_t>(images * oh * ow * channels));
    for (int n = 0; n < images; ++n)
      for (int h = 0; h < oh; h += M)
        for (int w = 0; w < ow; w += M) {
          std::vector<tile> v;
          for (int c = 0; c < depth; ++c)
            v.push_back(of_image(h, w, above, left, [&](int a, int b) { return pixel(n, a, b, c); }));
          for (int k = 0; k < channels; ++k) {
            tile sums;
            sums.fill(one(T(0)));
            for (int c = 0; c < depth; ++c) {
              const tile u = transformed<3>([&](int i, int j) { return one(filter(i, j, c, k)); },
                                            [](const one* g, one* t) { of::filter(g, t); });
              for (std::size_t i = 0; i < points; ++i) sums[i] = fma(v[static_cast<std::size_t>(c)][i], u[i], sums[i]);
            }
            detail::transform_both<side, M, one>(
                [&](int i, int j) { return sums[static_cast<std::size_t>(i * side + j)]; },
                [](const one* m, one* t) { of::result(m, t); },
                [&](int i, int j, one x) {
                  if (h + i < oh && w + j < ow)
                    y[static_cast<std::size_t>(((n * oh + h + i) * ow + w + j) * channels + k)] = x.v;
                });
          }
        }
    return y;
  }
  T pixel(int n, int h, int w, int c) const { return q.inside(h, w) ? q.pixel(n, h, w, c) : T(0); }
  T upstream(int n, int h, int w, int c) const {
    return h >= 0 && w >= 0 && h < q.p.oh() && w < q.p.ow() ? q.upstream(n, h, w, c) : T(0);
  }
  std::vector<T> forward() const {
    const problem& p = q.p;
    return convolution(
        p.n, p.oh(), p.ow(), p.in, p.out, p.above(), p.left(),
        [&](int n, int h, int w, int c) { return pixel(n, h, w, c); },
        [&](int i, int j, int c, int k) {
          return q.w[plain<T, A>::at({3, 3, p.in, p.out}, {i, j, c, k})];
        });
  }
  std::vector<T> input() const {
    const problem& p = q.p;
    return convolution(
        p.n, p.h, p.w, p.out, p.in, 2 - p.above(), 2 - p.left(),
        [&](int n, int h, int w, int c) { return upstream(n, h, w, c); },
        [&](int i, int j, int c, int k) {
          return q.w[plain<T, A>::at({3, p.out, 3, p.in}, {2 - i, c, 2 - j, k})];
        });
  }
  std::vector<T> filter() const {
    const problem& p = q.p;
    std::vector<tile> sums(static_cast<std::size_t>(p.in * p.out));
    for (tile& t : sums) t.fill(one(T(0)));
    for (int n = 0; n < p.n; ++n)
      for (int h = 0; h < p.oh(); h += M)
        for (int w = 0; w < p.ow(); w += M) {
          std::vector<tile> d;
          for (int k = 0; k < p.out; ++k)
            d.push_back(transformed<M>([&](int i, int j) { return one(upstream(n, h + i, w + j, k)); },
                                       [](const one* y, one* t) { of::gradient(y, t); }));
          for (int c = 0; c < p.in; ++c) {
            const tile v = of_image(h, w, p.above(), p.left(), [&](int a, int b) { return pixel(n, a, b, c); });
            for (int k = 0; k < p.out; ++k) {
              tile& s = sums[static_cast<std::size_t>(c * p.out + k)];
              for (std::size_t i = 0; i < points; ++i) s[i] = fma(v[i], d[static_cast<std::size_t>(k)][i], s[i]);
            }
          }
        }
    std::vector<T> df(p.w_size());
    for (int c = 0; c < p.in; ++c)
      for (int k = 0; k < p.out; ++k)
        detail::transform_both<side, 3, one>(
            [&](int i, int j) {
              return sums[static_cast<std::size_t>(c * p.out + k)][static_cast<std::size_t>(i * side + j)];
            },
            [](const one* u, one* g) { of::of_filter(u, g); },
            [&](int i, int j, one x) {
              df[plain<T, A>::at({3, 3, p.in, p.out}, {i, j, c, k})] = x.v;
            });
    return df;
  }
};

template <class T, class A>
struct results {
  std::vector<T> y, dx, df;
  bool same = true;
  results(const problem& p, const plain<T, A>& q) {
    using namespace divided_test;
    constexpr dtype t = dtype_of<T>;
    y = same_in_parts<&cards::conv2d, T, A>(p.lowered(), p.n, p.y_size(), {t, t, t}, {q.x.data(), q.w.data()}, same);
    df = same_in_parts<&cards::conv2d_filter, T, A>(p.lowered(), p.n, p.w_size(), {t, t, t}, {q.x.data(), q.dy.data()},
                                                    same);
    dx = same_in_parts<&cards::conv2d_input, T, A>(p.lowered(), p.n, p.x_size(), {t, t, t}, {q.w.data(), q.dy.data()},
                                                   same);
  }
};
template <class A, class T>
plain<T, A> as(const plain<T, fast>& q) {
  return {q.p, q.x, q.w, q.dy};
}

// Returns whether a convolution, or the gradient of its image, is computed in tiles.
template <class T, int M>
bool takes(const problem& p, bool of_input = false) {
  detail::winograd_problem<T> g{.x = nullptr,
                                .y = nullptr,
                                .images = p.n,
                                .depth = p.in,
                                .channels = p.out,
                                .h = p.h,
                                .w = p.w,
                                .oh = p.oh(),
                                .ow = p.ow(),
                                .above = p.above(),
                                .left = p.left()};
  if (of_input) {
    std::swap(g.depth, g.channels), std::swap(g.h, g.oh), std::swap(g.w, g.ow);
    g.above = 2 - g.above, g.left = 2 - g.left;
  }
  return detail::winograd_product<T, fast, M>::takes(g);
}

template <class T, int M, class A>
void check_order(const problem& p, lcg& random) {
  INFO(p.n, " x ", p.h, " x ", p.w, " x ", p.in, " to ", p.out, p.same ? ", same, " : ", ", M);
  const auto q = drawn<T, A>(p, random);
  REQUIRE(takes<T, M>(p));
  const results<T, winograd<M, A>> found(p, {q.p, q.x, q.w, q.dy});
  const by_tiles<T, A, M> expected{q};
  CHECK(found.same);
  CHECK(same_bits(found.y, expected.forward()));
  CHECK(same_bits(found.dx, takes<T, M>(p, true) ? expected.input() : q.input()));
  CHECK(same_bits(found.df, expected.filter()));
}

template <lowered_dims E, int M>
void check_both_forms(const problem& p, lcg& random) {
  const auto dims = p.lowered();
  REQUIRE(std::equal(dims.begin(), dims.end(), E.begin()));
  const auto q = drawn<float, fast>(p, random);
  REQUIRE(takes<float, M>(p));
  const results<float, winograd<M>> found(p, {q.p, q.x, q.w, q.dy});
  const auto compiled = [&]<const card * Op>(std::size_t size, const std::vector<float>& a,
                                             const std::vector<float>& b) {
    std::vector<float> y(size, -7.0f);
    std::byte* args[] = {reinterpret_cast<std::byte*>(y.data()),
                         reinterpret_cast<std::byte*>(const_cast<float*>(a.data())),
                         reinterpret_cast<std::byte*>(const_cast<float*>(b.data()))};
    op_kernel<Op>::template run<winograd<M>>(detail::fixed<signature_of<Op, E>>{p.n, 1}, args);
    return y;
  };
  CHECK(same_bits(compiled.template operator()<&cards::conv2d>(p.y_size(), q.x, q.w), found.y));
  CHECK(same_bits(compiled.template operator()<&cards::conv2d_input>(p.x_size(), q.w, q.dy), found.dx));
  CHECK(same_bits(compiled.template operator()<&cards::conv2d_filter>(p.w_size(), q.x, q.dy), found.df));
}

// The greatest error of a result, beside the sum of its terms' magnitudes.
template <class T>
double farthest_of(const problem& p, const plain<T, fast>& q, const std::vector<T>& y, const std::vector<T>& dx,
                   const std::vector<T>& df) {
  const auto in = static_cast<std::size_t>(p.in), out = static_cast<std::size_t>(p.out);
  std::vector<long double> sums[3], sizes[3];
  const std::size_t counts[] = {p.y_size(), p.x_size(), p.w_size()};
  for (std::size_t k = 0; k < 3; ++k) sums[k].resize(counts[k]), sizes[k].resize(counts[k]);
  p.each([&](std::size_t to, std::size_t from, std::size_t at) {
    for (std::size_t c = 0; c < in; ++c)
      for (std::size_t o = 0; o < out; ++o) {
        // the gradient by input reads filters [kh, out, kw, in]
        const long double weight = q.w[(at * in + c) * out + o],
                          turned = q.w[((at / 3 * out + o) * 3 + at % 3) * in + c];
        const long double pixel = q.x[from * in + c], upstream = q.dy[to * out + o];
        const auto add = [&](std::size_t k, std::size_t i, long double term) {
          sums[k][i] += term, sizes[k][i] += std::fabs(term);
        };
        add(0, to * out + o, pixel * weight);
        add(1, from * in + c, upstream * turned);
        add(2, (at * in + c) * out + o, upstream * pixel);
      }
  });
  double worst = 0;
  const std::vector<T>* found[] = {&y, &dx, &df};
  for (std::size_t k = 0; k < 3; ++k) {
    REQUIRE(found[k]->size() == counts[k]);
    for (std::size_t i = 0; i < counts[k]; ++i)
      worst = std::max(worst, static_cast<double>(std::fabs((*found[k])[i] - sums[k][i]) / sizes[k][i]));
  }
  return worst;
}
problem draw_taken(lcg& random) {
  const auto in = [&](int a, int b) { return a + static_cast<int>(random(static_cast<std::uint32_t>(b - a + 1))); };
  return {in(4, 5), in(12, 13), in(12, 13), in(20, 36), in(33, 36), 3, 3, 1, 1, random(3) != 0};
}
}  // namespace

TEST_CASE("every number is what docs/arithmetic.md says, bit for bit, in any number of parts") {
  lcg random{3};
  CHECK((takes<float, 4>({6, 11, 12, 17, 19, 3, 3, 1, 1, true}, true) &&
         takes<float, 2>({6, 12, 12, 40, 49, 3, 3, 1, 1, true}, true)));
  check_order<float, 4, fast>({6, 11, 12, 17, 19, 3, 3, 1, 1, true}, random);
  check_order<float, 4, fast>({5, 10, 14, 35, 33, 3, 3, 1, 1, false}, random);
  check_order<float, 4, fast>({24, 8, 8, 32, 19, 3, 3, 1, 1, true}, random);  // several blocks of tiles
  check_order<float, 2, fast>({4, 11, 12, 40, 49, 3, 3, 1, 1, true}, random);
  check_order<float, 2, fast>({5, 8, 8, 40, 49, 3, 3, 1, 1, false}, random);
  check_order<double, 4, portable>({6, 8, 8, 18, 16, 3, 3, 1, 1, true}, random);
  check_order<double, 2, fast>({6, 8, 8, 33, 40, 3, 3, 1, 1, true}, random);
}

TEST_CASE("errors are as docs/arithmetic.md states them") {
  lcg random{4};
  double worst[2] = {}, exact = 0;
  for (int i = 0; i < 3; ++i) {
    const problem p = draw_taken(random);
    CHECK(takes<float, 4>(p));
    const auto q = drawn<float, fast>(p, random);
    const results<float, winograd<2>> two(p, {q.p, q.x, q.w, q.dy});
    const results<float, winograd<4>> four(p, {q.p, q.x, q.w, q.dy});
    CHECK((two.same && four.same));
    worst[0] = std::max(worst[0], farthest_of(p, q, two.y, two.dx, two.df));
    worst[1] = std::max(worst[1], farthest_of(p, q, four.y, four.dx, four.df));
    if (i != 0) continue;
    const auto d = drawn<double, fast>(p, random);
    const results<double, winograd<4>> in_double(p, {d.p, d.x, d.w, d.dy});
    exact = std::max(exact, farthest_of(p, d, in_double.y, in_double.dx, in_double.df));
  }
  CHECK(worst[0] < 5e-7);
  CHECK(worst[1] < 1e-5);
  CHECK(exact < 1e-14);
}

TEST_CASE("compiled: the same bits") {
  lcg random{6};
  check_both_forms<lowered_dims{0, 12, 11, 17, 12, 11, 40, 3, 3, 1, 1, 1, 1}, 4>({5, 12, 11, 17, 40, 3, 3, 1, 1, true},
                                                                                 random);
  check_both_forms<lowered_dims{0, 8, 7, 40, 6, 5, 35, 3, 3, 1, 1, 0, 0}, 2>({12, 8, 7, 40, 35, 3, 3, 1, 1, false},
                                                                             random);
}

TEST_CASE("convolutions that it does not take have the bits of direct sums") {
  lcg random{8};
  for (const problem& p :
       {problem{2, 9, 9, 16, 16, 3, 3, 2, 2, true},                                                 // by steps of 2
        problem{2, 9, 9, 16, 16, 5, 5, 1, 1, true},                                                 // 5x5
        problem{2, 9, 9, 15, 16, 3, 3, 1, 1, true},                                                 // few channels
        problem{2, 9, 9, 16, 15, 3, 3, 1, 1, true}, problem{1, 3, 3, 64, 64, 3, 3, 1, 1, true}}) {  // few places
    CHECK_FALSE((p.kh == 3 && p.sh == 1 && (takes<float, 4>(p) || takes<float, 2>(p))));
    check_order<float, winograd<4>>(p, random);
  }
}

TEST_CASE("shape says what is taken") {
  CHECK(takes<float, 4>({16, 32, 32, 64, 64, 3, 3, 1, 1, true}));
  CHECK(takes<float, 2>({16, 32, 32, 64, 64, 3, 3, 1, 1, true}));
  CHECK(takes<float, 4>({32, 7, 7, 512, 512, 3, 3, 1, 1, true}));
  CHECK_FALSE(takes<float, 4>({1, 3, 3, 512, 512, 3, 3, 1, 1, true}));
  CHECK_FALSE(takes<float, 4>({32, 7, 7, 700, 700, 3, 3, 1, 1, true}));  // filters of 70 MB
  CHECK_FALSE(takes<float, 4>({0, 32, 32, 64, 64, 3, 3, 1, 1, true}));
}
