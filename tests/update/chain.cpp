#include <gradus/update/chain.hpp>

#include <gradus/update/clip.hpp>
#include <gradus/update/lookahead.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/rules/momentum.hpp>
#include <gradus/update/weight_decay.hpp>

#include "steps.hpp"

using namespace gradus;
using steps::after, steps::near, steps::vec;

namespace {
// A transform with memory: the running mean of gradients, 3/4 old.
struct smooth {
  using policy_for = kind::transform;
  static constexpr std::string_view name = "Smooth";
  constexpr auto slots() const { return std::array{slot{"mean", 0.0}}; }
  static constexpr std::array<std::string_view, 1> shared_names{"smoothed"};
  constexpr std::array<double, 1> start() const { return {0}; }
  constexpr void finish(std::array<double, 1>& s) const { s[0] += 1; }
  template <class N>
  struct constants {
    N fresh;
  };
  constexpr constants<double> prepare(const step_info&, const std::array<double, 1>& s) const {
    return {s[0] == 0 ? 1.0 : 0.25};
  }
  template <class N>
  void before(N&, N& g, const constants<N>& c, N& mean) const {
    mean = mean + c.fresh * (g - mean);
    g = mean;
  }
};
}  // namespace

TEST_CASE("parts act in the order given") {
  // clip then decay: g = clip(4) = 1, + 0.5 * 2 = 2; decay then clip: clip(4 + 1) = 1
  near(after({2.0}, {{4.0}},
             chain{clip_by_value{-1, 1}, weight_decay{0.5, decay_mode::coupled}, gradient_descent{.rate = 0.1}}),
       {2 - 0.1 * 2});
  near(after({2.0}, {{4.0}},
             chain{weight_decay{0.5, decay_mode::coupled}, clip_by_value{-1, 1}, gradient_descent{.rate = 0.1}}),
       {2 - 0.1 * 1});
}
TEST_CASE("a norm in the middle is that of what reaches it") {
  // (3, 4) + 1 * (0, 8) = (3, 12), norm 12.369...; clipped to 5
  const double n = std::sqrt(9.0 + 144.0);
  near(after({0.0, 8.0}, {{3.0, 4.0}},
             chain{weight_decay{1.0, decay_mode::coupled}, clip_by_norm{5}, gradient_descent{.rate = 1}}),
       {-3 * 5 / n, 8 - 12 * 5 / n});
}
TEST_CASE("a global norm in a chain is over all its variables, of what reaches it") {
  steps::updater<chain<part_list<clip_by_value, clip_by_global_norm, gradient_descent>>> u{
      chain{clip_by_value{-4, 4}, clip_by_global_norm{1}, gradient_descent{.rate = 1}}};
  vec a{0.0}, b{0.0};
  u.track("a", a), u.track("b", b);
  u.apply({{"a", vec{3.0}}, {"b", vec{100.0}}});  // (3, 4), norm 5
  near(a, {-0.6}), near(b, {-0.8});
}
TEST_CASE("a chain in a chain is its parts") {
  const chain inner{clip_by_value{-1, 1}, gradient_descent{.rate = 0.1}};
  const chain outer{weight_decay{0.5, decay_mode::coupled}, inner, lookahead{2, 0.5}};
  static_assert(std::tuple_size_v<std::remove_cvref_t<decltype(outer.parts())>> == 4);
  // steps: 2 -> 1.9 (clipped to 1) -> 1.8, then half way from 2: 1.9
  near(after({2.0}, {{4.0}}, outer), {1.9});
  near(after({2.0}, {{4.0}, {4.0}}, outer), {1.9});
}
TEST_CASE("parts keep slots and state of their own, under their own names") {
  const chain c{smooth{}, adam{.rate = 0.1}, lookahead{}};
  static_assert(decltype(c)::name == "Adam" && decltype(c)::default_rate == 0.001);
  static_assert(decltype(c)::shared_names.size() == 3);
  steps::updater<std::remove_const_t<decltype(c)>> u{c};
  vec w{1.0};
  u.track("w", w);
  u.apply({{"w", vec{2.0}}}), u.apply({{"w", vec{4.0}}});
  CHECK(u.slot_names("w") == std::vector<std::string_view>{"mean", "m", "v", "slow"});
  CHECK(u.slot("w", "mean").as<double>()[0] == doctest::Approx(2.5));           // 2 + (4 - 2) / 4
  CHECK(u.slot("w", "m").as<double>()[0] == doctest::Approx(0.2 + 0.1 * 2.3));  // 0.9 0.2 + 0.1 2.5
  state_list list;
  u.remembers(list);
  std::vector<std::string> names;
  for (const auto& e : list.entries()) names.push_back(e.name);
  CHECK(names == std::vector<std::string>{"w", "w/Smooth", "w/Adam", "w/Adam_1", "w/Lookahead", "smoothed",
                                          "beta1_power", "beta2_power", "global_step"});
}
TEST_CASE("the rate of a chain is its rule's") {
  near(after({1.0}, {{1.0}}, chain{clip_by_value{}, gradient_descent{.rate = 0.5}}), {0.5});
  near(after({1.0}, {{1.0}}, chain{clip_by_value{}, gradient_descent{}}, constant{0.25}), {0.75});
  steps::refused([] { after({1.0}, {}, chain{clip_by_value{}, gradient_descent{}}); }, "no owner");
  steps::refused([] { after({1.0}, {}, chain{gradient_descent{.rate = 1}}, constant{0.25}); }, "two owners");
}
TEST_CASE("with rows: clips at the head see single values, the others the sum") {
  const std::vector<std::int32_t> rows{1, 1};
  const vec values{0.75, 0.75};
  const auto of = [&](const auto& c) {
    steps::updater<std::remove_cvref_t<decltype(c)>> u{c};
    vec w{0.0, 0.0, 0.0};
    u.track("w", w);
    u.apply({{"w", indexed_slices{rows, values}}});
    return w;
  };
  near(of(chain{clip_by_value{-0.5, 0.5}, gradient_descent{.rate = 1}}), {0, -1.0, 0});
  near(of(chain{weight_decay{0.0}, clip_by_value{-0.5, 0.5}, gradient_descent{.rate = 1}}), {0, -0.5, 0});
  const double n = std::sqrt(2 * 0.75 * 0.75);
  near(of(chain{clip_by_norm{1}, gradient_descent{.rate = 1}}), {0, -1.5 / n, 0});
  near(of(chain{weight_decay{0.0}, clip_by_norm{1}, gradient_descent{.rate = 1}}), {0, -1.0, 0});
}
TEST_CASE("a row without a gradient sees the rule alone; followers see every row") {
  steps::updater<chain<part_list<weight_decay<>, adam, lookahead>>> u{
      chain{weight_decay{0.5}, adam{.rate = 0.1, .sparse = sparse_mode::decay_all}, lookahead{2, 0.5}}};
  vec w{1.0, 1.0};
  u.track("w", w);
  u.apply({{"w", vec{1.0, 1.0}}});
  const double first = 1 - 0.05 - 0.1;  // decayed, then a first step of Adam
  near(w, {first, first}, 1e-7);
  const std::vector<std::int32_t> rows{0};
  u.apply({{"w", indexed_slices{rows, vec{1.0}}}});
  // Row 1: no decay; m = 0.09, v = 0.000999; then half way from 1.
  const double step = 0.1 * std::sqrt(1 - 0.999 * 0.999) / (1 - 0.81) * 0.09 / std::sqrt(0.000999);
  CHECK(std::fabs(w[1] - (1 + (first - step)) / 2) < 1e-7);
}
