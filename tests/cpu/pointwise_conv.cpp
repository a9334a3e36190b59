#include "conv_order.hpp"

#include <gradus/cpu/pointwise_conv.hpp>

using namespace window_test;

namespace {
problem draw_pointwise(lcg& random) {
  const auto one_to = [&](std::uint32_t n) { return 1 + static_cast<int>(random(n)); };
  const auto channels = [&] { return one_to(random(3) == 0 ? 3 : random(2) == 0 ? 20 : 70); };
  problem p{one_to(5), one_to(12), one_to(12), channels(), channels(), 1, 1, 1, 1, random(2) == 0};
  if (random(2) == 0) p.sh = one_to(3), p.sw = one_to(3);
  return p;
}
}  // namespace

TEST_CASE("windows of one pixel: every number is its chain of fma, bit for bit, in any number of parts") {
  lcg random{11};
  for (int i = 0; i < 80; ++i) {
    const problem p = draw_pointwise(random);
    check_order<float, fast>(p, random);
    if (i % 4 == 0) check_order<double, portable>(p, random);
  }
  check_order<float, fast>({0, 4, 4, 2, 3, 1, 1, 2, 2, true}, random);     // no image
  check_order<float, fast>({3, 9, 9, 3, 2, 1, 1, 12, 12, true}, random);   // one place in an image
  check_order<float, fast>({2, 3, 5, 4100, 3, 1, 1, 2, 2, true}, random);  // a place is more than is copied together
  check_order<float, fast>({2, 3, 601, 15, 4, 1, 1, 2, 2, true}, random);  // a row is, and gradients begin at +0
  check_order<float, fast>({2, 3, 601, 3, 4, 1, 1, 2, 2, true}, random);   // a row is not
  check_order<float, fast>({3, 40, 51, 2, 4, 1, 1, 1, 1, true}, random);   // more pixels than sums are added to +0
}

TEST_CASE("the gradient of few channels is +0 plus its sum, that of many its sum") {
  const auto of_input = [](int in, int stride) {
    const problem p{1, 3, 3, in, 1, 1, 1, stride, stride, true};
    const std::vector<float> w(p.w_size(), -0x1p-100f), dy(p.y_size(), 0x1p-100f);  // the product rounds to -0
    bool same = true;
    const auto dx = divided_test::same_in_parts<&cards::conv2d_input, float, fast>(
        p.lowered(), 1, p.x_size(), {float32, float32, float32}, {w.data(), dy.data()}, same);
    CHECK(same);
    return dx;
  };
  CHECK(same_bits(of_input(15, 1), std::vector<float>(135, 0.0f)));
  CHECK(same_bits(of_input(15, 2), std::vector<float>(135, 0.0f)));
  // Without fma the product is rounded before it is added to +0.
  const auto of = [](float x) { return detail::lane<float, fast>(x); };
  const float sum = fma(of(-0x1p-100f), of(0x1p-100f), of(0)).v;
  CHECK(same_bits(of_input(16, 1), std::vector<float>(144, sum)));
  std::vector<float> of_corners(144, 0.0f);  // no window sees the other pixels
  for (const std::size_t pixel : {0u, 2u, 6u, 8u}) std::fill_n(of_corners.data() + 16 * pixel, 16, sum);
  CHECK(same_bits(of_input(16, 2), of_corners));
}

TEST_CASE("what is no window of one pixel beside the next is none") {
  const auto seen = [](const problem& p) {
    detail::signature s;
    const auto dims = p.lowered();
    std::copy(dims.begin(), dims.end(), s.dims);
    return detail::is_pointwise(detail::windows<detail::dynamic>(detail::dynamic{1, 1, 0, 1, s}));
  };
  CHECK(seen({1, 4, 5, 3, 2, 1, 1, 2, 1, true}));
  CHECK(!seen({1, 4, 5, 3, 2, 1, 2, 1, 1, true}));
  CHECK(!seen({1, 4, 5, 3, 2, 3, 1, 1, 1, false}));
}

TEST_CASE("compiled: the same bits as interpreted") {
  lcg random{12};
  check_compiled<lowered_dims{0, 7, 9, 20, 7, 9, 40, 1, 1, 1, 1, 0, 0}>({2, 7, 9, 20, 40, 1, 1, 1, 1, true}, random);
  check_compiled<lowered_dims{0, 7, 9, 5, 4, 5, 2, 1, 1, 2, 2, 0, 0}>({3, 7, 9, 5, 2, 1, 1, 2, 2, false}, random);
}
