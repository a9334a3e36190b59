#include <gradus/run/static_step.hpp>
#include <gradus/run/updater.hpp>
#include <gradus/update/accumulate.hpp>
#include <gradus/update/multi.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/rules/momentum.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "../run/models.hpp"

using namespace run_test;

namespace {
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN(),
                infinite = std::numeric_limits<float>::infinity();

template <class F>
std::string refusal_of(F f) {
  try {
    f();
  } catch (const invalid_argument& e) {
    return e.what();
  }
  return {};
}
bool says(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// loss = mean(x a + x b): the gradients are mean(x), the loss is finite unless x or a variable is not.
constexpr auto two = [](graph& g) {
  const value x = g.placeholder("x", {batch, 1});
  const value a = g.variable("a", {}, {.init = zeros}), b = g.variable("b", {}, {.init = zeros});
  return model_spec{.loss = reduce_mean(x * a + square(b * 1e30f) * x), .metrics = {}, .predictions = {}};
};
template <bool Norm>
using model = interpreted_model<cpu<fast>, ops<>, gating::op, Norm, true>;

template <class Update>
struct run {
  stepper<model<Update::needs_norm>, Update, cpu<fast>> s;
  explicit run(const Update& u) : s(model<Update::needs_norm>{two}, u) {
    s.allocate();
    s.initialize(1);
  }
  void step(float x) {
    auto& m = s.template bound<mode::train>(1);
    s.template placeholders<mode::train>([&](placeholder_info p) { *reinterpret_cast<float*>(m.address(p.node)) = x; });
    s.train_step();
  }
  float at(std::size_t i) { return s.variables().view(i).template as<float>()[0]; }
};
}  // namespace

TEST_CASE("an updater passes, skips or raises") {
  const auto with = [](auto... policies) {
    std::vector<float> w{1, 2}, v{3}, good{1, 1}, one{1}, bad{1, not_a_number}, far{infinite};
    updater u{momentum{.rate = 0.5, .decay = 0.5}, policies...};
    u.track("w", w), u.track("v", v);
    u.apply({{"w", good}, {"v", one}});
    const std::string first = refusal_of([&] { u.apply({{"w", good}, {"v", far}}); });
    const std::string second = refusal_of([&] { u.apply({{"v", one}, {"w", bad}}); });
    u.apply({{"w", good}, {"v", one}});
    const std::vector<float> slot(u.slot("w", "momentum").template as<float>().begin(),
                                  u.slot("w", "momentum").template as<float>().end());
    return std::tuple(w, v, slot, u.global_step(), u.skipped_steps(), first, second);
  };
  {
    const auto [w, v, slot, step, skipped, first, second] = with();
    CHECK(std::isnan(w[1]));
    CHECK(std::isinf(v[0]));
    CHECK(step == 4);
    CHECK(skipped == 0);
  }
  // two good steps: m = 1, then 1.5
  {
    const auto [w, v, slot, step, skipped, first, second] = with(not_finite::skip{});
    CHECK(w == std::vector<float>{1 - 1.25f, 2 - 1.25f});
    CHECK(v == std::vector<float>{3 - 1.25f});
    CHECK(slot == std::vector<float>{1.5f, 1.5f});
    CHECK(step == 4);
    CHECK(skipped == 2);
    CHECK(first + second == "");
  }
  {
    const auto [w, v, slot, step, skipped, first, second] = with(not_finite::raise{});
    CHECK(w == std::vector<float>{1 - 1.25f, 2 - 1.25f});
    CHECK(v == std::vector<float>{3 - 1.25f});
    CHECK(step == 2);
    CHECK(says(first, "the gradient of \"v\" is infinite in the step after step 1"));
    CHECK(says(second, "the gradient of \"w\" is NaN in the step after step 1"));
  }
}

TEST_CASE("skip where variables differ, and where gradients are accumulated: the sum is dropped with the step") {
  std::vector<float> w{1}, good{1}, bad{not_a_number};
  updater u{gradient_descent{.rate = 1.0}, accumulate{.every = 2}, not_finite::skip{}};
  u.track("w", w);
  u.apply({{"w", bad}});
  u.apply({{"w", good}});
  CHECK(w[0] == 1);
  CHECK(u.skipped_steps() == 1);
  u.apply({{"w", good}});
  u.apply({{"w", good}});
  CHECK(w[0] == 0);
}

namespace {
// For each micro-batch of three steps whether skipped() is true: only behind the second step, whose sum is not finite.
// A run that is saved behind each micro-batch, and goes on in an object of its own, says the same.
template <class... Policies>
void says_once(Policies... policies) {
  std::vector<float> w{1}, v{1};
  using type = updater<sweeps<fast>, gradient_descent, accumulate, Policies...>;
  const auto make = [&](std::vector<float>& at) {
    auto u = std::make_unique<type>(gradient_descent{.rate = 1.0}, accumulate{.every = 3}, policies...);
    u->track("w", at);
    return u;
  };
  auto whole = make(w), pieces = make(v);
  for (int i = 0; i < 9; ++i) {
    CAPTURE(i);
    const std::vector<float> g{i == 4 ? not_a_number : 1};
    whole->apply({{"w", g}}), pieces->apply({{"w", g}});
    CHECK(whole->skipped() == (i == 5));
    CHECK(pieces->skipped() == (i == 5));
    auto next = make(v);
    state_list from, to;
    pieces->remembers(from), next->remembers(to);
    for (const state_entry& e : from.entries())
      if (e.dynamic == nullptr && !e.bytes.empty() && e.bytes.data() != to.find(e.name)->bytes.data())
        std::memcpy(to.find(e.name)->bytes.data(), e.bytes.data(), e.bytes.size());
    next->restored();
    pieces = std::move(next);
  }
  CHECK(w == v);
}
}  // namespace
TEST_CASE("micro-batches that only add have left out no step") {
  says_once(not_finite::skip{});
  says_once(static_loss_scale{.scale = 1});
  says_once(dynamic_loss_scale{.initial = 1});
}
TEST_CASE("the same in a stepper and in a static stepper") {
  run s(composed{gradient_descent{.rate = 1.0}, accumulate{.every = 2}, not_finite::skip{}});
  static auto r =
      make_static_stepper<two>(static_batch<1>{}, gradient_descent{.rate = 1.0}, accumulate{2}, not_finite::skip{});
  r.initialize(1);
  for (int i = 0; i < 6; ++i) {
    CAPTURE(i);
    s.step(i == 2 ? infinite : 1);
    r.input<"x">()[0] = i == 2 ? infinite : 1;
    r.step();
    CHECK(s.s.skipped() == (i == 3));
    CHECK(r.skipped() == (i == 3));
  }
  CHECK(s.s.skipped_steps() == 1);
}

TEST_CASE("a stepper looks at loss and gradients before the first update") {
  {
    run s(composed{gradient_descent{.rate = 1.0}, not_finite::skip{}});
    s.step(infinite);  // gradient of a: infinite
    CHECK(s.s.skipped());
    CHECK(s.at(0) == 0);
    s.step(2);
    CHECK_FALSE(s.s.skipped());
    CHECK(s.at(0) == -2);
    CHECK(s.s.global_step() == 2);
    CHECK(s.s.skipped_steps() == 1);
    state_list list;
    s.s.remembers(list);
    CHECK(list.find("skipped_steps") != nullptr);
  }
  {
    run s(composed{gradient_descent{.rate = 1.0}, not_finite::raise{}});
    s.step(1);
    CHECK(says(refusal_of([&] { s.step(not_a_number); }), "the loss is NaN in the step after step 1"));
    CHECK(s.at(0) == -1);
    CHECK(s.s.global_step() == 1);
    s.step(1);
    CHECK(s.at(0) == -2);
  }
  {
    run s(composed{gradient_descent{.rate = 1.0}, not_finite::raise{}});
    s.s.variables().value(1);
    *reinterpret_cast<float*>(s.s.variables().value(1)) = 1e-12f;  // loss 1e36, gradient 2e48
    CHECK(says(refusal_of([&] { s.step(1); }), "the gradient of \"b\" is infinite"));
    CHECK(s.at(0) == 0);
  }
}

TEST_CASE("a static stepper does the same") {
  static auto s = make_static_stepper<two>(static_batch<1>{}, momentum{.rate = 1.0, .decay = 0.5}, not_finite::skip{});
  s.initialize(1);
  s.input<"x">()[0] = 1;
  s.step();
  s.input<"x">()[0] = infinite;
  s.step();
  CHECK(s.skipped());
  CHECK(s.skipped_steps() == 1);
  CHECK(s.variable<"a">()[0] == -1);
  s.input<"x">()[0] = 1;
  s.step();
  CHECK(s.variable<"a">()[0] == -2.5f);
  static auto r = make_static_stepper<two>(static_batch<1>{}, gradient_descent{.rate = 1.0}, not_finite::raise{});
  r.initialize(1);
  r.input<"x">()[0] = not_a_number;
  CHECK(says(refusal_of([] { r.step(); }), "the loss is NaN"));
  CHECK(r.global_step() == 0);
  r.input<"x">()[0] = 1;
  r.variable<"b">()[0] = 1e-12f;
  CHECK(says(refusal_of([] { r.step(); }), "the gradient of \"b\" is infinite"));
}
