// The layers of the canned models as graphs: TensorFlow's names of variables, numbers of facts N, the same model
// written by hand. What the estimators do with them: linear.cpp, dnn.cpp, dnn_linear_combined.cpp, baseline.cpp.
#include <gradus/estimator/canned/canned_model.hpp>

#include "../head_run.hpp"

#include <gradus/estimator/binary_class_head.hpp>
#include <gradus/estimator/multi_class_head.hpp>
#include <gradus/estimator/regression_head.hpp>
#include <gradus/session/global_step.hpp>
#include <gradus/update/rules/adagrad.hpp>
#include <gradus/update/rules/ftrl.hpp>

#include <algorithm>

using namespace gradus;
using head_test::refuses;

namespace {

std::vector<std::string> names_in(graph& g, std::string_view which) {
  std::vector<std::string> all;
  g.for_each_in(which, [&](value v) { all.emplace_back(g.name_of(v.id)); });
  std::sort(all.begin(), all.end());
  return all;
}
// Features of a graph as an estimator makes them: placeholders in a scope of their own.
named_tensors placeholders(graph& g, const components& parts) {
  const auto scope = g.name_scope("input_fn");
  named_tensors all;
  for (const component& c : parts) {
    shape s{batch};
    for (int i = 0; i < c.dims.rank; ++i) s.push(static_cast<int>(c.dims[i]));
    all.add(c.name, g.placeholder(c.name, s, c.type));
  }
  return all;
}
const numeric_column x("x");
const auto town = categorical_column_with_hash_bucket("town", 5);

}  // namespace

TEST_CASE("canned_model: variables have TensorFlow's names") {
  const canned_model m(
      multi_class_head(3),
      {.dnn = dnn_part{.feature_columns = {x, embedding_column(town, 2)}, .hidden_units = {4, 3}, .batch_norm = true},
       .linear = linear_part{.feature_columns = {x, town}}});
  graph g;
  create_global_step(g);
  const named_tensors features = placeholders(g, {{"x", float32, {1}}, {"town/ids", int64, {1}}});
  const auto spec = m(features, g.placeholder("y", {batch}, int64), mode::train);
  CHECK(names_in(g, collection::trainable_variables) ==
        std::vector<std::string>{"dnn/hiddenlayer_0/batchnorm_0/beta", "dnn/hiddenlayer_0/batchnorm_0/gamma",
                                 "dnn/hiddenlayer_0/bias", "dnn/hiddenlayer_0/kernel",
                                 "dnn/hiddenlayer_1/batchnorm_1/beta", "dnn/hiddenlayer_1/batchnorm_1/gamma",
                                 "dnn/hiddenlayer_1/bias", "dnn/hiddenlayer_1/kernel",
                                 "dnn/input_from_feature_columns/input_layer/town_embedding/embedding_weights",
                                 "dnn/logits/bias", "dnn/logits/kernel", "linear/linear_model/bias_weights",
                                 "linear/linear_model/town/weights", "linear/linear_model/x/weights"});
  const auto all = names_in(g, collection::global_variables);
  const auto has = [&](std::string_view name) { return std::count(all.begin(), all.end(), name) == 1; };
  CHECK((has("dnn/hiddenlayer_1/batchnorm_1/moving_mean") && has("dnn/hiddenlayer_0/batchnorm_0/moving_variance")));
  CHECK((has("dnn/hiddenlayer_0/kernel/Adagrad") && has("linear/linear_model/x/weights/Ftrl") &&
         has("linear/linear_model/x/weights/Ftrl_1") && has("global_step")));
  CHECK(all.size() == 14 + 4 + 11 + 6 + 1);  // trained, moving, Adagrad's, Ftrl's, the step: nothing else
  // As TensorFlow's: the mean of a batch of value 1 moves by 0.001 of itself.
  std::vector<std::string> shown;
  for (int i = 0; i < g.outputs.count; ++i) shown.emplace_back(g.text_at(g.outputs[i].name));
  for (const char* tag :
       {"loss", "average_loss", "dnn/hiddenlayer_0/fraction_of_zero_values", "dnn/hiddenlayer_1/activation",
        "dnn/logits/fraction_of_zero_values", "linear/bias", "linear/fraction_of_zero_weights"})
    CHECK_MESSAGE(std::count(shown.begin(), shown.end(), tag) == 1, tag);
  const graph::scope scope = g.name_scope("later");
  refuses("the graph has a tensor \"dnn\" already", [&] {
    graph h;
    h.placeholder("dnn", {batch, 1});
    m(placeholders(h, {{"x", float32, {1}}, {"town/ids", int64, {1}}}), h.placeholder("y", {batch}, int64),
      mode::train);
  });
}

TEST_CASE("canned_model: batch norm's momentum; dropout only where the model is trained") {
  const canned_model m(regression_head(),
                       {.dnn = dnn_part{.feature_columns = {x}, .hidden_units = {2}, .batch_norm = true}});
  graph g;
  create_global_step(g);
  const auto spec = m(placeholders(g, {{"x", float32, {1}}}), g.placeholder("y", {batch}), mode::train);
  session s{g, spec.optimizers};
  s.initialize(1);
  auto weights = s.mutable_variable("dnn/hiddenlayer_0/kernel").mutable_as<float>();
  weights[0] = 3, weights[1] = -1;
  const std::vector<float> in{2, 4}, out{1, 1};
  s.run(spec.train_op, {{"input_fn/x", in}, {"y", out}});
  // relu(3 x) = 6 and 12: their mean is 9; relu(-x) = 0.
  const auto mean = s.variable("dnn/hiddenlayer_0/batchnorm_0/moving_mean").as<float>();
  CHECK(mean[0] == doctest::Approx(0.009));
  CHECK(mean[1] == 0);
  const canned_model drops(regression_head(),
                           {.dnn = dnn_part{.feature_columns = {x}, .hidden_units = {2}, .dropout = 0.5}});
  const auto draws = [&](mode which) {
    graph h(which);
    drops(placeholders(h, {{"x", float32, {1}}}), h.placeholder("y", {batch}), which);
    for (int i = 0; i < h.nodes.count; ++i)
      if (h.nodes[i].op == &cards::dropout) return true;
    return false;
  };
  CHECK(draws(mode::train));
  CHECK(!draws(mode::evaluate));
  CHECK(!draws(mode::predict));
}

TEST_CASE("canned_model: the same as the model written by hand, bit for bit") {
  const components parts{{"x", float32, {1}}, {"town/ids", int64, {1}}};
  const auto run = [](graph& g, const estimator_spec& spec) {
    session s{g, spec.optimizers};
    s.initialize(7);
    random_stream random{3};
    std::vector<float> trace;
    for (int step = 0; step < 20; ++step) {
      std::vector<float> in(8);
      std::vector<std::int64_t> ids(8), out(8);
      for (std::size_t i = 0; i < 8; ++i)
        in[i] = static_cast<float>(random.uniform()), ids[i] = static_cast<std::int64_t>(random.uniform() * 5),
        out[i] = in[i] > 0.5f;
      const auto r = s.run({spec.train_op, spec.loss}, {{"input_fn/x", in}, {"input_fn/town/ids", ids}, {"y", out}});
      trace.push_back(r[1].as<float>()[0]);
    }
    g.for_each_in(collection::global_variables, [&](value v) {
      const auto name = g.name_of(v.id);
      if (v.type() != float32) return;
      const auto now = s.variable(name).as<float>();
      trace.insert(trace.end(), now.begin(), now.end());
    });
    CHECK(s.variable("global_step").as<std::int64_t>()[0] == 20);
    return trace;
  };
  const feature_layout layout({.input_layer = {x, embedding_column(town, 2)}, .linear_model = {x, town}});
  const canned_model m(binary_class_head(),
                       {.dnn = dnn_part{.feature_columns = layout.input_layer(), .hidden_units = {6, 4}},
                        .linear = linear_part{.feature_columns = layout.linear_model()}});
  graph g;
  create_global_step(g);
  const named_tensors features = placeholders(g, parts);
  const auto canned = run(g, m(features, g.placeholder("y", {batch}, int64), mode::train));

  graph h;
  const value step = create_global_step(h);
  const named_tensors same = placeholders(h, parts);
  const value y = h.placeholder("y", {batch}, int64);
  const feature_source source = [&](const std::string& name) { return same[name]; };
  value deep, wide;
  {
    const auto scope = h.name_scope("dnn/input_from_feature_columns");
    deep = input_layer(h, layout, {.source = source});
  }
  deep = dense(deep, {.units = 6, .name = "dnn/hiddenlayer_0", .activation = relu});
  deep = dense(deep, {.units = 4, .name = "dnn/hiddenlayer_1", .activation = relu});
  deep = dense(deep, {.units = 1, .name = "dnn/logits"});
  {
    const auto scope = h.name_scope("linear");
    wide = linear_model(h, layout, {.source = source});
  }
  const value loss = reduce_sum(sigmoid_cross_entropy_with_logits(deep + wide, cast(expand_dims(y, -1), float32)));
  optimizer adagrads{adagrad{.rate = 0.05}};
  optimizer ftrls{ftrl{.rate = 0.2}};
  std::vector<gradient_and_variable> first, second;
  for (const auto& p : compute_gradients(loss))
    (h.name_of(p.variable.id).starts_with("dnn/") ? first : second).push_back(p);
  const value a = adagrads.apply_gradients(first, {.global_step = step, .counts_step = false}),
              b = ftrls.apply_gradients(second, {.global_step = step, .counts_step = false});
  const value count = [&] {
    const auto wait = h.control_dependencies({a, b});
    return assign_add(step, h.constant(1, int64));
  }();
  const auto by_hand = run(h, {.loss = loss, .train_op = count, .optimizers = {adagrads, ftrls}});
  CHECK(canned == by_hand);
  CHECK(canned.size() > 60);
  CHECK(canned[19] < canned[0]);
}

TEST_CASE("canned_model: what is refused") {
  refuses("a dnn model: expected feature_columns, found none",
          [] { canned_model(regression_head(), {.dnn = dnn_part{.feature_columns = {}, .hidden_units = {1}}}); });
  refuses("a linear model: expected feature_columns, found none",
          [] { canned_model(regression_head(), {.linear = linear_part{}}); });
  refuses("hidden_units must be 1 or more each, found 0", [] {
    canned_model(regression_head(), {.dnn = dnn_part{.feature_columns = {x}, .hidden_units = {2, 0}}});
  });
  refuses("dropout must be in [0, 1), found 1", [] {
    canned_model(regression_head(), {.dnn = dnn_part{.feature_columns = {x}, .hidden_units = {2}, .dropout = 1}});
  });
}
