#include <gradus/estimator/optimizer_choice.hpp>

#include <gradus/cpu/device.hpp>
#include <gradus/ops/gather.hpp>
#include <gradus/ops/reduce.hpp>
#include <gradus/run/session.hpp>
#include <gradus/session/global_step.hpp>
#include <gradus/update/rules/adagrad.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/ftrl.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/rules/rmsprop.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace gradus;

namespace {
// Two steps of an optimizer on a table of which two rows are read: what the table is then, and the variables' names.
struct after {
  std::vector<float> table;
  std::string names;
};
after two_steps(const optimizer_choice& choice, double rate) {
  graph g;
  const value t = g.variable("t", {3, 1}, {.init = constant_initializer(0.5f)});
  const value ids = g.placeholder("ids", {batch}, int32);
  const chosen_optimizer opt = choice.make(rate);
  const value op = opt.minimize(reduce_sum(square(gather(t, ids))), {.global_step = create_global_step(g)});
  session s{g, opt.session_part};
  s.initialize(1);
  for (const std::vector<std::int32_t>& rows : {std::vector{0, 2}, std::vector{2, 2}}) s.run(op, {{"ids", rows}});
  CHECK(s.variable("global_step").as<std::int64_t>()[0] == 2);
  const auto found = s.variable("t").as<float>();
  after a{{found.begin(), found.end()}, {}};
  g.for_each_in(collection::global_variables, [&](value v) { a.names += std::string(g.name_of(v.id)) + " "; });
  return a;
}
}  // namespace

TEST_CASE("optimizer_choice: each name is TensorFlow's rule with its settings") {
  const auto same = [](const char* name, const auto& rule, const std::string& slots) {
    CAPTURE(name);
    const after by_name = two_steps(name, 0.1), by_rule = two_steps(rule, 77);
    CHECK(by_name.table == by_rule.table);
    CHECK_MESSAGE(by_name.names == "t global_step " + slots, by_name.names);
    CHECK(two_steps(optimizer(rule), 77).table == by_rule.table);
    CHECK(two_steps(std::string(name), 0.2).table != by_rule.table);
  };
  same("Adagrad", adagrad{.rate = 0.1}, "t/Adagrad ");
  same("Adam", adam{.rate = 0.1, .sparse = sparse_mode::decay_all}, "t/Adam t/Adam_1 beta1_power beta2_power ");
  same("Ftrl", ftrl{.rate = 0.1}, "t/Ftrl t/Ftrl_1 ");
  same("RMSProp", rmsprop{.rate = 0.1}, "t/RMSProp t/RMSProp_1 ");
  same("SGD", gradient_descent{.rate = 0.1}, "");
}

TEST_CASE("optimizer_choice: a name that is none") {
  std::string is;
  try {
    optimizer_choice choice = "Unsupported_name";
  } catch (const invalid_argument& e) {
    is = e.what();
  }
  CHECK(is.find("Unsupported optimizer name: \"Unsupported_name\". Supported names are: Adagrad, Adam, Ftrl, RMSProp, "
                "SGD") != std::string::npos);
}

TEST_CASE("optimizer_choice: an object serves graph after graph, each time with slots of its own") {
  const optimizer shared{adagrad{.rate = 0.1}};
  const optimizer_choice choice = shared;
  const auto first = two_steps(choice, 1);
  for (int i = 0; i < 3; ++i) {
    const auto again = two_steps(choice, 1);
    CHECK((again.table == first.table && again.names == first.names));
  }
  CHECK(shared.variables().empty());
}

TEST_CASE("optimizer_choice: train ops that are joined count one step, and a schedule follows it") {
  graph g;
  const value a = g.variable("a", {}, {.init = constant_initializer(1)}), b = g.variable("b", {}, {.init = zeros});
  const value step = create_global_step(g), loss = a + b;
  const auto one = optimizer_choice("SGD").make(0.5), two = optimizer_choice("SGD").make(0.25);
  const auto list = compute_gradients(loss);
  detail::seq<gradient_and_variable> of_a, of_b;
  of_a.push(list[0]), of_b.push(list[1]);
  const value x = one.apply_gradients(of_a, {.global_step = step, .counts_step = false}),
              y = two.apply_gradients(of_b, {.global_step = step, .counts_step = false});
  const value op = g.group({x, y});
  session s{g, one.session_part, two.session_part};
  s.initialize(1);
  s.run(op);
  CHECK(s.variable("a").as<float>()[0] == 0.5f);
  CHECK(s.variable("b").as<float>()[0] == -0.25f);
  CHECK(s.variable("global_step").as<std::int64_t>()[0] == 0);
  int variables = 0;
  g.for_each_in(collection::global_variables, [&](value) { ++variables; });
  CHECK(variables == 3);  // no counters of their own
}
