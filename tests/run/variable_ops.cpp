#include <gradus/run/variable_ops.hpp>

#include <gradus/cpu/device.hpp>
#include <gradus/ops/random.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/run/optimizer.hpp>
#include <gradus/run/session.hpp>
#include <gradus/update/rules/adam.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace gradus;

namespace {
std::vector<float> floats(const const_tensor_view& v) {
  const auto s = v.as<float>();
  return {s.begin(), s.end()};
}
template <class Error, class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "(nothing was refused)";
}
std::vector<std::string> without_value(const graph& g, value report, session<>& s) {
  return uninitialized_names(g, report, s.run(report));
}
}  // namespace

TEST_CASE(
    "initializer ops give what initialize() gives, with every kind of initializer, a rule's slots and its state") {
  graph g;
  const value w = g.variable("w", {3, 2}), b = g.variable("b", {4}, {.init = random_normal(1, 2)});
  const value t = g.variable("t", {2, 2}, {.init = orthogonal()});
  const value d = g.variable("d", {2}, {.init = truncated_normal(0, 1), .type = float64});
  const value loss = reduce_sum(square(w)) + reduce_sum(square(b)) + reduce_sum(square(t));
  optimizer opt{adam{}};
  const value train = opt.minimize(loss);
  const value init = global_variables_initializer(g), seeded = global_variables_initializer(g, 42);
  for (const std::uint64_t seed : {0ull, 42ull}) {
    session by_call{g, opt}, by_op{g, opt};
    by_call.initialize(seed);
    by_op.run(seed == 0 ? init : seeded);
    CHECK(by_op.report_uninitialized_variables().empty());
    for (int step = 0; step < 2; ++step) {
      g.for_each_in(collection::global_variables, [&](value v) {
        const auto name = g.name_of(v.id);
        const auto x = by_call.variable(name), y = by_op.variable(name);
        CHECK(x.size_bytes() == y.size_bytes());
        CHECK(std::equal(x.data, x.data + x.size_bytes(), y.data));
      });
      by_call.run(train), by_op.run(train);
    }
  }
  CHECK(d.type() == float64);
}

TEST_CASE("an initializer begins anew where there is a value; others stay as they are") {
  graph g;
  const value w = g.variable("w", {2}, {.init = ones});
  g.variable("v", {2}, {.init = ones});
  const value also = g.variable("l", {2}, {.init = ones, .trainable = false, .local = true});
  const value of_w = initializer_of(w), locals = local_variables_initializer(g),
              globals = global_variables_initializer(g);
  session s{g};
  s.initialize();
  const auto spoil = [&] {
    for (const char* n : {"w", "v", "l"})
      for (float& x : s.mutable_variable(n).mutable_as<float>()) x = 9;
  };
  const auto seen = [&] {
    return std::vector<float>{s.variable("w").as<float>()[1], s.variable("v").as<float>()[1],
                              s.variable("l").as<float>()[1]};
  };
  spoil(), s.run(of_w);
  CHECK(seen() == std::vector<float>{1, 9, 9});
  spoil(), s.run(locals);
  CHECK(seen() == std::vector<float>{9, 9, 1});
  spoil(), s.run(globals);
  CHECK(seen() == std::vector<float>{1, 1, 9});
  spoil(), s.run(g.group({of_w, locals}));
  CHECK(seen() == std::vector<float>{1, 9, 1});
  // it comes before what else the run does, and its values are read there
  spoil();
  CHECK(floats(s.run({w * 2.0, of_w})[0]) == std::vector<float>{2, 2});
  CHECK(also.type() == float32);
}

TEST_CASE("computed first values take the feeds of the run, and follow what they read") {
  graph g;
  const value x = g.placeholder("x", {2});
  const value v = g.variable("v", {2}, {.init = ones}), w = variable_from("w", v + x), u = variable_from("u", w * 2.0);
  const value init = global_variables_initializer(g), of_u = initializer_of(u);
  session s{g};
  CHECK(refusal<failed_precondition>([&] { s.run(of_u); }).find("\"w\" is not initialized") != std::string::npos);
  s.run(init, {{"x", std::vector<float>{3, 4}}});
  CHECK(floats(s.run(u)) == std::vector<float>{8, 10});
  s.run(init, {{"x", std::vector<float>{0, 0}}});
  CHECK(floats(s.run(u)) == std::vector<float>{2, 2});
}

TEST_CASE("random streams go on through an initializer without a seed, and begin anew with one") {
  graph g;
  const value draw = random_uniform(g, {4});
  const value init = global_variables_initializer(g), anew = global_variables_initializer(g, 3);
  session s{g};
  s.initialize(3);
  const auto first = floats(s.run(draw)), second = floats(s.run(draw));
  s.run(init);
  const auto third = floats(s.run(draw));
  CHECK(third != first);
  CHECK(third != second);
  s.run(anew);
  CHECK(floats(s.run(draw)) == first);
  CHECK(floats(s.run(draw)) == second);
}

TEST_CASE("what has no value is reported by name, and is no obstacle to the report") {
  graph g;
  const value w = g.variable("w", {2}, {.init = ones}), v = g.variable("v", {2}, {.init = ones});
  g.variable("l", {2}, {.init = ones, .trainable = false, .local = true});
  const value all = report_uninitialized_variables(g), some = report_uninitialized_variables(g, std::vector{v});
  const value has_w = is_variable_initialized(w);
  const value give = assign(w, g.constant({1, 2}, {2}));
  session s{g};
  CHECK(without_value(g, all, s) == std::vector<std::string>{"w", "v", "l"});
  CHECK(without_value(g, some, s) == std::vector<std::string>{"v"});
  CHECK(!s.run(has_w).as<bool>()[0]);
  s.run(give);
  CHECK(s.run(has_w).as<bool>()[0]);
  CHECK(without_value(g, all, s) == std::vector<std::string>{"v", "l"});
  s.initialize();
  CHECK(without_value(g, all, s).empty());
  CHECK(refusal<invalid_argument>([&] { uninitialized_names(g, w, s.run(w)); }).find("expected a report") !=
        std::string::npos);
  const value of_none = report_uninitialized_variables(g, std::vector<value>{});
  CHECK(without_value(g, of_none, s).empty());
}

TEST_CASE("count_up_to gives what the counter was, and stops at the limit without a change") {
  graph g;
  const value c = g.variable("c", {}, {.init = constant_initializer(2), .trainable = false, .type = int64});
  const value d = g.variable("d", {}, {.init = zeros, .trainable = false, .type = int32});
  const value next = count_up_to(c, 4), small = count_up_to(d, 1);
  session s{g};
  CHECK(refusal<failed_precondition>([&] { s.run(next); }).find("\"c\" is not initialized") != std::string::npos);
  s.initialize();
  CHECK(s.run(next).as<std::int64_t>()[0] == 2);
  CHECK(s.run(next).as<std::int64_t>()[0] == 3);
  for (int i = 0; i < 2; ++i) {
    CHECK(refusal<out_of_range>([&] { s.run(next); }) == "Reached limit of 4");
    CHECK(s.variable("c").as<std::int64_t>()[0] == 4);
  }
  CHECK(s.run(small).as<std::int32_t>()[0] == 0);
  CHECK(refusal<out_of_range>([&] { s.run(small); }) == "Reached limit of 1");
  const value f = g.variable("f", {}, {.init = zeros});
  CHECK(refusal<invalid_argument>([&] { count_up_to(f, 3); }).find("int32 or int64") != std::string::npos);
  CHECK(refusal<invalid_argument>([&] { count_up_to(next, 3); }).find("must be a variable") != std::string::npos);
}

TEST_CASE("only variables of the graph have initializers") {
  graph g, h;
  const value x = g.placeholder("x", {2}), other = h.variable("w", {2});
  CHECK(refusal<invalid_argument>([&] {
          initializer_of(x);
        }).find("expected variables of this graph, got Placeholder") != std::string::npos);
  CHECK(refusal<invalid_argument>([&] { variables_initializer(g, std::vector{other}); }).find("another") !=
        std::string::npos);
  session s{g};
  s.run(tables_initializer(g));  // there are none: it does nothing
}
