#include <gradus/update/lookahead.hpp>

#include <gradus/update/chain.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

#include "steps.hpp"

using namespace gradus;
using steps::after, steps::near, steps::vec;

TEST_CASE("every k-th step the fast weights return to the slow ones") {
  const chain c{gradient_descent{.rate = 1}, lookahead{.every = 3, .alpha = 0.5}};
  const vec g{1.0};
  near(after({0.0}, {g, g}, c), {-2});
  near(after({0.0}, {g, g, g}, c), {-1.5});  // half way to -3
  near(after({0.0}, {g, g, g, g, g}, c), {-3.5});
  near(after({0.0}, {g, g, g, g, g, g}, c), {-1.5 - 1.5});  // from -1.5 half way to -4.5
}
TEST_CASE("an average beside it follows the synchronized weights") {
  steps::updater<chain<part_list<gradient_descent, lookahead>>, exponential_moving_average> u{
      chain{gradient_descent{.rate = 1}, lookahead{.every = 1, .alpha = 0.5}},
      exponential_moving_average{.decay = 0.5}};
  vec w{0.0};
  u.track("w", w);
  u.apply({{"w", vec{1.0}}});
  near(w, {-0.5});
  CHECK(u.average("w").as<double>()[0] == doctest::Approx(-0.25));
}
TEST_CASE("with rows, the others take part too") {
  steps::updater<chain<part_list<gradient_descent, lookahead>>> u{
      chain{gradient_descent{.rate = 1}, lookahead{.every = 2, .alpha = 0.5}}};
  vec w{0.0, 0.0};
  u.track("w", w);
  const std::vector<std::int32_t> first{0}, second{1};
  u.apply({{"w", indexed_slices{first, vec{1.0}}}});
  near(w, {-1, 0});
  u.apply({{"w", indexed_slices{second, vec{4.0}}}});
  near(w, {-0.5, -2});
}
TEST_CASE("no step in between is an error") {
  steps::refused(
      [] {
        after({0.0}, {}, chain{gradient_descent{.rate = 1}, lookahead{.every = 0}});
      },
      "`every` a whole number >= 1, found 0");
}
