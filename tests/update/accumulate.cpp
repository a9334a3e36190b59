#include <gradus/update/accumulate.hpp>

#include <gradus/update/adam.hpp>
#include <gradus/update/clip.hpp>
#include <gradus/update/composed.hpp>
#include <gradus/update/gradient_descent.hpp>

#include "steps.hpp"

using namespace gradus;
using steps::after, steps::near, steps::vec;

TEST_CASE("nothing moves until the k-th gradient; then the rule takes the mean") {
  const gradient_descent rule{.rate = 1};
  near(after({0.0}, {{3.0}, {6.0}}, accumulate{3}, rule), {0});
  near(after({0.0}, {{3.0}, {6.0}, {9.0}}, accumulate{3}, rule), {-6});
  near(after({0.0}, {{3.0}, {6.0}, {9.0}, {1.0}, {1.0}}, accumulate{3}, rule), {-6});
  near(after({0.0}, {{3.0}, {6.0}, {9.0}, {1.0}, {1.0}, {4.0}}, accumulate{3}, rule), {-8});
}
TEST_CASE("rule, schedule, clip and average count steps of the rule") {
  steps::updater<accumulate, adam, clip_by_global_norm, exponential_decay, exponential_moving_average> u{
      accumulate{2}, adam{}, clip_by_global_norm{1},
      exponential_decay{.initial = 0.1, .decay_steps = 1, .decay_rate = 0.5}, exponential_moving_average{.decay = 0.5}};
  steps::updater<adam, clip_by_global_norm, exponential_decay, exponential_moving_average> v{
      adam{}, clip_by_global_norm{1}, exponential_decay{.initial = 0.1, .decay_steps = 1, .decay_rate = 0.5},
      exponential_moving_average{.decay = 0.5}};
  vec x{1.0, 2.0}, y = x;
  u.track("w", x), v.track("w", y);
  for (int i = 0; i < 3; ++i) {
    u.apply({{"w", vec{1.0, 5.0 * i}}}), u.apply({{"w", vec{3.0, 3.0 * i}}});
    v.apply({{"w", vec{2.0, 4.0 * i}}});
    near(x, y, 0);
    CHECK(u.average("w").as<double>()[1] == v.average("w").as<double>()[1]);
    CHECK(u.gradient_norm() == doctest::Approx(v.gradient_norm()));
  }
  CHECK(u.global_step() == 6);
}
TEST_CASE("the sum is a slot: a run that stops between two gradients resumes") {
  const auto make = [] {
    return std::make_unique<steps::updater<accumulate, gradient_descent>>(accumulate{2}, gradient_descent{.rate = 1});
  };
  vec x{0.0}, y{7.0};
  auto u = make(), v = make();
  u->track("w", x), v->track("w", y);
  u->apply({{"w", vec{2.0}}});
  state_list from, to;
  u->remembers(from), v->remembers(to);
  CHECK(from.find("w/GradientAccumulator") != nullptr);
  CHECK(u->slot("w", "accumulated").as<double>()[0] == 2);
  for (const auto& e : from.entries()) {
    const auto* other = to.find(e.name);
    REQUIRE(other != nullptr);
    std::copy(e.bytes.begin(), e.bytes.end(), other->bytes.begin());
  }
  v->apply({{"w", vec{4.0}}});
  near(y, {-3});
}
TEST_CASE("rows are added to their places of the sum") {
  steps::updater<accumulate, gradient_descent> u{accumulate{2}, gradient_descent{.rate = 1}};
  vec w(3);
  u.track("w", w);
  const std::vector<std::int32_t> rows{2, 0, 2};
  u.apply({{"w", indexed_slices{rows, vec{1.0, 2.0, 3.0}}}});
  u.apply({{"w", vec{0.0, 0.0, 2.0}}});
  near(w, {-1, 0, -3});
}
TEST_CASE("fewer than one is refused") {
  steps::refused([] { after({0.0}, {}, accumulate{0}, gradient_descent{.rate = 1}); }, "every >= 1");
}
