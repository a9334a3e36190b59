// tf.train.Optimizer on graphs: what it gives, in which order, and each of its errors.
#include "../golden/golden.hpp"
#include "../ops/refusal.hpp"

#include <gradus/cpu/device.hpp>
#include <gradus/graph/law.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/pass/optimize.hpp>
#include <gradus/run/stepper.hpp>
#include <gradus/update/clip.hpp>
#include <gradus/update/composed.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

using namespace gradus;

namespace {
constexpr int many(const graph& g, const card& op) {
  int n = 0;
  for (int i = 0; i < g.nodes.count; ++i) n += g.nodes[i].op == &op;
  return n;
}
constexpr bool waits_for(const graph& g, int id, int before) {
  const node& n = g.nodes[id];
  for (int e = n.first + n.inputs, end = e + n.controls; e < end; ++e)
    if (g.edges[e] == before) return true;
  return false;
}

// In var_list order, None where the loss does not depend on the variable; nested lists are flat.
static_assert([] {
  graph g;
  const value a = g.variable("a", {2}), b = g.variable("b", {2}), c = g.variable("c", {2});
  const value loss = reduce_sum(square(a) * b);
  const auto all = compute_gradients(loss);
  const auto some = compute_gradients(loss, {.var_list = {{b, c}, a}});
  return all.count == 3 && all[0].variable.id == a.id && all[0].gradient && all[1].gradient && !all[2].gradient &&
         some.count == 3 && some[0].variable.id == b.id && some[1].variable.id == c.id && !some[1].gradient &&
         some[2].variable.id == a.id && broken_law(parts_of(g)) == nullptr;
}());
// A plain tensor may be differentiated by (testComputeGradientsWithTensors); a loss of any shape is summed; grad_loss.
static_assert([] {
  graph g;
  const value x = g.constant({1, 2}, {2}), loss = x * x, up = g.constant({3, 4}, {2});
  const auto list = compute_gradients(loss, {.var_list = x, .grad_loss = up});
  return list.count == 1 && list[0].gradient.dense.dims() == shape{2};
}());
// GATE_GRAPH: each gradient comes through an identity that waits for all of them; rows do not wait, values do.
static_assert([] {
  graph g;
  const value w = g.variable("w", {3, 2}), b = g.variable("b", {2});
  const value loss = reduce_sum(gather(w, g.constant({0, 2}, {2}, int32)) * b);
  const auto list = compute_gradients(loss, {.gate_gradients = gating::graph});
  const gradient_value &dw = list[0].gradient, &db = list[1].gradient;
  const node& n = g.nodes[dw.values.id];
  const int gate = g.edges[n.first + 1];
  return dw.sparse() && n.op == &cards::identity && n.controls == 1 && g.nodes[gate].op == &no_op_card &&
         g.nodes[gate].controls == 2 && waits_for(g, db.dense.id, gate) &&
         g.nodes[dw.indices.id].op != &cards::identity && g.gates.empty();
}());
static_assert([] {
  graph g;
  const value a = g.variable("a", {2, 2}), b = g.variable("b", {2, 2});
  const value loss = reduce_sum(matmul(a, b));
  compute_gradients(loss, {.gate_gradients = gating::none});
  const bool none = g.gates.empty();
  compute_gradients(loss);
  return none && !g.gates.empty();
}());
// apply: an update for each gradient, on the variable's device; the train op waits for all; the step is counted last.
static_assert([] {
  graph g;
  value a;
  {
    const auto device = g.device("/job:ps/task:0");
    a = g.variable("a", {2});
  }
  const value b = g.variable("b", {2}), unused = g.variable("unused", {2});
  const value step = g.variable("global_step", {}, {.init = zeros, .trainable = false, .type = int64});
  const value loss = reduce_sum(a * b);
  const value op = minimize(loss, {.global_step = step, .name = "train"});
  int member = -1;
  g.for_each_in(collection::train_op, [&](value v) { member = v.id; });
  const int done = g.edges[g.nodes[op.id].first + 2];
  bool updates = g.nodes[done].controls == 2;
  for (int e = 0; e < g.nodes[done].controls; ++e) {
    const node& u = g.nodes[g.edges[g.nodes[done].first + e]];
    updates = updates && u.op == &cards::apply && u.device == g.nodes[g.edges[u.first]].device;
  }
  return updates && unused && many(g, cards::apply) == 2 && g.nodes[op.id].op == &cards::assign_add &&
         g.nodes[op.id].type == int64 && g.name_of(op.id) == "train" && member == op.id &&
         broken_law(parts_of(g)) == nullptr;
}());

// ---- models with a train op of their own
constexpr auto line = [](graph& g) {
  const value x = g.placeholder("x", {batch, 2}), y = g.placeholder("y", {batch});
  const value w = g.variable("w", {2}, {.init = ones});
  return reduce_mean(square(reduce_sum(x * w, {1}) - y));
};
constexpr auto plain = [](graph& g) { return model_spec{.loss = line(g)}; };
constexpr auto own = [](graph& g) {
  const value loss = line(g);
  return model_spec{.loss = loss, .train_op = minimize(loss)};
};
constexpr auto doubled = [](graph& g) {
  const value loss = line(g);
  auto list = compute_gradients(loss, {.gate_gradients = gating::graph});
  for (auto& [d, v] : list) d.dense = d.dense * 2.0;
  return model_spec{.loss = loss, .train_op = apply_gradients(list)};
};
constexpr auto twice = [](graph& g) {
  const value loss = line(g), w = g.by_name("w");
  const auto list = compute_gradients(loss);
  return model_spec{.loss = loss,
                    .train_op = apply_gradients({{list[0].gradient, w}, {list[0].gradient.dense * 3.0, w}})};
};
constexpr auto gated = [](graph& g) {
  const value loss = line(g);
  return model_spec{.loss = loss, .train_op = minimize(loss, {.gate_gradients = gating::graph})};
};
constexpr auto by_hand = [](graph& g) {  // no optimizer at all
  const value loss = line(g), w = g.by_name("w");
  const auto list = compute_gradients(loss);
  return model_spec{.loss = loss, .train_op = assign_sub(w, list[0].gradient.dense * 0.5)};
};
constexpr auto counted = [](graph& g) {
  const value loss = line(g);
  const value steps = g.variable("steps", {}, {.init = zeros, .trainable = false, .type = int32});
  return model_spec{.loss = loss, .train_op = minimize(loss, {.global_step = steps})};
};
template <auto Build>
constexpr graph stage_one(bool norm = false) {
  graph g;
  build_into(g, decltype(Build){});  // a copy: see ops/refusal.hpp
  return minimize(parts_of(g), {gating::op, norm});
}
static_assert(many(stage_one<own>(), cards::apply) == 1 && many(stage_one<own>(), cards::copy) == 0);
static_assert(many(stage_one<gated>(), cards::copy) == 0);  // the update waits, nothing is copied
static_assert(many(stage_one<twice>(), cards::apply) == 2 && many(stage_one<twice>(), cards::copy) == 2);
static_assert(many(stage_one<by_hand>(), cards::apply) == 0);
static_assert(many(stage_one<own>(true), cards::global_norm) == 1);
static_assert(broken_law(parts_of(stage_one<twice>())) == nullptr &&
              broken_law(parts_of(stage_one<gated>(true))) == nullptr);

using sgd = composed<gradient_descent>;
template <auto Build, bool Norm = false, class Update>
std::vector<float> trained(Update update, int steps) {
  const std::vector<float> x{1, 2, -1, 0.5f, 3, 1}, y{1, 0, 2};
  const auto go = [&](auto&& model) {
    stepper<std::remove_cvref_t<decltype(model)>, Update, cpu<fast>> s(std::move(model), update);
    s.allocate();
    s.initialize(1);
    auto& m = s.template bound<mode::train>(3);
    s.template placeholders<mode::train>([&](placeholder_info p) {
      const auto& from = p.name == "x" ? x : y;
      std::memcpy(m.address(p.node), from.data(), from.size() * sizeof(float));
    });
    for (int i = 0; i < steps; ++i) s.train_step();
    std::vector<float> out;
    for (std::size_t i = 0; i < s.variables().size(); ++i) {
      const auto view = s.variables().view(i);
      if (view.type == float32)
        for (float v : view.template as<float>()) out.push_back(v);
      else
        out.push_back(static_cast<float>(view.template as<std::int32_t>()[0]));
    }
    return out;
  };
  const auto compiled = go(compiled_model<Build, cpu<fast>, gating::op, Norm, true>{});
  CHECK(go(interpreted_model<cpu<fast>, ops<>, gating::op, Norm, true>(decltype(Build){})) == compiled);
  return compiled;
}
}  // namespace

TEST_CASE("a model's own train op trains as the trainer's, compiled and interpreted") {
  const sgd quick(gradient_descent{.rate = 0.05}), slow(gradient_descent{.rate = 0.025});
  const auto expected = trained<plain>(quick, 3);
  CHECK(expected != std::vector<float>{1, 1});
  CHECK(trained<own>(quick, 3) == expected);
  CHECK(trained<gated>(quick, 3) == expected);
  CHECK(trained<doubled>(slow, 3) == expected);
  CHECK(trained<by_hand>(slow, 1) == trained<plain>(sgd(gradient_descent{.rate = 0.5}), 1));
  const auto with_steps = trained<counted>(quick, 3);
  CHECK(with_steps == std::vector<float>{expected[0], expected[1], 3});
  // a variable that is listed twice is updated twice, with each its own gradient
  const auto four_times = trained<plain>(sgd(gradient_descent{.rate = 0.1}), 1);
  const auto two_updates = trained<twice>(slow, 1);
  for (std::size_t i = 0; i < 2; ++i) CHECK(two_updates[i] == doctest::Approx(four_times[i]));
}
TEST_CASE("a clip by global norm sees the processed gradients") {
  using clipped = composed<gradient_descent, clip_by_global_norm>;
  const clipped update(gradient_descent{.rate = 0.05}, clip_by_global_norm{0.1});
  CHECK(trained<own, true>(update, 3) == trained<plain, true>(update, 3));
  const auto w = trained<doubled, true>(update, 1), p = trained<plain, true>(update, 1);
  for (std::size_t i = 0; i < 2; ++i) CHECK(w[i] == doctest::Approx(p[i]));  // clipped to the same length
}

namespace {
template <class Call>
std::string kind_of(Call call) {
  try {
    graph g;
    call(g);
  } catch (const error& e) {
    return std::string(name_of(e.kind()));
  }
  return "(nothing was refused)";
}
}  // namespace
TEST_CASE("trainable_variables: those of a scope, in their order") {
  graph g;
  const value x = g.placeholder("x", {batch, 2});
  const value a = dense(x, {.units = 2, .name = "first/a"}), b = dense(a, {.units = 2, .name = "second/b"});
  g.variable("first/fixed", {2}, {.trainable = false});
  dense(b, {.units = 1, .name = "first/c"});
  const auto names = [&](const variable_list& list) {
    std::string all;
    for (const value& v : list.values()) all += std::string(g.name_of(v.id)) + " ";
    return all;
  };
  CHECK(names(trainable_variables(g, "first/")) == "first/a/kernel first/a/bias first/c/kernel first/c/bias ");
  CHECK(names(trainable_variables(g, "second")) == "second/b/kernel second/b/bias ");
  CHECK(trainable_variables(g).values().count == 6);
  const auto first = trainable_variables(g, "first/");
  std::string by_range;
  for (const value v : first) by_range += std::string(g.name_of(v.id)) + " ";
  CHECK(by_range == "first/a/kernel first/a/bias first/c/kernel first/c/bias ");
  CHECK(first.size() == 4);
  CHECK(g.name_of(first[2].id) == "first/c/kernel");
  const auto list = compute_gradients(reduce_mean(b), {.var_list = trainable_variables(g, "second")});
  REQUIRE(list.count == 2);
  CHECK(g.name_of(list[0].variable.id) == "second/b/kernel");
  CHECK_THROWS_WITH_AS(minimize(reduce_mean(b), {.var_list = trainable_variables(g, "third")}),
                       doctest::Contains("No variables to optimize"), invalid_argument);
}
TEST_CASE("compute_gradients: its errors") {
  refusal_test::check<[](graph& g) {
    compute_gradients(reduce_sum(g.variable("w", {2})), {.gate_gradients = static_cast<gating>(7)});
  }>("gate_gradients must be one of none, op and graph, got 7");
  refusal_test::check<[](graph& g) {
    g.variable("w", {2});
    compute_gradients(g.placeholder("n", {}, int32));
  }>("Invalid type int32 of the loss; expected float32 or float64");
  refusal_test::check<[](graph& g) {
    compute_gradients(reduce_sum(g.variable("w", {2})), {.grad_loss = g.constant(1, int64)});
  }>("Invalid type int64 of the grad_loss; expected float32 or float64");
  refusal_test::check<[](graph& g) { compute_gradients(g.constant(1)); }>("No variables to optimize");
  refusal_test::check<[](graph& g) {
    const value w = g.variable("w", {2});
    compute_gradients(reduce_sum(w), {.var_list = detail::seq<value>{}});
  }>("No variables to optimize");
  refusal_test::check<[](graph& g) {
    const value w = g.variable("w", {2});
    compute_gradients(reduce_sum(w), {.aggregation_method = static_cast<aggregation>(-1)});
  }>("gradients: invalid aggregation_method -1; expected add_n, experimental_tree or experimental_accumulate_n");
  refusal_test::check<[](graph& g) {
    g.variable("w", {2});
    compute_gradients(g.constant(1), {.gate_gradients = gating::graph});
  }>("compute_gradients: gating::graph needs at least one gradient, and none of the variables has one");
  CHECK(kind_of([](graph& g) {
          const value w = g.variable("w", {2});
          compute_gradients(reduce_sum(w), {.var_list = {w, value{}}});
        }) == "unimplemented");
  CHECK(kind_of([](graph& g) {
          const value w = g.variable("w", {2});
          compute_gradients(reduce_sum(w), {.var_list = g.group({w})});
        }) == "unimplemented");
  CHECK_THROWS_AS(compute_gradients(value{}), invalid_argument);
}
TEST_CASE("apply_gradients: its errors") {
  CHECK_THROWS_WITH_AS(apply_gradients(std::span<const gradient_and_variable>{}),
                       "No variables provided: the list of gradients is empty", invalid_argument);
  refusal_test::check<[](graph& g) {
    const value a = g.variable("a", {2}), b = g.variable("b", {2});
    apply_gradients({{gradient_value{}, a}, {gradient_value{}, b}});
  }>("No gradients provided for any variable: \"a\", \"b\"");
  refusal_test::check<[](graph& g) {
    const value w = g.variable("w", {2});
    minimize(g.constant(1, float32), {.var_list = w});
  }>("No gradients provided for any variable, check your graph for ops that do not support gradients, between "
     "variables "
     "\"w\" and loss \"Const\"");
  refusal_test::check<[](graph& g) {
    const value w = g.variable("w", {2});
    apply_gradients({{g.group({w}), w}});
  }>("apply_gradients: the gradient of \"w\" is no tensor of this graph");
  refusal_test::check<[](graph& g) {
    const value w = g.variable("w", {2});
    apply_gradients({{g.constant({1, 2, 3}, {3}), w}});
  }>("apply_gradients: the gradient of \"w\" is [3], the variable [2]");
  refusal_test::check<[](graph& g) {
    const value w = g.variable("w", {2});
    apply_gradients({{g.constant({1, 2}, {2}, float64), w}});
  }>("apply_gradients: the gradient of \"w\" is float64, the variable float32");
  refusal_test::check<[](graph& g) {
    const value w = g.variable("w", {4, 2});
    const gradient_value rows{.values = g.constant(1, float32, {2, 3}), .indices = g.constant(1, int32, {2})};
    apply_gradients({{rows, w}});
  }>("apply_gradients: values [2, 3] at int32 rows [2] do not fit variable \"w\" [4, 2]");
  refusal_test::check<[](graph& g) {
    const value w = g.variable("w", {2}, {.trainable = false});
    apply_gradients({{g.constant({1, 2}, {2}), w}});
  }>("apply_gradients: variable \"w\" is not trainable, so a trainer keeps no slots for it; declare it with .trainable "
     "= "
     "true");
  refusal_test::check<[](graph& g) {
    const value w = g.variable("w", {2});
    apply_gradients({{g.constant({1, 2}, {2}), w}}, {.global_step = g.constant(1)});
  }>("apply_gradients: global_step must be a variable of this graph");
  refusal_test::check<[](graph& g) {
    const value w = g.variable("w", {2});
    apply_gradients({{g.constant({1, 2}, {2}), w}}, {.global_step = w});
  }>("apply_gradients: global_step must be a scalar number, got float32 [2]");
  graph tensors;  // testComputeGradientsWithTensors, its second half
  const value x = tensors.constant(1);
  const auto list = compute_gradients(x * x, {.var_list = x});
  CHECK_THROWS_WITH_AS(apply_gradients(list), "Trying to update a Tensor: \"Const\" is no variable", unimplemented);
  CHECK(kind_of([](graph& g) {
          const value w = g.variable("w", {2});
          apply_gradients({{w, g.group({w})}});
        }) == "unimplemented");
}
TEST_CASE("models with a train op: their errors") {
  refusal_test::check<[](graph& g) {
    build_into(g, [](graph& h) {
      const value loss = line(h);
      minimize(loss);
      return model_spec{.loss = loss};
    });
  }>("the model applies gradients and does not say so: return model_spec{.train_op = ...}");
  refusal_test::check<[](graph& g) {
    graph h;
    build_into(h, [](graph& k) {
      const value loss = line(k), other = k.variable("other", {2});
      minimize(loss);
      return model_spec{.loss = loss, .train_op = minimize(reduce_sum(other * k.by_name("w")))};
    });
    const graph m = minimize(parts_of(h), {gating::op, true});
    g.refuse(std::string_view(m.refusal.first, static_cast<std::size_t>(m.refusal.count)));
  }>("clip_by_global_norm needs all gradients before the first update, and this model computes some after it: give all "
     "to "
     "one apply_gradients, or clip them in the model");
}
