#include <gradus/update/float_constants.hpp>

#include <gradus/base/random.hpp>
#include <gradus/update/chain.hpp>
#include <gradus/update/multi.hpp>
#include <gradus/update/rules.hpp>
#include <gradus/update/vary.hpp>

#include <cmath>

#include "steps.hpp"

using namespace gradus;
using steps::vec;

namespace {
namespace d = gradus::detail;
static_assert(d::to_fixed<32>(0.5) == 0x80000000u && d::to_fixed<32>(0.0) == 0 && d::to_fixed<32>(1.0) == 0xffffffffu);
static_assert(d::to_fixed<32>(0x1p-33) == 1 && d::to_fixed<32>(0x1p-34) == 0 && d::to_fixed<32>(0x1.8p-32) == 2);
static_assert(d::to_fixed<32>(-0.5) == 0 && d::to_fixed<32>(1e300) == 0xffffffffu && d::to_fixed<0>(3.0) == 3);
static_assert(d::to_fixed<32>(5e-324) == 0 && d::to_fixed<32>(1 - 0x1p-40) == 0xffffffffu);
static_assert(d::from_fixed<32>(1) == 0x1p-32 && d::from_fixed<0>(4294967295u) == 4294967295.0);
static_assert(d::rest_of_one(0) == 1.0f && d::rest_of_one(0x80000000u) == 0.5f);

// The constants of a step as numbers.
template <class C>
auto numbers(const C& c) {
  return std::bit_cast<std::array<double, sizeof(C) / sizeof(double)>>(c);
}

// The greatest relative difference of a constant from the plain rule's, in `steps` steps.
template <class Rule>
double farthest(const Rule& plain, int steps) {
  const float_constants rounded{plain};
  auto exact = plain.start();
  auto powers = rounded.start();
  double most = 0;
  for (int i = 0; i < steps; ++i) {
    const step_info at{i, plain.rate.value_or(Rule::default_rate)};
    const auto want = numbers(plain.prepare(at, exact)), got = numbers(rounded.prepare(at, powers));
    for (std::size_t k = 0; k < want.size(); ++k)
      most = std::max(most, want[k] == got[k] ? 0 : std::abs(got[k] - want[k]) / std::abs(want[k]));
    if (exact.size() == 3 && powers[0] != exact[0]) return 1;  // the steps are counted
    plain.finish(exact), rounded.finish(powers);
  }
  return most;
}
template <class Rule, class Set>
void near_plain(Set set) {
  random_stream stream{.seed = 11};
  for (int i = 0; i < 12; ++i) {
    Rule rule;
    rule.rate = 1e-4 + stream.uniform(), rule.beta1 = stream.uniform() * 0.99,
    rule.beta2 = 0.9 + stream.uniform() * 0.099;
    set(rule, i);
    CHECK(farthest(rule, 6000) < 4e-7);
    rule.beta2 = 0.9999;
    CHECK(farthest(rule, 6000) < 4e-7 + 0x1p-33 / (1 - 0.9999));
  }
}

// Bits after some steps on three numbers.
template <class... Policies>
vec trained(int steps, const Policies&... policies) {
  steps::updater<Policies...> u{policies...};
  vec w{0.5, -1.0, 2.0};
  u.track("w", w);
  for (int i = 0; i < steps; ++i) u.apply({{"w", vec{w[0] * 0.3, std::sin(i), w[2] - 1}}});
  return w;
}
}  // namespace

TEST_CASE("every constant of every step is near the plain rule's") {
  near_plain<adam>([](adam&, int) {});
  near_plain<adamw>([](adamw& r, int i) { r.form = static_cast<adamw_form>(i % 3); });
  near_plain<adamax>([](adamax& r, int i) { r.form = static_cast<adamax_form>(i % 2); });
  near_plain<amsgrad>([](amsgrad& r, int i) { r.form = static_cast<amsgrad_form>(i % 3); });
}
TEST_CASE("betas at the ends of their range, and powers that have come to nothing") {
  for (const double beta : {0.0, 0x1p-40, 0.5, 1 - 0x1p-20}) {
    adam rule{.rate = 0.1, .beta1 = beta, .beta2 = beta};
    CHECK(farthest(rule, 300) < 4e-7 + 0x1p-32 / (1 - beta));
  }
}
TEST_CASE("a settled rate, a schedule, a varied setting and a chain give the same bits") {
  const float_constants rule{adam{.rate = 0.02, .beta1 = 0.7, .beta2 = 0.95}};
  const vec want = trained(25, rule);
  CHECK(want != trained(25, adam{.rate = 0.02, .beta1 = 0.7, .beta2 = 0.95}));
  CHECK(trained(25, float_constants{adam{.beta1 = 0.7, .beta2 = 0.95}}, constant{0.02}) == want);
  CHECK(trained(25, float_constants{adam{.beta1 = 0.7, .beta2 = 0.95}}, vary<&adam::rate>(constant{0.02})) == want);
  CHECK(trained(25, float_constants{adam{.rate = 0.02, .beta2 = 0.95}}, vary<&adam::beta1>(constant{0.7})) == want);
  CHECK(trained(25, float_constants{adam{.rate = 0.02, .beta1 = 0.7}}, vary<&adam::beta2>(constant{0.95})) == want);
  CHECK(trained(25, chain{rule}) == want);
  CHECK(trained(25, float_constants{adam{.rate = 0.02, .beta1 = 0.7, .beta2 = 0.95, .epsilon = 1}},
                vary<&adam::epsilon>(constant{1e-8})) == want);
  // The rate of each step, not that of the first.
  const auto falling = [](std::int64_t step) { return 0.02 / static_cast<double>(1 + step); };
  CHECK(trained(25, float_constants{adam{}}, falling) ==
        trained(25, float_constants{adam{}}, vary<&adam::rate>(falling)));
}
TEST_CASE("a rule without a correction has its own bits on float32") {
  const auto floats = [](const auto&... policies) {
    steps::updater<std::remove_cvref_t<decltype(policies)>...> u{policies...};
    std::vector<float> w{0.5f, -1.0f, 2.0f};
    u.track("w", w);
    for (int i = 0; i < 25; ++i) u.apply({{"w", std::vector<float>{w[0] * 0.3f, static_cast<float>(i % 3 - 1), w[2]}}});
    return w;
  };
  const auto same = [&]<class Rule>(Rule rule) {
    const std::string_view name = Rule::name;
    CAPTURE(name);
    rule.rate = 0.013;
    const auto want = floats(rule);
    CHECK(want != std::vector<float>{0.5f, -1.0f, 2.0f});
    CHECK(floats(float_constants{rule}) == want);
    rule.rate = {};
    CHECK(floats(float_constants{rule}, constant{0.013}) == want);
    CHECK(floats(float_constants{rule}, vary<&Rule::rate>(constant{0.013})) == want);
  };
  same(adadelta{}), same(adagrad{}), same(gradient_descent{}), same(lion{.weight_decay = 0.1}), same(momentum{});
  same(momentumw{.weight_decay = 0.1}), same(rmsprop{}), same(centered_rmsprop{});
}
TEST_CASE("groups with a rate of their own") {
  const float_constants rule{adam{.rate = 0.02}};
  const auto grouped = [](const auto& r) {
    const vec w = trained(25, multi{on{named{"w"}, r, 0.5}, r});
    return w;
  };
  CHECK(grouped(rule) == trained(25, float_constants{adam{.rate = 0.01}}));
}
TEST_CASE("a plain rule's powers go in, and come out again as they were") {
  const adam plain{.beta2 = 0.99};
  const float_constants rule{plain};
  auto from = plain.start();
  for (int i = 0; i < 37; ++i) plain.finish(from);
  auto kept = from;
  rule.finish(from), plain.finish(kept);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(std::abs(from[i] - kept[i]) <= 0x1p-32);
    CHECK(detail::from_fixed<32>(detail::to_fixed<32>(from[i])) == from[i]);
  }
}
TEST_CASE("settings out of their range are refused, as the rule's own") {
  steps::refused([] { trained(1, float_constants{adam{.beta1 = 1.5}}); }, "expected `beta1` in [0, 1)");
}
TEST_CASE("a setting that is changed in it is refused, not ignored") {
  steps::refused(
      [] {
        float_constants rule{adam{}};
        rule.rate = 0.1;
        trained(1, rule);
      },
      "float_constants: a setting of Adam was changed after it was made; change the rule");
  steps::refused(
      [] {
        float_constants rule{rmsprop{}};
        rule.decay = 0.5;
        trained(1, multi{on{named{"w"}, adam{}}, rule});
      },
      "a setting of RMSProp was changed");
}
