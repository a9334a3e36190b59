#include "conv_order.hpp"

#include <gradus/cpu/filter_gradient.hpp>

using namespace window_test;

namespace {
template <class T, class A>
void check_filters(const problem& p, lcg& random) {
  INFO(p.n, " x ", p.h, " x ", p.w, " x ", p.in, ", window ", p.kh, " x ", p.kw, ", strides ", p.sh, ", ", p.sw,
       ", out ", p.out, p.same ? ", same" : "");
  const auto q = drawn<T, A>(p, random);
  constexpr dtype t = dtype_of<T>;
  bool same = true;
  CHECK(same_bits(divided_test::same_in_parts<&cards::conv2d_filter, T, A>(p.lowered(), p.n, p.w_size(), {t, t, t},
                                                                           {q.x.data(), q.dy.data()}, same),
                  q.filter()));
  CHECK(same);
}
problem draw_filters(lcg& random, int most_in, int most_out) {
  const auto one_to = [&](int n) { return 1 + static_cast<int>(random(static_cast<std::uint32_t>(n))); };
  const int kh = 1 + 2 * static_cast<int>(random(3)), kw = 1 + 2 * static_cast<int>(random(3));
  return {one_to(6), kh + one_to(9), kw + one_to(12), one_to(most_in), one_to(most_out), kh,
          kw,        one_to(2),      one_to(2),       random(3) != 0};
}
}  // namespace

TEST_CASE("filters of few channels, of the image, of the result or both: the order of sums, in any number of parts") {
  lcg random{21};
  for (int i = 0; i < 30; ++i) {
    check_filters<float, fast>(draw_filters(random, 3, 40), random);  // tiles have taps of several rows
    check_filters<float, fast>(draw_filters(random, 70, 8), random);  // registers hold taps
    check_filters<float, fast>(draw_filters(random, 20, 20), random);
    if (i % 5 == 0) check_filters<double, portable>(draw_filters(random, 4, 4), random);
    if (i % 5 == 0) check_filters<double, fast>(draw_filters(random, 40, 3), random);
  }
  check_filters<float, fast>({2, 3, 3000, 1, 2, 3, 3, 1, 1, true}, random);  // too long a row to be copied
  check_filters<float, fast>({2, 3, 9, 600, 2, 3, 3, 2, 2, true}, random);   // more than a frame holds
  check_filters<float, fast>({0, 5, 5, 1, 2, 3, 3, 1, 1, true}, random);     // no image
}

// An infinite gradient of a place whose window's first row is above the image: that row of the filters does not see it,
// while the columns beside the image do.
TEST_CASE("rows above the image are left out, places beside it count as zeros") {
  for (const int in : {1, 40}) {
    const problem p{1, 4, 4, in, 2, 3, 3, 1, 1, true};
    const std::vector<float> x(p.x_size(), 1.0f);
    std::vector<float> dy(p.y_size(), 1.0f);
    dy[0] = std::numeric_limits<float>::infinity();
    bool same = true;
    const auto dw = divided_test::same_in_parts<&cards::conv2d_filter, float, fast>(
        p.lowered(), 1, p.w_size(), {float32, float32, float32}, {x.data(), dy.data()}, same);
    CHECK(same);
    kernel_test::places({3, 3, in, 2}, [&](const std::vector<int>& k) {
      const float v = dw[kernel_test::at({3, 3, in, 2}, {k[0], k[1], k[2], k[3]})];
      const bool sees = k[3] == 0 && k[0] != 0;
      CHECK(std::isnan(v) == (sees && k[1] == 0));
      CHECK(std::isinf(v) == (sees && k[1] != 0));
    });
  }
}
