// Numbers: TensorFlow's own tests of its head (tensorflow/estimator, canned/head_test.py).
#include <gradus/estimator/regression_head.hpp>

#include "head_run.hpp"

using namespace gradus;
using namespace head_test;

TEST_CASE("regression_head: predictions and exports; an inverse link") {
  const auto f = run(regression_head(), mode::predict, {{45, 41}, {2, 1}, int32});
  close(f.predictions.at("predictions"), {45, 41});
  CHECK(f.predictions.size() == 1);
  const regression_head less({.inverse_link_fn = [](value x) { return x - 10.0; }});
  const auto l = run(less, mode::predict, {{45, 41}, {2, 1}, int32});
  close(l.predictions.at("predictions"), {35, 31});
  close(l.predictions.at("logits"), {45, 41});
  graph g(mode::predict);
  const auto spec = less.create_estimator_spec({.mode = mode::predict, .logits = g.placeholder("x", {batch, 1})});
  CHECK(spec.export_outputs.size() == 3);
  CHECK(spec.export_outputs.at("regression").outputs["outputs"].id == spec.predictions["predictions"].id);
  CHECK(spec.export_outputs.at("predict").outputs["logits"].id == spec.predictions["logits"].id);
}

TEST_CASE("regression_head: an evaluation; weights; several numbers an example") {
  const auto e = run(regression_head(), mode::evaluate, {{45, 41}, {2, 1}}, {{43, 44}, {2, 1}, int32});
  CHECK(e.loss == 13);
  all_close(e.metrics, {{"average_loss", 6.5}, {"prediction/mean", 43}, {"label/mean", 43.5}});
  const regression_head weighted({.weight_column = "label_weights"});
  const auto w =
      run(weighted, mode::evaluate, {{45, 41, 44}, {3, 1}}, {{35, 42, 45}, {3, 1}, int32}, {{1, 0.1f, 1.5f}, {3, 1}});
  CHECK(w.loss == doctest::Approx(101.6));
  const std::map<std::string, double> wanted{{"average_loss", 39.0769231},
                                             {"prediction/mean", (45 + 41 * 0.1 + 44 * 1.5) / 2.6},
                                             {"label/mean", (35 + 42 * 0.1 + 45 * 1.5) / 2.6}};
  all_close(w.metrics, wanted), all_close(w.updated, wanted);
  // Three numbers, each with a weight of its own.
  const regression_head three({.label_dimension = 3, .weight_column = "label_weights"});
  CHECK(three.logits_dimension() == 3);
  const numbers logits{{45, 41, 44}, {1, 3}}, labels{{35, 42, 45}, {1, 3}}, weights{{1, 0.1f, 1.5f}, {1, 3}};
  CHECK(run(three, mode::evaluate, logits, labels, weights).loss == doctest::Approx(101.6));
  all_close(run(three, mode::evaluate, logits, labels, weights).metrics, wanted);
  const auto t = run(three, mode::train, logits, labels, weights);
  CHECK(t.train == doctest::Approx(-7 * 101.6));
  all_close(t.summaries, {{"loss", 101.6}, {"average_loss", 39.0769231}});
  // One weight for the three: 2 * (100 + 1 + 1).
  CHECK(run(three, mode::train, logits, labels, {{2}, {1, 1}}).loss == doctest::Approx(204));
  close(run(three, mode::train, logits, labels, {{2}, {1}}).summaries.at("average_loss"), 34);
}

TEST_CASE("regression_head: batches add up in metrics") {
  graph g(mode::evaluate);
  const value logits = g.placeholder("logits", {batch, 1}), labels = g.placeholder("labels", {batch, 1}),
              weights = g.placeholder("label_weights", {batch, 1});
  const auto spec =
      regression_head({.weight_column = "label_weights"})
          .create_estimator_spec(
              {.features = {{"label_weights", weights}}, .mode = mode::evaluate, .logits = logits, .labels = labels});
  session s{g};
  s.initialize(1);
  const float x[] = {45, 41, 44}, y[] = {35, 42, 45}, w[] = {1, 0.1f, 1.5f}, losses[] = {100, 0.1f, 1.5f};
  for (int i = 0; i < 3; ++i) {
    const std::vector<feed> feeds{
        {"logits", std::span(x + i, 1)}, {"labels", std::span(y + i, 1)}, {"label_weights", std::span(w + i, 1)}};
    CHECK(s.run(spec.loss, feeds).as<float>()[0] == doctest::Approx(losses[i]));
    for (const auto& [name, m] : spec.eval_metric_ops) s.run(m.update, feeds);
  }
  CHECK(s.run(spec.eval_metric_ops.at("average_loss").result).as<float>()[0] == doctest::Approx(39.076923));
  CHECK(s.run(spec.eval_metric_ops.at("label/mean").result).as<float>()[0] ==
        doctest::Approx((35 + 42 * 0.1 + 45 * 1.5) / 2.6));
}

TEST_CASE("regression_head: what is refused") {
  refuses("Invalid label_dimension 0", [] { regression_head({.label_dimension = 0}); });
  refuses("Invalid loss_reduction", [] { regression_head({.loss_reduction = losses::reduction::none}); });
  const regression_head three({.label_dimension = 3, .weight_column = "label_weights"});
  refuses("logits_dimension=3], got [2, 1]", [&] { run(three, mode::predict, {{1, 2}, {2, 1}}); });
  refuses("Mismatched label shape. Expected labels dimension=3. Received [1, 1]", [&] {
    run(three, mode::evaluate, {{1, 2, 3}, {1, 3}}, {{1}, {1, 1}});
  });
  refuses("Mismatched label shape. Expected labels dimension=3. Received [1]", [&] {
    run(three, mode::evaluate, {{1, 2, 3}, {1, 3}}, {{1}, {1}});
  });
  refuses("or [D0, D1, ... DN, logits_dimension], logits_shape: [1, 3], weights_shape: [1, 2]", [&] {
    run(three, mode::train, {{1, 2, 3}, {1, 3}}, {{1, 2, 3}, {1, 3}}, {{1, 2}, {1, 2}});
  });
  refuses("You must provide a labels Tensor", [&] { run(three, mode::train, {{1, 2, 3}, {1, 3}}); });
}
