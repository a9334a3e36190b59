#include "conv_order.hpp"

using namespace window_test;

TEST_CASE(
    "tiles of any positions: every number is its chain of fma, for windows x strides x padding x channels x images") {
  lcg random{11};
  // Channels around one, two and more registers of 4, 8 and 16 numbers; images of which all, some or no window lies
  // inside, with fewer and more positions than a tile has.
  constexpr int channels[][2] = {{5, 17}, {18, 9}, {33, 5}, {3, 49}, {16, 33}};
  int drawn = 0;
  for (const int k : {2, 3, 5})
    for (const int stride : {1, 2})
      for (const bool same : {false, true})
        for (const int images : {1, 4}) {
          const auto [in, out] = channels[drawn++ % 5];
          check_order<float, fast>({images, 5 + drawn % 3, 5, in, out, k, k, stride, stride, same}, random);
        }
  check_order<double, portable>({2, 6, 5, 9, 11, 3, 3, 2, 1, true}, random);
  check_order<float, fast>({1, 4, 21, 17, 18, 2, 4, 3, 2, true}, random);   // windows and strides that are not square
  check_order<float, fast>({1, 18, 3, 20, 20, 17, 2, 1, 1, true}, random);  // more taps than such tiles take
}

TEST_CASE("a sum that is longer than a panel of filters goes on from the result") {
  lcg random{12};
  check_order<float, fast>({1, 2, 3, 480, 18, 3, 3, 1, 1, true}, random);
  check_order<float, fast>({1, 3, 2, 17, 480, 3, 3, 1, 1, true}, random);
}

TEST_CASE("large results, which are fetched before they are written, in several panels of filters") {
  lcg random{13};
  const problem p{5, 47, 31, 4, 37, 3, 3, 1, 1, true};  // more than 2^18 numbers
  const auto q = drawn<float, fast>(p, random);
  bool same = true;
  using namespace divided_test;
  CHECK(same_bits(same_in_parts<&cards::conv2d, float, fast>(p.lowered(), p.n, p.y_size(), {float32, float32, float32},
                                                             {q.x.data(), q.w.data()}, same),
                  q.forward()));
  CHECK(same);
}
