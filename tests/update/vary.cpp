// without sanitizers: arithmetic; whole/conformance_{norms,matrices} run the same loops under them
// vary<member>(constant{c}) of every rule is part of the conformance suite (testing/conform.hpp, whole/conformance_*);
// of steppers in tests/run/static_step.cpp, of sessions in tests/run/optimizer.cpp. Here: of the parts around a rule,
// settings that change, the rate, and what is refused.
#include <gradus/update/vary.hpp>

#include <gradus/cpu/device.hpp>
#include <gradus/testing/conform.hpp>
#include <gradus/update/clip.hpp>
#include <gradus/update/composed.hpp>
#include <gradus/update/float_constants.hpp>
#include <gradus/update/lookahead.hpp>
#include <gradus/update/loss_scale.hpp>
#include <gradus/update/multi.hpp>
#include <gradus/update/rules/adagrad.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/adamax.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/rules/momentum.hpp>
#include <gradus/update/rules/nadam.hpp>
#include <gradus/update/rules/soap.hpp>
#include <gradus/update/schedules/sequence.hpp>
#include <gradus/update/weight_decay.hpp>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <string>

#include "steps.hpp"

using namespace gradus;
using steps::after, steps::near, steps::vec, steps::refused;

namespace {
// 0.1, 0.2, 0.3, ...
struct rising {
  using policy_for = kind::schedule;
  constexpr double operator()(std::int64_t step) const { return 0.1 * static_cast<double>(step + 1); }
};
constexpr double betas1[] = {0.5, 0.9, 0.25, 0.8, 0.8, 0.95, 0.0, 0.7},
                 betas2[] = {0.9, 0.99, 0.5, 0.5, 0.999, 0.9, 0.9, 0.6};
const auto beta1 = [](std::int64_t step) { return betas1[step % 8]; };
const auto beta2 = [](std::int64_t step) { return betas2[step % 8]; };
constexpr double slopes[] = {1, -0.5, 2, 0.25, -1, 3, 0.125, -2};

// What each step does to one number, written out: the running powers are products of the betas of the steps so far.
struct powers {
  double p1 = 1, p2 = 1, mu = 1, m = 0, v = 0, w = 0.5;
};
using formula = std::function<void(powers&, double g, double b1, double b2, double t)>;
vec by_hand(const formula& f, int steps) {
  powers x;
  for (int t = 0; t < steps; ++t) {
    const double b1 = beta1(t), b2 = beta2(t);
    x.p1 *= b1, x.p2 *= b2;
    f(x, slopes[t], b1, b2, t + 1);
  }
  return {x.w};
}
const formula adam_step = [](powers& x, double g, double b1, double b2, double) {
  x.m = b1 * x.m + (1 - b1) * g, x.v = b2 * x.v + (1 - b2) * g * g;
  x.w -= 0.1 * std::sqrt(1 - x.p2) / (1 - x.p1) * x.m / (std::sqrt(x.v) + 1e-8);
};
const formula adamax_step = [](powers& x, double g, double b1, double b2, double) {
  x.m = b1 * x.m + (1 - b1) * g, x.v = std::max(b2 * x.v, std::abs(g) + 1e-8);
  x.w -= 0.1 / (1 - x.p1) * x.m / x.v;
};
// PyTorch's NAdam: mu_t of this step's beta1, and their product.
const formula nadam_step = [](powers& x, double g, double b1, double b2, double t) {
  const auto mu = [b1](double s) { return b1 * (1 - 0.5 * std::pow(0.96, s * 0.004)); };
  x.mu *= mu(t);
  x.m = b1 * x.m + (1 - b1) * g, x.v = b2 * x.v + (1 - b2) * g * g;
  const double n = mu(t + 1) * x.m / (1 - x.mu * mu(t + 1)) + (1 - mu(t)) * g / (1 - x.mu);
  x.w -= 0.1 * n / (std::sqrt(x.v / (1 - x.p2)) + 1e-8);
};
template <class Rule>
void follows(const formula& f) {
  INFO(Rule::name);
  std::vector<vec> gradients;
  for (const double g : slopes) gradients.push_back({g});
  const Rule rule{.rate = 0.1};
  near(after({0.5}, gradients, rule, vary<&Rule::beta1>(beta1), vary<&Rule::beta2>(beta2)), by_hand(f, 8));
  // in a chain, and in float32
  near(after({0.5}, gradients, chain{weight_decay{0.0}, rule}, vary<&Rule::beta1>(beta1), vary<&Rule::beta2>(beta2)),
       by_hand(f, 8));
  updater<sweeps<fast>, Rule, decltype(vary<&Rule::beta1>(beta1)), decltype(vary<&Rule::beta2>(beta2))> u{
      rule, vary<&Rule::beta1>(beta1), vary<&Rule::beta2>(beta2)};
  std::vector<float> w{0.5f};
  u.track("w", w);
  for (const double g : slopes) u.apply({{"w", std::vector<float>{static_cast<float>(g)}}});
  near({static_cast<double>(w[0])}, by_hand(f, 8), 1e-5);
}
}  // namespace

TEST_CASE("the documentation's first example: beta1 = 0.5 from the first step on") {
  near(after({1.0}, {{1.0}}, adam{.rate = 0.1}, vary<&adam::beta1>(constant{0.5})), {0.9}, 1e-7);
}
TEST_CASE("running powers are products of the betas that the steps had") {
  follows<adam>(adam_step);
  follows<adamax>(adamax_step);
  follows<nadam>(nadam_step);
}
namespace {
// Every set of steps among eight is left out. Saved before each step, and restored, it is the same run.
template <class Rule>
void leaves_out(const Rule& rule, double tolerance) {
  const auto goes_on_as = [](auto& to, auto& from) {
    state_list a, b;
    from.remembers(a), to.remembers(b);
    for (const auto& e : a.entries()) {
      if (e.dynamic != nullptr || e.bytes.empty()) continue;
      std::memcpy(b.find(e.name)->bytes.data(), e.bytes.data(), e.bytes.size());
    }
    to.restored();
  };
  for (const std::int64_t first : {0, 2, 6})  // the steps of the table that come first: beta1 is 0 in the seventh
    for (int left_out = 0; left_out < 256; ++left_out) {
      INFO("from ", first, ", left out ", left_out);
      const auto b1 = [first](std::int64_t step) { return beta1(step + first); };
      const auto b2 = [first](std::int64_t step) { return beta2(step + first); };
      const auto make = [&] {
        return updater{rule, vary<&adam::beta1>(b1), vary<&adam::beta2>(b2), static_loss_scale{1}};
      };
      auto u = make();
      vec w{0.5};
      u.track("w", w);
      powers x;
      for (int t = 0; t < 8; ++t) {
        const bool bad = (left_out >> t & 1) != 0;
        const vec g{bad ? std::numeric_limits<double>::infinity() : slopes[t]};
        auto again = make();
        vec v{0.5};
        again.track("w", v);
        goes_on_as(again, u);
        u.apply({{"w", g}}), again.apply({{"w", g}});
        CHECK(u.skipped() == bad);
        CHECK(v == w);
        if (bad) continue;
        x.p1 *= b1(t), x.p2 *= b2(t);
        adam_step(x, slopes[t], b1(t), b2(t), t);
      }
      near(w, {x.w}, tolerance);
    }
}
}  // namespace

TEST_CASE("steps that are left out have no part in the products, whichever they are and whatever their betas") {
  leaves_out(adam{.rate = 0.1}, 1e-9);
  leaves_out(float_constants{adam{.rate = 0.1}}, 1e-5);
}
TEST_CASE("a count of steps that is changed from outside takes the factors of its step, also behind one of 0") {
  const auto zero_first = [](std::int64_t step) { return step == 0 ? 0.0 : 0.9; };
  updater u{adam{.rate = 0.1}, vary<&adam::beta1>(zero_first)};
  vec w{0.5};
  u.track("w", w);
  u.set_global_step(5);
  u.apply({{"w", vec{1.0}}});
  near(w, {0.5 - 0.1}, 1e-7);  // m / (1 - 0.9) is the gradient
}
TEST_CASE("a run that was saved goes on with the same bits") {
  using namespace gradus::testing;
  const auto make = [] {
    return testing::detail::maker(adam{.rate = 0.1}, vary<&adam::beta1>(beta1), vary<&adam::beta2>(beta2),
                                  vary<&accumulate::every>([](std::int64_t step) { return step % 2 == 0 ? 1 : 3; }),
                                  accumulate{});
  };
  for (const std::uint64_t at : {1u, 2u, 3u, 5u, 6u, 7u}) {
    trial<double> x(make()(), {{3}}), y(make()(), {{3}});
    for (std::uint64_t t = 0; t < at; ++t) x.apply(x.draw(t));
    y.restore(x.save());
    for (std::uint64_t t = at; t < 8; ++t) x.apply(x.draw(t)), y.apply(y.draw(t));
    CHECK(first_difference(x.save(), y.save()) == "");
  }
}

TEST_CASE("a setting is the schedule's value of each step") {
  // a: 1, then 0.2 + 1, then 0.3 * 1.2 + 1
  near(after({0.0}, {{1.0}, {1.0}, {1.0}}, momentum{.rate = 1}, vary<&momentum::decay>(rising{})),
       {-(1 + 1.2 + (0.3 * 1.2 + 1))});
}
TEST_CASE("in a chain, in groups, and several settings at once") {
  const chain c{weight_decay{0.0}, momentum{.rate = 1}};
  near(after({1.0}, {{0.0}, {0.0}}, c, vary<&weight_decay<>::strength>(rising{})), {0.9 * 0.8});
  const multi m{on{named{"w"}, momentum{.rate = 1}}, gradient_descent{.rate = 1}};
  near(after({0.0}, {{1.0}, {1.0}}, m, vary<&momentum::decay>(rising{})), {-(1 + 1.2)});
  near(after({1.0}, {{1.0}, {1.0}}, c, vary<&weight_decay<>::strength>(rising{}), vary<&momentum::decay>(rising{})),
       {(1 - 0.1 - 1) * 0.8 - 1.2});
}
TEST_CASE("beside a schedule of the rate, and counted in steps of the rule") {
  near(after({0.0}, {{1.0}, {1.0}}, momentum{}, rising{}, vary<&momentum::decay>(rising{})), {-0.1 - 0.2 * 1.2});
  near(after({0.0}, {{1.0}, {1.0}, {1.0}, {1.0}}, accumulate{2}, momentum{.rate = 1}, vary<&momentum::decay>(rising{})),
       {-(1 + 1.2)});
}

namespace {
// The words behind `called` in the headers of the parts.
std::set<std::string> parts_in_headers() {
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(GRADUS_SOURCE_DIR "/include/gradus/update")) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path());
    std::string text{std::istreambuf_iterator<char>(file), {}};
    if (text.find("static constexpr auto settings()") == std::string::npos) continue;
    const std::string words = "called = \"";
    for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1))
      found.insert(text.substr(at + words.size(), text.find('"', at + words.size()) - at - words.size()));
  }
  return found;
}
}  // namespace

TEST_CASE("every setting of every part beside a rule, as a constant") {
  using namespace gradus::testing;
  std::set<std::string> seen;
  // `with` gives the rule of an update and, where the part is a policy, the part itself.
  const auto all = [&]<class P>(const P& part, auto with) {
    seen.insert(std::string(P::called));
    for (const auto& line : gradus::detail::settings_of<P>) {
      const double value = testing::detail::another_value(line, part);
      INFO(std::string(P::called), "::", std::string(line.name), " ", value);
      P built = part;
      line.set(built, value);
      const varied<P, constant> follows{line, constant{value}};
      trial<double> x(with([&](const auto&... all) { return testing::detail::maker(follows, all...); }, part)(),
                      {{2, 3}, {4}}),
          y(with([&](const auto&... all) { return testing::detail::maker(all...); }, built)(), {{2, 3}, {4}});
      for (std::uint64_t t = 0; t < 6; ++t) {
        x.apply(x.draw(t)), y.apply(y.draw(t));
        REQUIRE(first_difference(x.save(), y.save()) == "");
      }
    }
  };
  const auto beside = [](auto make, const auto& part) { return make(momentum{.rate = 0.25}, part); };
  const auto before = [](auto make, const auto& part) { return make(chain{part, momentum{.rate = 0.25}}); };
  const auto behind = [](auto make, const auto& part) { return make(chain{momentum{.rate = 0.25}, part}); };
  all(clip_by_value{-2, 2}, beside);
  all(clip_by_norm{0.125}, beside);
  all(clip_by_average_norm{0.125}, beside);
  all(clip_by_global_norm{0.125}, beside);
  all(adaptive_clip{}, beside);
  all(exponential_moving_average{}, beside);
  all(stochastic_weight_average{}, beside);
  all(accumulate{}, beside);
  all(gradient_noise{}, beside);
  all(static_loss_scale{}, beside);
  all(dynamic_loss_scale{.smallest = 0.125}, beside);
  all(weight_decay{0.125}, before);
  all(lookahead{}, behind);
  CHECK(seen == parts_in_headers());
}
TEST_CASE("parts with settings that do not fit each other are refused, when made and at a step") {
  refused(
      [] {
        updater z{adam{}, dynamic_loss_scale{.smallest = 100, .largest = 10}};
      },
      "dynamic_loss_scale: expected `smallest` <= `largest`, found 100");
  refused([] { updater z{adam{}, clip_by_value{1, -1}}; }, "clip_by_value: expected `min` <= `max`, found 1");
  refused([] { updater z{adam{}, clip_by_value{std::nan(""), 1}}; }, "clip_by_value: expected `min` to be a number");
  updater u{gradient_descent{.rate = 1}, clip_by_value{-1, 1},
            vary<&clip_by_value::max>([](std::int64_t step) { return step == 0 ? 1.0 : -2.0; })};
  vec w{1.0};
  u.track("w", w);
  u.apply({{"w", vec{1.0}}});
  refused([&] { u.apply({{"w", vec{1.0}}}); }, "clip_by_value: expected `min` <= `max`, found -1");
  CHECK(u.global_step() == 1);
}
TEST_CASE("a part whose schedule leaves the other setting behind is refused at that step") {
  updater u{gradient_descent{.rate = 1}, dynamic_loss_scale{.largest = 0x1p20},
            vary<&dynamic_loss_scale::smallest>([](std::int64_t step) { return step == 0 ? 1.0 : 0x1p30; })};
  vec w{1.0};
  u.track("w", w);
  u.apply({{"w", vec{1.0}}});
  refused([&] { u.apply({{"w", vec{1.0}}}); }, "dynamic_loss_scale: expected `smallest` <= `largest`, found ");
  CHECK(u.global_step() == 1);
}
TEST_CASE("settings of parts that change from step to step") {
  near(after({0.0}, {{3.0}, {3.0}}, gradient_descent{.rate = 1}, clip_by_global_norm{},
             vary<&clip_by_global_norm::max_norm>(rising{})),
       {-0.1 - 0.2});
  // PyTorch's AdaptiveClip in another place: a unit's norm is 1, then 0.9
  near(after({1.0}, {{3.0}, {3.0}}, gradient_descent{.rate = 1}, adaptive_clip{},
             vary<&adaptive_clip::factor>(rising{})),
       {1 - 0.1 - 0.2 * 0.9});
  // 1 | 2 | 3 micro-batches, the mean of each
  near(after({0.0}, {{1.0}, {2.0}, {4.0}, {3.0}, {6.0}, {9.0}}, gradient_descent{.rate = 1}, accumulate{},
             vary<&accumulate::every>([](std::int64_t step) { return step + 1; })),
       {-1.0 - 3 - 6});
  updater u{gradient_descent{.rate = 1}, exponential_moving_average{},
            vary<&exponential_moving_average::decay>(rising{})};
  vec w{1.0};
  u.track("w", w);
  u.apply({{"w", vec{1.0}}});  // w 0, average 0.1 * 1
  CHECK(u.average("w").as<double>()[0] == doctest::Approx(0.1));
  u.apply({{"w", vec{1.0}}});  // w -1, average 0.2 * 0.1 - 0.8
  CHECK(u.average("w").as<double>()[0] == doctest::Approx(-0.78));
  updater scaled{gradient_descent{.rate = 1}, static_loss_scale{},
                 vary<&static_loss_scale::scale>([](std::int64_t step) { return step + 2; })};
  w = {0.0};
  scaled.track("w", w);
  for (double scale : {2.0, 3.0, 4.0}) {  // what the loss of the next step is to be multiplied by
    CHECK(scaled.loss_scale() == scale);
    scaled.apply({{"w", vec{scale}}});
  }
  near(w, {-3.0});
}

TEST_CASE("the rate: vary owns it, or a schedule does, or the rule") {
  const std::vector<vec> twice{{1.0}, {1.0}};
  near(after({0.0}, twice, momentum{}, vary<&momentum::rate>(rising{})), after({0.0}, twice, momentum{}, rising{}), 0);
  near(after({0.0}, twice, adam{}, vary<&adam::rate>(rising{})), after({0.0}, twice, adam{}, rising{}), 0);
  near(after({0.0}, twice, chain{weight_decay{0.5}, momentum{}}, vary<&momentum::rate>(rising{})),
       after({0.0}, twice, chain{weight_decay{0.5}, momentum{}}, rising{}), 0);
  near(after({0.0}, twice, multi{on{named{"w"}, momentum{}, 2.0}, gradient_descent{.rate = 1}},
             vary<&momentum::rate>(rising{})),
       after({0.0}, twice, momentum{}, [](std::int64_t step) { return 2 * rising{}(step); }));
  updater u{momentum{}, vary<&momentum::rate>(rising{})};
  CHECK(u.rate() == 0.1);
  u.set_global_step(4);
  CHECK(u.rate() == 0.5);
  refused(
      [] {
        updater z{momentum{.rate = 1}, vary<&momentum::rate>(rising{})};
      },
      "two owners: Momentum's `.rate` and vary<&rule::rate> among the policies");
  refused(
      [] {
        updater z{multi{on{named{"a"}, momentum{}}, gradient_descent{}}, vary<&momentum::rate>(rising{})};
      },
      "no owner: GradientDescent");
}
TEST_CASE("a function of the step is a schedule") {
  near(after({0.0}, {{1.0}, {1.0}}, gradient_descent{}, [](std::int64_t step) { return step == 0 ? 1.0 : 0.5; }),
       {-1.5});
  near(after({0.0}, {{1.0}, {1.0}}, gradient_descent{}, sequence([](std::int64_t) { return 1.0; }, 1, constant{0.5})),
       {-1.5});
  const double captured = 0.25;
  near(after({0.0}, {{1.0}}, gradient_descent{},
             scaled([captured](std::int64_t) { return static_cast<float>(captured); }, 2)),
       {-0.5});
}

TEST_CASE("a value out of its range stops the step that it is of, and nothing has changed") {
  updater u{adam{}, vary<&adam::beta1>([](std::int64_t step) { return step < 3 ? 0.5 : 1.5; })};
  vec w{1.0};
  u.track("w", w);
  for (int i = 0; i < 3; ++i) u.apply({{"w", vec{1.0}}});  // the last of a run may come before such a value
  const vec before = w;
  refused(
      [&] {
        u.apply({{"w", vec{1.0}}});
      },
      "Adam: expected `beta1` in [0, 1), found 1.5 at step 3, which its schedule gave; change the schedule");
  CHECK(w == before);
  CHECK(u.global_step() == 3);
  refused(
      [] {
        updater z{adam{}, vary<&adam::epsilon>(constant{std::nan("")})};
      },
      "Adam: expected `epsilon` >= 0, found nan");
  refused(
      [] {
        updater z{gradient_descent{.rate = 1}, clip_by_norm{}, vary<&clip_by_norm::max_norm>(constant{-1})};
      },
      "clip_by_norm: expected `max_norm` >= 0, found -1 at step 0");
  refused([] { after({1.0}, {{1.0}}, adam{}, constant{-0.5}); }, "Adam: expected `rate` >= 0, found -0.5 at step 0");
  refused([] { after({1.0}, {{1.0}}, adam{}, constant{std::nan("")}); }, "found nan at step 0");
  refused(
      [] {
        updater z{adagrad{.rate = 1, .initial_accumulator_value = 0, .epsilon = 1},
                  vary<&adagrad::epsilon>(constant{0})};
      },
      "initial_accumulator_value");
}
TEST_CASE("a setting that decides the shapes of slots stays") {
  updater u{soap{}, vary<&soap::max_precondition_dim>([](std::int64_t step) { return step == 0 ? 2 : 8; })};
  vec w(12, 1.0);
  u.track("w", tensor_view(std::span<double>(w), {3, 4}));
  u.apply({{"w", vec(12, 1.0)}});
  refused([&] { u.apply({{"w", vec(12, 1.0)}}); }, "SOAP: `max_precondition_dim` decides the shapes of slots");
}
