#include <gradus/update/loss_scale.hpp>

#include <gradus/update/clip.hpp>
#include <gradus/update/composed.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <limits>

#include "steps.hpp"

using namespace gradus;
using steps::near, steps::vec;

namespace {
constexpr double infinity = std::numeric_limits<double>::infinity(),
                 no_number = std::numeric_limits<double>::quiet_NaN();
}

TEST_CASE("gradients are divided by the scale before clip and rule") {
  near(steps::after({0.0}, {{256.0}}, static_loss_scale{128}, gradient_descent{.rate = 1}), {-2});
  near(steps::after({0.0, 0.0}, {{3 * 128.0, 4 * 128.0}}, static_loss_scale{128}, clip_by_global_norm{1},
                    gradient_descent{.rate = 1}),
       {-0.6, -0.8});
}
TEST_CASE("a broken step is left out and halves the scale; good ones double it") {
  steps::updater<dynamic_loss_scale, adam> u{dynamic_loss_scale{.initial = 8, .growth_interval = 2}, adam{.rate = 0.1}};
  vec w{1.0};
  u.track("w", w);
  const auto scale = [&] { return u.update().loss_scale(); };
  const auto m = [&] { return u.slot("w", "m").as<double>()[0]; };
  CHECK(scale() == 8);
  u.apply({{"w", vec{infinity}}});
  CHECK((w[0] == 1 && m() == 0 && scale() == 4 && u.global_step() == 1));
  u.apply({{"w", vec{no_number}}});
  CHECK((w[0] == 1 && m() == 0 && scale() == 2));
  u.apply({{"w", vec{2.0}}});  // the gradient is 1: the first step of Adam
  CHECK(w[0] == doctest::Approx(0.9));
  CHECK(scale() == 2);
  u.apply({{"w", vec{2.0}}});
  CHECK(scale() == 4);
  u.apply({{"w", vec{4.0}}}), u.apply({{"w", vec{no_number}}});
  CHECK(scale() == 2);  // and the good steps are counted anew
  u.apply({{"w", vec{2.0}}});
  CHECK(scale() == 2);
  u.apply({{"w", vec{2.0}}});
  CHECK(scale() == 4);
}
TEST_CASE("the scale stays between its bounds") {
  dynamic_loss_scale s{.initial = 2, .growth_interval = 1, .largest = 8};
  for (int i = 0; i < 5; ++i) s.unscale(infinity), s.finish();
  CHECK(s.value() == 1);
  for (int i = 0; i < 5; ++i) s.unscale(1), s.finish();
  CHECK(s.value() == 8);
}
TEST_CASE("scale and count are state") {
  dynamic_loss_scale s{.initial = 16, .growth_interval = 3};
  s.unscale(infinity), s.finish(), s.unscale(1), s.finish();
  state_list list;
  s.remembers(list);
  REQUIRE(list.entries().size() == 2);
  CHECK(s.scale == 8);
  CHECK(s.good_steps == 1);
  s.restart();
  CHECK(s.value() == 16);
}
TEST_CASE("settings that make no sense are refused") {
  const auto with = [](const auto& s) { steps::after({0.0}, {}, s, gradient_descent{.rate = 1}); };
  steps::refused([&] { with(dynamic_loss_scale{.initial = 0}); }, "`initial` > 0, found 0");
  steps::refused([&] { with(dynamic_loss_scale{.backoff_factor = 2}); }, "`backoff_factor` in (0, 1], found 2");
  steps::refused([&] { with(static_loss_scale{-1}); }, "`scale` > 0, found -1");
}

TEST_CASE("dynamic: an interval that becomes shorter than the good steps so far grows the scale at once") {
  dynamic_loss_scale s{.initial = 2, .growth_interval = 1000};
  for (int i = 0; i < 5; ++i) s.finish();
  CHECK(s.value() == 2);
  s.growth_interval = 3;
  s.finish();
  CHECK(s.value() == 4);
}
