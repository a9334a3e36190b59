// Numbers: TensorFlow's own tests of its head (tensorflow/estimator, canned/head_test.py).
#include <gradus/estimator/multi_class_head.hpp>

#include "head_run.hpp"

using namespace gradus;
using namespace head_test;

TEST_CASE("multi_class_head: predictions, exports, names of classes") {
  const auto f = run(multi_class_head(3), mode::predict, {{1, 0, 0, 0, 0, 1}, {2, 3}});
  close(f.predictions.at("probabilities"), {0.576117, 0.2119416, 0.2119416, 0.2119416, 0.2119416, 0.576117});
  close(f.predictions.at("class_ids"), {0, 2});
  close(f.predictions.at("all_class_ids"), {0, 1, 2, 0, 1, 2});
  close(f.predictions.at("logits"), {1, 0, 0, 0, 0, 1});
  CHECK(f.predictions.size() == 4);
  CHECK(multi_class_head(3).class_names() == std::vector<std::string>{"0", "1", "2"});
  CHECK(multi_class_head({.n_classes = 3, .label_vocabulary = {"aang", "iroh", "zuko"}}).class_names()[2] == "zuko");
  graph g(mode::predict);
  const auto spec = multi_class_head(3).create_estimator_spec(
      {.mode = mode::predict, .logits = g.placeholder("x", {batch, 3}, float32)});
  CHECK(spec.export_outputs.size() == 3);
  CHECK(spec.export_outputs.at("serving_default").outputs["scores"].id == spec.predictions["probabilities"].id);
  CHECK(spec.export_outputs.at("predict").outputs.size() == 4);
  CHECK(spec.predictions["class_ids"].dims() == shape{batch, 1});
}

TEST_CASE("multi_class_head: an evaluation, a training, weights") {
  const auto e = run(multi_class_head(3), mode::evaluate, {{10, 0, 0, 0, 10, 0}, {2, 3}}, {{1, 1}, {2, 1}, int64});
  CHECK(e.loss == doctest::Approx(10).epsilon(1e-3));
  all_close(e.metrics, {{"average_loss", 5}, {"accuracy", 0.5}}, 1e-3);
  all_close(e.updated, {{"average_loss", 5}, {"accuracy", 0.5}}, 1e-3);
  const multi_class_head weighted({.n_classes = 3, .weight_column = "label_weights"});
  const numbers logits{{10, 0, 0, 0, 10, 0, 0, 0, 10}, {3, 3}}, weights{{1, 2, 3}, {3, 1}, float64};
  const auto w = run(weighted, mode::evaluate, logits, {{1, 2, 2}, {3, 1}, int32}, weights);
  CHECK(w.loss == doctest::Approx(30).epsilon(1e-3));
  all_close(w.metrics, {{"average_loss", 5}, {"accuracy", 0.5}}, 1e-3);
  const auto t = run(weighted, mode::train, logits, {{1, 2, 2}, {3}, int64}, {{1, 2, 3}, {3}});
  CHECK(t.loss == doctest::Approx(30).epsilon(1e-3));
  CHECK(t.train == doctest::Approx(-210).epsilon(1e-3));
  all_close(t.summaries, {{"loss", 30}, {"average_loss", 5}}, 1e-3);
  // Logits [2, 2, 3], labels [2, 2, 1], weights [2, 2].
  const auto m = run(weighted, mode::evaluate, {{10, 0, 0, 12, 0, 0, 0, 10, 0, 0, 15, 0}, {2, 2, 3}},
                     {{0, 1, 1, 2}, {2, 2, 1}, int64}, {{1, 1.5f, 2, 2.5f}, {2, 2}});
  CHECK(m.loss == doctest::Approx(55.5).epsilon(1e-3));
  all_close(m.metrics, {{"average_loss", 55.5 / 7}, {"accuracy", 3. / 7}}, 1e-3);
}

TEST_CASE("multi_class_head: reduction and regularization, a head's name, a loss of one's own, bytes as labels") {
  const multi_class_head head(
      {.n_classes = 3, .loss_reduction = losses::reduction::sum_over_batch_size, .name = "some_multiclass_head"});
  const auto e = run(head, mode::evaluate, {{10, 0, 0, 0, 10, 0}, {2, 3}}, {{1, 1}, {2, 1}, int64}, {}, {1.5, 0.5});
  CHECK(e.loss == doctest::Approx(7).epsilon(1e-3));  // 5, and 2
  all_close(e.metrics,
            {{"average_loss/some_multiclass_head", 5},
             {"accuracy/some_multiclass_head", 0.5},
             {"regularization_loss/some_multiclass_head", 2}},
            1e-3);
  const auto t = run(head, mode::train, {{10, 0, 0, 0, 10, 0}, {2, 3}}, {{1, 1}, {2, 1}, uint8}, {}, {1.5, 0.5});
  all_close(t.summaries, {{"loss/some_multiclass_head", 7}, {"regularization_loss/some_multiclass_head", 2}}, 1e-3);
  const multi_class_head own({.n_classes = 3, .loss_fn = [](value y, value) { return cast(y, float32) * 2.0; }});
  CHECK(run(own, mode::evaluate, {{10, 0, 0, 0, 10, 0}, {2, 3}}, {{1, 2}, {2, 1}, int64}).loss == 6);
}

TEST_CASE("multi_class_head: what is refused") {
  refuses("n_classes must be > 2: 2", [] { multi_class_head{2}; });
  refuses("n_classes must be > 2: 0", [] { multi_class_head(multi_class_head_options{}); });
  refuses("Length of label_vocabulary must be n_classes=3. Given: 2", [] {
    multi_class_head({.n_classes = 3, .label_vocabulary = {"a", "b"}});
  });
  refuses("Invalid loss_reduction",
          [] { multi_class_head({.n_classes = 3, .loss_reduction = losses::reduction::none}); });
  const multi_class_head head(3);
  const numbers two{{1, 2, 3, 1, 2, 3}, {2, 3}};
  refuses("logits_dimension=3], got [2, 2]", [&] { run(head, mode::predict, {{45, 44, 41, 42}, {2, 2}}); });
  refuses("Mismatched label shape. Expected labels dimension=1. Received [2, 2]", [&] {
    run(head, mode::evaluate, two, {{45, 44, 41, 42}, {2, 2}, int64});
  });
  refuses("labels shape must be [2, 1]", [&] { run(head, mode::evaluate, two, {{1, 1, 1}, {3, 1}, int64}); });
  refuses("Labels dtype should be integer. Instead got float32.", [&] {
    run(head, mode::evaluate, two, {{1, 1}, {2, 1}});
  });
  refuses("label 45 of row 0 is outside [0, 3)", [&] { run(head, mode::evaluate, two, {{45, 1}, {2, 1}, int64}); });
  refuses("label -5 of row 0 is outside [0, 3)", [&] { run(head, mode::evaluate, two, {{-5, 1}, {2, 1}, int64}); });
  refuses("You must provide a labels Tensor", [&] { run(head, mode::train, two); });
}
