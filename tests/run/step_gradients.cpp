#include <gradus/run/step_gradients.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gradus/update/rules/gradient_descent.hpp>

#include "models.hpp"

using namespace run_test;

namespace {
// loss = mean((x w)^2) of one row, so the gradient of w is 2 (x w) x, and its norm is known on paper.
constexpr auto line = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 3});
  const auto w = g.variable("w", {3, 1}, {.init = constant_initializer(2)});
  return model_spec{.loss = reduce_mean(square(matmul(x, w))), .metrics = {}, .predictions = {}};
};
template <class Update>
struct of_line {
  using model = interpreted_model<cpu<fast>, ops<>, gating::op, true, false>;
  stepper<model, Update, cpu<fast>> steps;
  explicit of_line(Update u) : steps(model{line}, u) {
    steps.allocate();
    steps.initialize(1);
  }
  void step(std::vector<float> x) {
    step_machine& m = steps.template bound<mode::train>(1);
    steps.template placeholders<mode::train>(
        [&](placeholder_info p) { std::memcpy(m.address(p.node), x.data(), 3 * sizeof(float)); });
    steps.train_step();
  }
};
}  // namespace

TEST_CASE("the norm of all gradients") {
  of_line all(composed{gradient_descent{.rate = 0.0}});
  all.step({1, 2, 2});  // x w = 10, gradient 20 * (1, 2, 2)
  CHECK(all.steps.gradient_norm() == doctest::Approx(60));
}

TEST_CASE("the first gradient that is not finite is named, with loss and step") {
  of_line all(composed{gradient_descent{.rate = 0.0}, not_finite::raise{}});
  all.step({1, 2, 2});
  try {
    all.step({1, std::numeric_limits<float>::infinity(), 2});
    FAIL("no error");
  } catch (const error& e) {
    const std::string said = e.what();
    INFO(said);
    CHECK(said.find("after step 1") != std::string::npos);
    CHECK(said.find("the loss is inf") != std::string::npos);
  }
}
