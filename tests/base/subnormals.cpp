#include <gradus/base/subnormals.hpp>
#include <gradus/run/session.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/run/updater.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <thread>

#include "../run/models.hpp"

using namespace run_test;

namespace {
constexpr float tiny = std::numeric_limits<float>::denorm_min() * 4;
constexpr double rate = tiny;  // converted by the compiler: a thread that flushes would make it 0

// Asks the machine, not the library.
bool flushes() {
  volatile float x = std::numeric_limits<float>::min(), half = 0.5f;
  const volatile float y = x * half;
  return y == 0;
}
// w gets a gradient of 1: with a small rate the update is subnormal.
constexpr auto line = [](graph& g) {
  const value w = g.variable("w", {}, {.init = zeros}), x = g.placeholder("x", {batch, 1});
  const value loss = reduce_mean(x * w);
  return model_spec{.loss = loss, .metrics = {}, .predictions = {{"small", x * 0.5f}}};
};
using descent = decltype(composed{gradient_descent{}});
template <class Device = cpu<fast>>
using model = interpreted_model<Device, ops<>, gating::op, false, true>;

// Where the update of one step ends; whether the mode came back.
template <class Device, class... Settings>
float after_a_step(bool caller_flushes, const Settings&... settings) {
  const subnormal_scope callers(caller_flushes ? subnormal_mode::flush : subnormal_mode::keep);
  stepper<model<Device>, descent, Device, serial, Settings...> s(
      model<Device>{line}, descent{gradient_descent{.rate = rate}}, serial{}, settings...);
  s.allocate();
  s.initialize(1);
  auto& m = s.template bound<mode::train>(1);
  s.template placeholders<mode::train>([&](placeholder_info p) { *reinterpret_cast<float*>(m.address(p.node)) = 1; });
  s.train_step();
  CHECK(flushes() == (caller_flushes && can_flush_subnormals));
  const subnormal_scope reading(subnormal_mode::keep);
  return s.variables().view(0).template as<float>()[0];
}
}  // namespace

TEST_CASE("a scope sets the mode, a scope inside it too, and each puts back what it found") {
  const bool before = flushes();
  {
    const subnormal_scope outer(subnormal_mode::flush);
    CHECK(flushes() == can_flush_subnormals);
    CHECK((current_subnormals() == subnormal_mode::flush) == can_flush_subnormals);
    {
      const subnormal_scope same(subnormal_mode::flush);
      CHECK(flushes() == can_flush_subnormals);
      const subnormal_scope inner(subnormal_mode::keep);
      CHECK_FALSE(flushes());
    }
    CHECK(flushes() == can_flush_subnormals);
  }
  CHECK(flushes() == before);
}

TEST_CASE("the mode returns after an exception") {
  const bool before = flushes();
  try {
    const subnormal_scope here(before ? subnormal_mode::keep : subnormal_mode::flush);
    throw 1;
  } catch (int) {
  }
  CHECK(flushes() == before);
}

TEST_CASE("a thread's mode is its own") {
  const subnormal_scope here(subnormal_mode::flush);
  bool there = true;
  std::thread([&] {
    const subnormal_scope own(subnormal_mode::keep);
    there = flushes();
  }).join();
  CHECK_FALSE(there);
  CHECK(flushes() == can_flush_subnormals);
}

TEST_CASE("a step flushes with fast arithmetic, keeps with portable, or does as it is told") {
  const float flushed = can_flush_subnormals ? 0 : -tiny;
  for (const bool callers : {false, true}) {
    CHECK(after_a_step<cpu<fast>>(callers) == flushed);
    CHECK(after_a_step<cpu<fast>>(callers, subnormals::keep{}) == -tiny);
    CHECK(after_a_step<cpu<portable>>(callers) == -tiny);
    CHECK(after_a_step<cpu<portable>>(callers, subnormals::flush{}) == flushed);
  }
}

TEST_CASE("workers are in the mode of the step") {
  const auto small = [](auto setting) {
    using free_model = interpreted_model<cpu<fast>, ops<>, gating::op, false, false>;
    const auto build = [](graph& g) {
      const value x = g.placeholder("x", {batch, 512}), w = g.variable("w", {}, {.init = zeros});
      const auto half = [&](const char* name) {
        return reduce_max(transpose(x * g.variable(name, {}, {.init = constant_initializer(0.5f)}), {1, 0}));
      };
      return model_spec{.loss = w * reduce_mean(x),
                        .metrics = {},
                        .predictions = {{"a", half("a")}, {"b", half("b")}, {"c", half("c")}, {"d", half("d")}}};
    };
    stepper<free_model, descent, cpu<fast>, threads, decltype(setting)> s(
        free_model{build}, descent{gradient_descent{.rate = 1.0}}, threads{.count = 3}, setting);
    s.allocate();
    s.initialize(1);
    auto& m = s.template bound<mode::predict>(2);
    s.template placeholders<mode::predict>([&](placeholder_info p) {
      for (int i = 0; i < 1024; ++i) reinterpret_cast<float*>(m.address(p.node))[i] = tiny;
    });
    int kept = 0;
    for (int times = 0; times < 20; ++times) {
      s.template forward<mode::predict>();
      const subnormal_scope reading(subnormal_mode::keep);
      for (int i = 0; i < 4; ++i)
        kept += s.template output_of<mode::predict>(output::prediction, i).template as<float>()[0] == tiny / 2;
    }
    return kept;
  };
  CHECK(small(subnormals::keep{}) == 80);
  CHECK(small(subnormals::flush{}) == (can_flush_subnormals ? 0 : 80));
}

TEST_CASE("updater, session and static_stepper take the policy too") {
  const float flushed = can_flush_subnormals ? 0 : -tiny;
  const auto updated = [](auto... setting) {
    std::vector<float> w{0}, g{1};
    updater u{gradient_descent{.rate = tiny}, setting...};
    u.track("w", w);
    u.apply({{"w", g}});
    return w[0];
  };
  const auto stepped = [](auto... setting) {
    auto s = std::make_unique<decltype(make_static_stepper<line>(static_batch<1>{}, gradient_descent{}, setting...))>(
        static_batch<1>{}, gradient_descent{.rate = tiny}, setting...);
    s->initialize(1);
    s->template input<"x">()[0] = 1;
    s->step();
    return s->template variable<"w">()[0];
  };
  const auto computed = [](auto... setting) {
    graph g;
    const value x = g.placeholder("x", {batch}), y = x * 0.5f;
    session s{g, setting...};
    const std::vector<float> data{-2 * tiny};
    return s.run(y, {{"x", data}}).template as<float>()[0];
  };
  const auto all = [&](auto... setting) {
    const float results[] = {updated(setting...), stepped(setting...), computed(setting...)};
    const subnormal_scope reading(subnormal_mode::keep);
    const bool before = flushes();
    CHECK_FALSE(before);
    return std::vector<bool>{results[0] == -tiny, results[1] == -tiny, results[2] == -tiny};
  };
  const std::vector<bool> kept(3, true), as_default(3, flushed != 0);
  CHECK(all() == as_default);
  CHECK(all(subnormals::flush{}) == as_default);
  CHECK(all(subnormals::keep{}) == kept);
}
