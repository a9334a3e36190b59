#include <gradus/update/rule.hpp>

#include <doctest/doctest.h>

#include <gradus/cpu/sweeps.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/rules/momentum.hpp>

using namespace gradus;

namespace {
// A user's own rule, from outside the library: RMSProp without momentum, with an initial value that is a setting.
struct root_mean_square {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "RootMeanSquare";
  std::optional<double> rate = {};
  static constexpr double default_rate = 0.01;
  double decay = 0.9;
  double initial = 1.0;

  constexpr auto slots() const { return std::array{slot{"rms", initial}}; }
  template <class N>
  struct constants {
    N rate, fresh;
  };
  constexpr constants<double> prepare(const step_info& at) const { return {at.rate, 1 - decay}; }
  template <class N>
  N step(N theta, N g, const constants<N>& c, N& rms) const {
    rms = rms + c.fresh * (g * g - rms);
    return theta - c.rate * g / sqrt(rms + N::of(1e-10));
  }
};

struct nameless {
  using policy_for = kind::rule;
};
struct stepless {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "Stepless";
  std::optional<double> rate = {};
  template <class N>
  struct constants {
    N rate;
  };
  constexpr constants<double> prepare(const step_info& at) const { return {at.rate}; }
};
// Names a slot that its step does not take.
struct forgetful : stepless {
  constexpr auto slots() const { return std::array{slot{"m", 0.0}}; }
  template <class N>
  N step(N theta, N g, const constants<N>& c) const {
    return theta - c.rate * g;
  }
};
}  // namespace

TEST_CASE("the rule concept takes rules and refuses what is less") {
  static_assert(update_rule<gradient_descent> && update_rule<momentum> && update_rule<adam>);
  static_assert(update_rule<root_mean_square>);
  static_assert(!update_rule<nameless> && !update_rule<stepless> && !update_rule<forgetful>);
  static_assert(!update_rule<clip_by_global_norm> && !update_rule<int>);
}

TEST_CASE("a rule from outside runs in the sweep, with its slot's own initial value") {
  const composed update{root_mean_square{.initial = 0.5}, clip_by_global_norm{1.0}};
  const auto m = update.mirrors();
  REQUIRE(m.size() == 1);
  CHECK(m[0].initial == 0.5);
  CHECK(checkpoint_name("w", m[0]) == "w/RootMeanSquare");
  std::vector<double> theta(5, 1.0), g{0.5, -1, 2, 0, 4}, rms(5, 0.5);
  double* const mirrors[] = {rms.data()};
  sweep<portable>(update, update.prepare<double>(0), 1.0, theta.data(), g.data(), mirrors, 5);
  for (std::size_t i = 0; i < 5; ++i) {
    const double want = 0.5 + 0.1 * (g[i] * g[i] - 0.5);
    CHECK(rms[i] == doctest::Approx(want));
    CHECK(theta[i] == doctest::Approx(1 - 0.01 * g[i] / std::sqrt(want + 1e-10)));
  }
}
