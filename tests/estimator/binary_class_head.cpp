// Numbers: TensorFlow's own tests of its head (tensorflow/estimator, canned/head_test.py).
#include <gradus/estimator/binary_class_head.hpp>

#include "head_run.hpp"

using namespace gradus;
using namespace head_test;

TEST_CASE("binary_class_head: predictions") {
  const auto f = run(binary_class_head(), mode::predict, {{0.3f, -0.4f}, {2, 1}});
  close(f.predictions.at("logits"), {0.3, -0.4});
  close(f.predictions.at("logistic"), {0.574443, 0.401312});
  close(f.predictions.at("probabilities"), {0.425557, 0.574443, 0.598688, 0.401312});
  close(f.predictions.at("class_ids"), {1, 0});
  close(f.predictions.at("all_class_ids"), {0, 1, 0, 1});
  CHECK(f.predictions.size() == 5);
  CHECK(run(binary_class_head(), mode::predict, {{0}, {1, 1}}).predictions.at("class_ids")[0] == 0);  // argmax's first
}

TEST_CASE("binary_class_head: exports; names of classes") {
  graph g(mode::predict);
  const value x = g.placeholder("x", {batch, 1});
  const auto spec = binary_class_head().create_estimator_spec({.mode = mode::predict, .logits = x});
  CHECK(spec.export_outputs.size() == 4);
  CHECK(spec.export_outputs.at("serving_default").outputs["scores"].id == spec.predictions["probabilities"].id);
  CHECK(spec.export_outputs.at("classification").method_name == "tensorflow/serving/classify");
  CHECK(spec.export_outputs.at("regression").outputs["outputs"].id == spec.predictions["logistic"].id);
  CHECK(spec.export_outputs.at("predict").outputs.size() == 5);
  CHECK((!spec.loss && !spec.train_op && spec.eval_metric_ops.empty()));
  CHECK(spec.predictions["class_ids"].type() == int64);
  CHECK(binary_class_head().class_names() == std::vector<std::string>{"0", "1"});
  CHECK(binary_class_head({.label_vocabulary = {"aang", "iroh"}}).class_names()[1] == "iroh");
}

TEST_CASE("binary_class_head: an evaluation") {
  const auto f = run(binary_class_head(), mode::evaluate, {{45, -41}, {2, 1}}, {{1, 1}, {2, 1}, int32});
  CHECK(f.loss == doctest::Approx(41));
  const std::map<std::string, double> wanted{
      {"average_loss", 20.5},     {"accuracy", 0.5}, {"precision", 1},         {"recall", 0.5},
      {"prediction/mean", 0.5},   {"label/mean", 1}, {"accuracy_baseline", 1}, {"auc", 0},
      {"auc_precision_recall", 1}};
  all_close(f.metrics, wanted), all_close(f.updated, wanted);
  CHECK(f.summaries.empty());
}

TEST_CASE("binary_class_head: weights of examples") {
  const numbers logits{{45, -41, 44}, {3, 1}}, labels{{1, 1, 0}, {3, 1}, int32}, weights{{1, 0.1f, 1.5f}, {3, 1}};
  const binary_class_head head({.weight_column = "label_weights"});
  const auto f = run(head, mode::evaluate, logits, labels, weights);
  CHECK(f.loss == doctest::Approx(70.1));
  const std::map<std::string, double> wanted{{"average_loss", 26.9615384615},
                                             {"accuracy", .38461538461},
                                             {"precision", 1 / 2.5},
                                             {"recall", 1 / 1.1},
                                             {"prediction/mean", .96153846153},
                                             {"label/mean", .42307692307},
                                             {"accuracy_baseline", 1 - .42307692307},
                                             {"auc", .45454565},
                                             {"auc_precision_recall", .6737757325172424}};
  all_close(f.metrics, wanted), all_close(f.updated, wanted);
  // Labels and weights [batch], weights of another dtype: the same; and what training shows.
  const auto t = run(head, mode::train, logits, {{1, 1, 0}, {3}}, {{1, 0.1f, 1.5f}, {3}, float64});
  CHECK(t.loss == doctest::Approx(70.1));
  CHECK(t.train == doctest::Approx(-7 * 70.1));
  all_close(t.summaries, {{"loss", 70.1}, {"average_loss", 26.9615384615}});
}

TEST_CASE("binary_class_head: more than one axis before the last") {
  const auto f = run(binary_class_head({.weight_column = "label_weights"}), mode::evaluate,
                     {{10, -10, 12, -12}, {2, 2, 1}}, {{0, 0, 1, 1}, {2, 2, 1}, float64}, {{1, 1.5f, 2, 2.5f}, {2, 2}});
  CHECK(f.loss == doctest::Approx(40).epsilon(1e-4));
  all_close(f.metrics,
            {{"average_loss", 40. / 7},
             {"accuracy", 3.5 / 7},
             {"precision", 2. / 3},
             {"recall", 2 / 4.5},
             {"prediction/mean", 3. / 7},
             {"label/mean", 4.5 / 7},
             {"accuracy_baseline", 4.5 / 7},
             {"auc", 0.5222},
             {"auc_precision_recall", 0.7341}},
            1e-2);
}

TEST_CASE("binary_class_head: thresholds, fractions as labels, a head's name, regularization") {
  const auto f =
      run(binary_class_head({.thresholds = {0.25, 0.5, 0.75}}), mode::evaluate, {{-1, 1}, {2, 1}}, {{1, 1}, {2, 1}});
  all_close(f.metrics,
            {{"average_loss", 1.62652338 / 2},
             {"accuracy", 0.5},
             {"precision", 1},
             {"recall", 0.5},
             {"prediction/mean", 0.5},
             {"label/mean", 1},
             {"accuracy_baseline", 1},
             {"auc", 0},
             {"auc_precision_recall", 1},
             {"accuracy/positive_threshold_0.25", 1},
             {"precision/positive_threshold_0.25", 1},
             {"recall/positive_threshold_0.25", 1},
             {"accuracy/positive_threshold_0.5", 0.5},
             {"precision/positive_threshold_0.5", 1},
             {"recall/positive_threshold_0.5", 0.5},
             {"accuracy/positive_threshold_0.75", 0},
             {"precision/positive_threshold_0.75", 0},
             {"recall/positive_threshold_0.75", 0}},
            1e-2);
  // A threshold is of the second class: that of the first would be wrong for both examples.
  const auto sided = run(binary_class_head({.thresholds = {0.5}}), mode::evaluate, {{-1, 1}, {2, 1}}, {{0, 1}, {2, 1}});
  close(sided.metrics.at("accuracy/positive_threshold_0.5"), 1);
  close(sided.metrics.at("precision/positive_threshold_0.5"), 1);
  const auto e = run(binary_class_head(), mode::evaluate, {{0.5f, -0.3f}, {2, 1}}, {{0.8f, 0.4f}, {2, 1}});
  CHECK(e.loss == doctest::Approx(1.2484322));
  close(e.metrics.at("average_loss"), 1.2484322 / 2);
  const auto n = run(binary_class_head({.name = "some_binary_head"}), mode::evaluate, {{45, -41}, {2, 1}},
                     {{1, 1}, {2, 1}}, {}, {1.5, 0.5});
  CHECK(n.metrics.size() == 10);
  CHECK(n.metrics.contains("accuracy/some_binary_head"));
  CHECK(n.loss == doctest::Approx(43));  // 41, and 2 of regularization
  close(n.metrics.at("regularization_loss/some_binary_head"), 2);
  close(n.metrics.at("average_loss/some_binary_head"), 20.5);
}

TEST_CASE("binary_class_head: how losses are reduced; a loss of one's own") {
  const numbers logits{{45, -41, 44}, {3, 1}}, labels{{1, 1, 0}, {3, 1}}, weights{{1, 0, 1.5f}, {3, 1}};
  const auto loss = [&](losses::reduction r) {
    const auto f = run(binary_class_head({.weight_column = "label_weights", .loss_reduction = r}), mode::train, logits,
                       labels, weights);
    CHECK(f.summaries.contains("average_loss") == (r == losses::reduction::sum));
    return f.loss;
  };
  CHECK(loss(losses::reduction::sum) == doctest::Approx(66));
  CHECK(loss(losses::reduction::sum_over_batch_size) == doctest::Approx(22));
  CHECK(loss(losses::reduction::sum_by_nonzero_weights) == doctest::Approx(33));
  CHECK(loss(losses::reduction::mean) == doctest::Approx(66 / 2.5));
  const binary_class_head own({.loss_fn = [](value y, value x) { return abs(y - x); }});
  CHECK(run(own, mode::evaluate, {{-10, 10}, {2, 1}}, {{1, 0}, {2, 1}}).loss == doctest::Approx(21));
  refuses("loss_fn must return Tensor of shape [D0, D1, ... DN, 1]. logits_shape: [2, 1], loss_shape: [2]", [] {
    const binary_class_head flat({.loss_fn = [](value y, value) { return squeeze(y, {-1}); }});
    run(flat, mode::evaluate, {{-10, 10}, {2, 1}}, {{1, 0}, {2, 1}});
  });
}

TEST_CASE("binary_class_head: what is refused") {
  refuses("thresholds not in (0, 1): 0", [] { binary_class_head({.thresholds = {0.0, 0.5}}); });
  refuses("thresholds not in (0, 1): 1", [] { binary_class_head({.thresholds = {0.5, 1.0}}); });
  refuses("Length of label_vocabulary must be n_classes=2. Given: 3", [] {
    binary_class_head({.label_vocabulary = {"a", "b", "c"}});
  });
  refuses("label_vocabulary has \"a\" twice", [] { binary_class_head({.label_vocabulary = {"a", "a"}}); });
  refuses("Invalid loss_reduction", [] { binary_class_head({.loss_reduction = losses::reduction::none}); });
  const binary_class_head head;
  refuses("logits shape must be [D0, D1, ... DN, logits_dimension=1], got [2, 2]", [&] {
    run(head, mode::predict, {{45, 44, 41, 42}, {2, 2}});
  });
  refuses("Mismatched label shape. Expected labels dimension=1. Received [2, 2]", [&] {
    run(head, mode::evaluate, {{45, 41}, {2, 1}}, {{1, 1, 0, 0}, {2, 2}});
  });
  refuses("labels shape must be [2, 1]", [&] { run(head, mode::evaluate, {{45, 41}, {2, 1}}, {{1, 1, 0}, {3, 1}}); });
  refuses("You must provide a labels Tensor. Given: None.", [&] { run(head, mode::evaluate, {{45, 41}, {2, 1}}); });
  refuses("expected [0, 1]", [&] { run(head, mode::evaluate, {{0.5f, -0.3f}, {2, 1}}, {{1.2f, 0.4f}, {2, 1}}); });
  refuses("expected [0, 1]", [&] { run(head, mode::evaluate, {{0.5f, -0.3f}, {2, 1}}, {{1, -1}, {2, 1}, int32}); });
  const binary_class_head weighted({.weight_column = "label_weights"});
  refuses("the weight_column \"label_weights\" is not among the features", [&] {
    run(weighted, mode::evaluate, {{45, 41}, {2, 1}}, {{1, 1}, {2, 1}});
  });
  refuses("logits_shape: [2, 2, 1], weights_shape: [2, 1]", [&] {
    run(weighted, mode::train, {{10, -10, 12, -12}, {2, 2, 1}}, {{0, 0, 1, 1}, {2, 2, 1}}, {{1, 2}, {2, 1}});
  });
  refuses("weights_shape: [2, 2, 2]", [&] {
    run(weighted, mode::train, {{10, -10, 12, -12}, {2, 2, 1}}, {{0, 0, 1, 1}, {2, 2, 1}},
        {{1, 1, 1, 1, 1, 1, 1, 1}, {2, 2, 2}});
  });
}
