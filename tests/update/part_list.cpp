#include <gradus/update/part_list.hpp>

#include <doctest/doctest.h>

#include <gradus/update/clip.hpp>
#include <gradus/update/lookahead.hpp>
#include <gradus/update/mask.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/weight_decay.hpp>

using namespace gradus;

TEST_CASE("a list of parts knows where everything of each lies") {
  using layout = detail::chain_layout<clip_by_norm, weight_decay<matrices>, clip_by_global_norm, adam, lookahead>;
  static_assert(layout::sum(layout::slots, 3) == 0);   // before adam
  static_assert(layout::sum(layout::slots, 4) == 2);   // before lookahead: m and v
  static_assert(layout::sum(layout::shared, 5) == 2);  // the powers of beta
  static_assert(layout::stages(5) == 3);
  static_assert(layout::part_of_stage(0) == 0 && layout::part_of_stage(1) == 1 && layout::part_of_stage(2) == 2);
  static_assert(layout::global_stages() == 3);
  static_assert(layout::first(layout::clips, false) == 1);  // one clip at the head
  static_assert(layout::first(layout::rules, true) == 3);
  CHECK(layout::count == 5);
}

TEST_CASE("the constants of all parts are an array of numbers, in the order of the parts") {
  using constants = detail::chained_constants<double, 0, weight_decay<>, gradient_descent>;
  static_assert(sizeof(constants) == 3 * sizeof(double));
  constants c{};
  detail::constants_at<0>(c) = {1, 2};
  detail::constants_at<1>(c) = {3};
  const auto all = std::bit_cast<std::array<double, 3>>(c);
  CHECK(all == std::array<double, 3>{1, 2, 3});
  using with_lookahead = detail::chained_constants<float, 0, lookahead, gradient_descent, lookahead>;
  static_assert(sizeof(with_lookahead) == 5 * sizeof(float));
}
