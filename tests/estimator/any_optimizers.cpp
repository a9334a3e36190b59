#include <gradus/estimator/any_optimizers.hpp>

#include <gradus/cpu/device.hpp>
#include <gradus/ops/elementwise.hpp>
#include <gradus/ops/reduce.hpp>
#include <gradus/run/optimizer.hpp>
#include <gradus/run/session.hpp>
#include <gradus/update/rules/adagrad.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

#include <doctest/doctest.h>

using namespace gradus;

TEST_CASE("two optimizers of different rules, put in before they have train ops, train in a session of the list") {
  graph g;
  const value a = g.variable("a", {}, {.init = constant_initializer(2)}),
              b = g.variable("b", {}, {.init = constant_initializer(3)});
  optimizer first{gradient_descent{.rate = 0.25}};
  optimizer second{adagrad{.rate = 0.5, .initial_accumulator_value = 28}};
  any_optimizers all{first, second};
  CHECK(all.size() == 2);
  CHECK(any_optimizers().empty());
  const value train_a = first.minimize(square(a), {.var_list = a}),
              train_b = second.minimize(square(b), {.var_list = b});
  const auto open = sessions_of(g, all);
  all = {};  // the factory has a copy
  const auto s = open();
  s->initialize();
  s->run({train_a, train_b});
  CHECK(s->variable("a").as<float>()[0] == 1.0f);    // 2 - 0.25 * 2 * 2
  CHECK(s->variable("b").as<float>()[0] == 2.625f);  // 3 - 0.5 * 6 / sqrt(28 + 36)
}
