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
// It keeps what it computed from its setting when it was made, so a schedule of the setting has no effect.
struct computes_once : descent {
  double factor = 0.5;
  mutable std::optional<double> kept = {};
  static constexpr auto settings() {
    return std::array{setting<computes_once>{"factor", &computes_once::factor, setting_range::positive}};
  }
  void check() const {
    if (!kept.has_value()) kept = factor;
  }
  constants<double> prepare(const step_info& at) const { return {at.rate * kept.value_or(factor)}; }
  template <class N>
  N step(N theta, N g, const constants<N>& c) const {
    return theta - c.rate * g;
  }
};
// It raises in its third step, after the slots' names were found wrong.
template <class Error>
struct gives_up : two_of_a_name {
  constants<double> prepare(const step_info& at) const {
    if (at.global_step >= 2) throw Error("no more steps");
    return {at.rate};
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
TEST_CASE("every shape that is large enough is checked, and only inside of it") {
  for (const extents& first : {extents{4, 3}, {3, 3}, {3, 1}, {5, 2}})
    for (const extents& second : {extents{9}, {1}, {}}) {
      const testing::conform_options options{.shapes = {first, second}, .wrappers = false};
      for (const auto& f : testing::conform(gradient_descent{.rate = 0.5}, options))
        FAIL_CHECK(to_text(first), ": ", f);
    }
  CHECK(testing::conform(momentum{}, {.shapes = {{4, 3}, {9}}}).empty());
  CHECK(mentions(testing::conform(stranger_to_nan{}, {.shapes = {{3, 1}, {1}}, .wrappers = false}),
                 "a NaN in a gradient shows in the variable"));
}
TEST_CASE("shapes that are too small are refused") {
  const auto refusal = [](std::vector<extents> shapes) -> std::string {
    try {
      (void)testing::conform(gradient_descent{}, {.shapes = std::move(shapes), .wrappers = false});
    } catch (const invalid_argument& e) {
      return e.what();
    }
    return "";
  };
  const std::string first =
      "conform: expected the first of `shapes` to have rank 2, three rows or more (sparse gradients list two of them) "
      "and a column; got ";
  CHECK(refusal({}) == "conform: expected `shapes` of two variables at least; got 0");
  CHECK(refusal({{6, 6}}) == "conform: expected `shapes` of two variables at least; got 1");
  CHECK(refusal({{2, 1}, {9}}) == first + "[2, 1]");
  CHECK(refusal({{3, 0}, {9}}) == first + "[3, 0]");
  CHECK(refusal({{9}, {6, 6}}) == first + "[9]");
  CHECK(refusal({{3, 3}, {0}}) == "conform: expected the second of `shapes` to have an element; got [0]");
  CHECK(refusal({{3, 3}, {1}, {-1}}) == "conform: expected extents of 0 or more in `shapes`; got [-1]");
}
TEST_CASE("settings are checked without the wrappers") {
  CHECK(mentions(testing::conform(computes_once{}, {.wrappers = false}), "vary<&rule::factor>(constant{0.25})"));
  CHECK(testing::conform(computes_once{}, {.wrappers = false, .settings = false}).empty());
}
TEST_CASE("an error of the rule is a failure like others") {
  const auto finds = [](const std::vector<std::string>& failures) {
    CHECK(mentions(failures, "Descent (float32): two slots are called \"m\""));
    CHECK(mentions(failures, "Descent (float32) raises an error: "));
    CHECK(mentions(failures, "Descent (float64) raises an error: "));
    CHECK(mentions(failures, "Descent (float32 beside float64) raises an error: no more steps"));
  };
  finds(testing::conform(gives_up<internal>{}, {.wrappers = false}));
  finds(testing::conform(gives_up<std::runtime_error>{}, {.wrappers = false}));
}
