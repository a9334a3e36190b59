#include <gradus/update/freeze.hpp>

#include <gradus/update/accumulate.hpp>
#include <gradus/update/chain.hpp>
#include <gradus/update/clip.hpp>
#include <gradus/update/composed.hpp>
#include <gradus/update/rules/momentum.hpp>
#include <gradus/update/rules/sophia.hpp>

#include "steps.hpp"

using namespace gradus;
using steps::near, steps::vec;

TEST_CASE("a frozen variable, its slots and its average stay; its gradient counts in the norm") {
  steps::updater<freeze<named>, momentum, clip_by_global_norm, exponential_moving_average> u{
      freeze{named{"a"}}, momentum{.rate = 1}, clip_by_global_norm{1}, exponential_moving_average{.decay = 0.5}};
  vec a{1.0}, b{1.0};
  u.track("a", a), u.track("b", b);
  u.apply({{"a", vec{3.0}}, {"b", vec{4.0}}});
  CHECK(a[0] == 1);
  CHECK(u.slot("a", "momentum").as<double>()[0] == 0);
  CHECK(u.average("a").as<double>()[0] == 1);
  near(b, {1 - 0.8});
}
TEST_CASE("its gradient counts in the norm of a chain's clip too") {
  const auto parts = chain{clip_by_global_norm{1}, momentum{.rate = 1}};
  steps::updater<freeze<named>, std::remove_const_t<decltype(parts)>> u{freeze{named{"a"}}, parts};
  vec a{1.0}, b{1.0};
  u.track("a", a), u.track("b", b);
  u.apply({{"a", vec{3.0}}, {"b", vec{4.0}}});
  CHECK(a[0] == 1);
  near(b, {1 - 0.8});
}
TEST_CASE("with accumulation its sum starts afresh like the others'") {
  steps::updater<freeze<named>, momentum, clip_by_global_norm, accumulate> u{
      freeze{named{"a"}}, momentum{.rate = 1, .decay = 0}, clip_by_global_norm{1}, accumulate{2}};
  vec a{1.0}, b{0.0};
  u.track("a", a), u.track("b", b);
  for (int i = 0; i < 4; ++i) u.apply({{"a", vec{3.0}}, {"b", vec{4.0}}});
  CHECK(u.gradient_norm() == doctest::Approx(5));
  CHECK(a[0] == 1);
  near(b, {-1.6});
}
TEST_CASE("by any mask") {
  const auto vectors = [](std::string_view, const extents& dims) { return dims.rank == 1; };
  CHECK_THROWS_WITH_AS(steps::after({1.0}, {{1.0}}, freeze{vectors}, momentum{.rate = 1}),
                       "the mask of freeze matches all variables, \"w\", so nothing would be trained; mend the mask",
                       invalid_argument);
  const auto is_a = [](std::string_view name, const extents&) { return name == "a"; };
  steps::updater<decltype(freeze{is_a}), momentum> u{freeze{is_a}, momentum{.rate = 1}};
  vec a{1.0}, b{1.0};
  u.track("a", a), u.track("b", b);
  u.apply({{"a", vec{3.0}}, {"b", vec{0.25}}});
  CHECK(a[0] == 1);
  CHECK(b[0] == 0.75);
  CHECK_THROWS_WITH_AS(steps::after({1.0}, {{1.0}}, freeze{all_but{vectors}}, momentum{.rate = 1}),
                       "the mask of freeze matches no variable of \"w\"; mend the mask, or leave freeze out",
                       invalid_argument);
}
TEST_CASE("a frozen variable takes no observation") {
  steps::updater<freeze<named>, sophia> u{freeze{named{"a"}}, sophia{}};
  vec a{1.0}, b{1.0};
  u.track("a", a), u.track("b", b);
  u.observe({{"a", vec{2.0}}, {"b", vec{2.0}}});
  CHECK(u.slot("a", "h").as<double>()[0] == 0);
  CHECK(u.slot("b", "h").as<double>()[0] == doctest::Approx(0.04));
}

TEST_CASE("a frozen variable has no average to be evaluated with") {
  steps::updater<freeze<named>, momentum, exponential_moving_average> u{freeze{named{"a"}}, momentum{.rate = 1},
                                                                        exponential_moving_average{.decay = 0.5}};
  vec a{1.0}, b{1.0};
  u.track("a", a), u.track("b", b);
  a[0] = 7;  // as a restore of the weights that are kept does: the average is still that of the beginning
  u.apply({{"a", vec{3.0}}, {"b", vec{1.0}}});
  for (const double average : {0.5, 0.0}) {
    u.swap_averages();
    CHECK(a[0] == 7);
    near(b, {average});
  }
}
TEST_CASE("a mask that fits nothing is refused again, not only once") {
  steps::updater<freeze<named>, momentum> u{freeze{named{"c"}}, momentum{.rate = 1}};
  vec a{1.0};
  u.track("a", a);
  for (int i = 0; i < 2; ++i) {
    CHECK_THROWS_AS(u.apply({{"a", vec{1.0}}}), invalid_argument);
    CHECK(a[0] == 1);
  }
}
