#include "conv_order.hpp"

#include <gradus/cpu/filter_product.hpp>

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
problem draw_filters(lcg& random, int least_in, int most_in, int most_out) {
  const auto one_to = [&](int n) { return 1 + static_cast<int>(random(static_cast<std::uint32_t>(n))); };
  const int kh = one_to(5), kw = one_to(5);
  return {one_to(3),
          kh + one_to(11) - 1,
          kw + one_to(15) - 1,
          least_in - 1 + one_to(most_in - least_in + 1),
          one_to(most_out),
          kh,
          kw,
          one_to(3),
          one_to(3),
          random(3) != 0};
}
}  // namespace

// Numbers read or written beside their arrays would change bits here, or be found by the address sanitizer.
TEST_CASE("filters of every number of channels, tap and stride: the order of sums, in any number of parts") {
  lcg random{57};
  for (int i = 0; i < 8; ++i) {
    check_filters<float, fast>(draw_filters(random, 1, 6, 40), random);    // tiles have taps of several rows
    check_filters<float, fast>(draw_filters(random, 12, 40, 6), random);   // registers hold taps
    check_filters<float, fast>(draw_filters(random, 20, 60, 20), random);  // several pieces of a row of taps
    if (i % 2 == 0) check_filters<float, portable>(draw_filters(random, 1, 40, 40), random);
    if (i % 2 == 0) check_filters<double, fast>(draw_filters(random, 1, 40, 40), random);
  }
}

// The sums of a piece have room for 64 taps; three rows of a window may have 93.
TEST_CASE("filters of few taps in a row and of as many channels as a piece has: every sum has its place") {
  lcg random{59};
  const int width = static_cast<int>(detail::pack<float, fast>::width);
  for (int trial = 0; trial < 12; ++trial) {
    const int kw = 1 + 2 * static_cast<int>(random(3)), kh = 3 + static_cast<int>(random(3));
    const int in = (20 + static_cast<int>(random(12))) / kw;
    const int out = (9 + static_cast<int>(random(5))) * width - static_cast<int>(random(3));
    check_filters<float, fast>({1, kh + 2, kw + 3, in, out, kh, kw, 1, 1, random(2) != 0}, random);
  }
}

TEST_CASE("filters whose images need several blocks of places, or parts of a row of places") {
  lcg random{58};
  check_filters<float, fast>({2, 13, 21, 22, 18, 3, 3, 1, 1, true}, random);
  check_filters<float, fast>({1, 20, 21, 1, 9, 5, 5, 1, 1, true}, random);
  check_filters<float, fast>({1, 2, 700, 9, 5, 3, 3, 1, 1, true}, random);  // rows longer than a block
  check_filters<float, fast>({1, 3, 3000, 2, 1, 3, 3, 1, 1, true}, random);
  check_filters<float, fast>({1, 5, 700, 6, 4, 3, 3, 2, 3, true}, random);   // of which some taps are copied
  check_filters<float, fast>({2, 9, 400, 1, 4, 3, 2, 4, 90, true}, random);  // windows far apart
  check_filters<float, fast>({2, 30, 1, 20, 6, 3, 3, 1, 1, true}, random);   // one place in a row
  check_filters<float, fast>({9, 5, 5, 24, 7, 3, 3, 1, 1, true}, random);    // several images at once
  check_filters<float, fast>({1, 3, 3, 12, 220, 3, 3, 1, 1, true}, random);  // channels in several pieces
  check_filters<float, fast>({0, 6, 6, 20, 20, 3, 3, 1, 1, true}, random);   // no image
}
