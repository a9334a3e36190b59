#include <gradus/testing/conform.hpp>

#include <doctest/doctest.h>

#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/rules/momentum.hpp>

using namespace gradus;

namespace {
bool mentions(const std::vector<std::string>& failures, std::string_view what) {
  for (const auto& f : failures)
    if (f.find(what) != std::string::npos) return true;
  return false;
}
// Rules that break one promise each, as a user's first version might.
struct descent {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "Descent";
  std::optional<double> rate = {};
  template <class N>
  struct constants {
    N rate;
  };
  constexpr constants<double> prepare(const step_info& at) const { return {at.rate}; }
};
struct stranger_to_nan : descent {
  template <class N>
  N step(N theta, N g, const constants<N>& c) const {
    return theta - c.rate * max(g, N::of(-1e30));  // max's first place loses a NaN
  }
};
struct remembers_outside : descent {
  mutable double steps = 0;  // not in the state list
  constants<double> prepare(const step_info& at) const { return {at.rate / (1 + steps++)}; }
  template <class N>
  N step(N theta, N g, const constants<N>& c) const {
    return theta - c.rate * g;
  }
};
struct different_by_width : descent {
  template <class N>
  N step(N theta, N g, const constants<N>& c) const {
    return N::width == 1 ? theta - c.rate * g : theta - g * c.rate * N(2) / N(3) * N(1.5);
  }
};
struct two_of_a_name : descent {
  constexpr auto slots() const { return std::array{slot{"m"}, slot{"m"}}; }
  template <class N>
  N step(N theta, N g, const constants<N>& c, N& m, N& n) const {
    m = m + g, n = n + g;
    return theta - c.rate * m;
  }
};
// What is left of a row depends on whether it was listed: neither lazy nor as gradient 0.
struct restless : descent {
  constexpr bool decays_all_rows() const { return true; }
  template <class N>
  N step(N theta, N g, const constants<N>& c) const {
    return theta * N(0.5) - c.rate * g / (abs(g) + N(0.1)) - select(g == N(0), N(1), N(0));
  }
};
// In float32 its sum forgets everything small.
struct coarse : descent {
  constexpr auto slots() const { return std::array{slot{"sum", 1e8}}; }
  template <class N>
  N step(N theta, N g, const constants<N>& c, N& sum) const {
    sum = sum + g;
    return theta - c.rate * (sum - N(1e8));
  }
};
}  // namespace

TEST_CASE("a rule that keeps its promises has no failures") {
  CHECK(testing::conform(gradient_descent{.rate = 0.5}, {.wrappers = false}).empty());
  CHECK(testing::conform(momentum{}).empty());
}
TEST_CASE("a NaN that disappears is found") {
  const auto failures = testing::conform(stranger_to_nan{}, {.wrappers = false});
  CHECK(mentions(failures, "Descent (float64): a NaN in a gradient shows in the variable"));
  CHECK(testing::conform(stranger_to_nan{}, {.nan_shows = false, .wrappers = false}).empty());
}
TEST_CASE("state that no checkpoint holds is found") {
  CHECK(mentions(testing::conform(remembers_outside{}, {.wrappers = false}), "resumed from a restored state"));
}
TEST_CASE("bits that depend on the register are found") {
  CHECK(mentions(testing::conform(different_by_width{}, {.wrappers = false}), "registers and single numbers, size"));
}
TEST_CASE("slots of one name are found") {
  CHECK(mentions(testing::conform(two_of_a_name{}, {.wrappers = false}), "two slots are called \"m\""));
}
TEST_CASE("a formula that float32 cannot hold is found") {
  CHECK(mentions(testing::conform(coarse{}, {.wrappers = false}), "float32 beside float64"));
}
