// one thread: nothing here runs at the same time
// The class itself; what it trains, beside a stepper on the heap, is in static_step.cpp and gradient_life.cpp.
#include <gradus/run/static_stepper.hpp>
#include <gradus/update/average.hpp>
#include <gradus/update/freeze.hpp>
#include <gradus/update/lookahead.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/schedules/plateau.hpp>

#include "static_compare.hpp"

#include <array>
#include <cstring>
#include <optional>

using namespace static_test;

TEST_CASE("inputs keep what is written, for steps and predictions alike, whether they are read in place or copied") {
  auto whole = make_static_stepper<layers>(static_batch<4>{}, adam{});
  auto each = make_static_stepper<layers>(static_batch<4>{}, adam{}, one_by_one{});
  random_stream stream{.seed = 2};
  draw(each.input<"x">(), stream), draw(each.input<"y">(), stream);
  const std::vector<float> x(each.input<"x">().begin(), each.input<"x">().end());
  std::ranges::copy(x, whole.input<"x">().begin());
  std::ranges::copy(each.input<"y">(), whole.input<"y">().begin());
  each.initialize(3), whole.initialize(3);
  each.step(), each.predict(), each.step(), whole.step(), whole.predict(), whole.step();
  CHECK(std::equal(x.begin(), x.end(), each.input<"x">().begin()));
  CHECK(each.loss() == doctest::Approx(whole.loss()).epsilon(1e-6));
  CHECK(each.global_step() == 2);
  static_assert(decltype(each)::batch_size == 4);
}

namespace {
// A rule of a program's own, which does not declare copies_variable.
struct pulled_back {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "PulledBack";
  std::optional<double> rate = 0.1;
  constexpr auto slots() const { return std::array{slot{"anchor", 0.0, true}}; }
  template <class N>
  struct constants {
    N rate;
  };
  constexpr constants<double> prepare(const step_info& at) const { return {at.rate}; }
  template <class N>
  N step(N theta, N g, const constants<N>& c, N& anchor) const {
    return theta - c.rate * (g + theta - anchor);
  }
};
}  // namespace

TEST_CASE("a rule whose slot is a copy of its variable is refused where slots have 16 bits or 8") {
  auto narrow = make_static_stepper<layers>(static_batch<2>{}, pulled_back{}, slots<int8>{});
  CHECK_THROWS_WITH_AS(narrow.initialize(1),
                       "slots<int8>: this rule has a slot that is a copy of its variable, which int8 would round; "
                       "leave slots<int8> out",
                       invalid_argument);
  auto s = make_static_stepper<layers>(static_batch<2>{}, pulled_back{}, slots<bfloat16>{});
  CHECK_THROWS_WITH_AS(s.initialize(1),
                       "slots<bfloat16>: this rule has a slot that is a copy of its variable, which bfloat16 would "
                       "round; leave slots<bfloat16> out",
                       invalid_argument);
}

TEST_CASE("a schedule that observes values has the rate that they lead to") {
  constexpr reduce_on_plateau plateau{.initial = 0.1, .factor = 0.5, .patience = 1};
  auto s = make_static_stepper<layers>(static_batch<2>{}, adam{}, plateau);
  reduce_on_plateau alone = plateau;
  for (const double loss : {3.0, 2.0, 2.5, 2.5, 2.5, 1.0}) {
    s.watch(loss), alone.observe(loss);
    CHECK(s.rate() == alone.rate);
  }
  CHECK(s.rate() == 0.05);
}

TEST_CASE("a model's own count of steps is the stepper's, after a step and after a restore") {
  static constexpr auto model = [](graph& g) {
    const value x = g.placeholder("x", {batch}), w = g.variable("w", {}, {.init = zeros});
    const value steps = g.variable("global_step", {}, {.init = ones, .trainable = false, .type = int32});
    return model_spec{.loss = reduce_mean(square(x * w - cast(steps, float32))), .metrics = {}, .predictions = {}};
  };
  auto s = make_static_stepper<model>(static_batch<2>{}, gradient_descent{.rate = 0});
  s.initialize(3);
  for (const float steps : {0.f, 1.f, 2.f}) {
    s.step();
    CHECK(s.loss() == steps * steps);
  }
  state_list list;
  s.remembers(list);
  const std::int64_t saved = 40;
  std::memcpy(list.find("global_step")->bytes.data(), &saved, sizeof saved);
  s.restored();
  s.step();
  CHECK(s.loss() == 40 * 40);
}

TEST_CASE("a variable that freeze keeps has no average to be evaluated with") {
  auto s = make_static_stepper<layers>(static_batch<4>{}, adam{.rate = 0.1}, exponential_moving_average{.decay = 0.5},
                                       freeze{named{"hidden/bias"}});
  s.initialize(3);
  s.variable<"hidden/bias">()[0] = 7;  // as a restore of weights does, whose average is that of the beginning
  random_stream stream{.seed = 2};
  draw(s.input<"x">(), stream), draw(s.input<"y">(), stream);
  s.step();
  const float moved = s.variable<"out/bias">()[0];
  s.swap_averages();
  CHECK(s.variable<"hidden/bias">()[0] == 7);
  CHECK(s.variable<"out/bias">()[0] != moved);
  s.swap_averages();
  CHECK(s.variable<"hidden/bias">()[0] == 7);
  CHECK(s.variable<"out/bias">()[0] == moved);
}

namespace {
// Its predictions count, one call after the other.
constexpr auto counted = [](graph& g) {
  value h = dense(g.placeholder("x", {batch, 2}), {.units = 3});
  const value loss = reduce_mean(square(h));
  if (g.mode() == mode::predict)
    h = h * 0.0 + assign_add(g.variable("seen", {3}, {.init = zeros, .trainable = false, .local = true}),
                             g.constant(1, float32, {3}));
  return model_spec{.loss = loss, .metrics = {}, .predictions = {{"p", h}}};
};
}  // namespace

TEST_CASE("with a batch of one, one_by_one takes a model whose predictions change a variable") {
  auto s = make_static_stepper<counted>(static_batch<1>{}, adam{}, one_by_one{});
  s.initialize(1);
  s.step();
  for (const float expected : {1.0f, 2.0f}) {
    s.predict();
    for (const float p : s.prediction<"p">()) CHECK(p == expected);
  }
}
