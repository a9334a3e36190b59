#include <gradus/estimator/canned/canned_estimator.hpp>

#include "canned_run.hpp"

#include <gradus/estimator/canned/dnn.hpp>
#include <gradus/estimator/canned/linear.hpp>
#include <gradus/input/map.hpp>

using namespace gradus;
using namespace canned_test;

TEST_CASE("canned_estimator: is an estimator for who takes one, with the columns in its way") {
  testing::temp_dir dir;
  write_checkpoint(dir.path(), small_line(11, 2));
  linear_regressor line({.feature_columns = {numeric_column("x")}, .model_dir = dir.path()});
  const auto found = [](estimator& any) { return any.evaluate(examples{{1}, {10}, {}}); }(line);
  CHECK(found["loss"] == 9);
  CHECK(line.model_dir() == dir.path());
  CHECK(line.get_variable_names().size() == 3);
  CHECK(line.class_names().empty());
}

TEST_CASE("canned_estimator: a stage of one's own comes before the columns; the rest of the options arrives") {
  testing::temp_dir dir;
  write_checkpoint(dir.path(), small_line(11, 2));
  std::vector<std::string> lines;
  linear_regressor_options o{.feature_columns = {numeric_column("x")}, .model_dir = dir.path()};
  o.estimator.stage = [](estimator_input in, mode) -> estimator_input {
    return {any_batches(std::move(in.batches).map([](datum& d) {
              for (float& v : d.values<float>("x")) v *= 2;
            })),
            in.labels};
  };
  o.estimator.log = [&](const std::string& line) { lines.push_back(line); };
  linear_regressor e(o);
  CHECK(predicted(e, {{1}, {0}, {}}, "predictions") == std::vector<double>{24});
  e.evaluate(examples{{1}, {10}, {}});
  CHECK(!lines.empty());
  o.config.model_dir = "elsewhere";
  refuses("but with different values", [&] { linear_regressor{o}; });
}

TEST_CASE("canned_estimator: names of classes") {
  testing::temp_dir dir;
  dnn_classifier e({.feature_columns = {numeric_column("x")}, .n_classes = 3, .model_dir = dir.path()});
  CHECK(e.class_names() == std::vector<std::string>{"0", "1", "2"});
  const examples two{{1, 2}, {0, 0}, {}};
  for (const prediction& p : e.predict(two, {.yield_single_examples = false}))
    refuses("class_of: expected the prediction of one example", [&] { e.class_of(p); });
  for (const prediction& p : e.predict(two, {.predict_keys = {"logits"}})) refuses("class_ids", [&] { e.class_of(p); });
}

TEST_CASE("canned_estimator: what an exported model is fed with") {
  testing::temp_dir dir;
  const auto town = categorical_column_with_hash_bucket("town", 5);
  linear_classifier e({.feature_columns = {numeric_column("x"), town}, .model_dir = dir.path()});
  graph g(mode::predict);
  const serving_input in = e.serving()(g);
  CHECK(in.features.names() == std::vector<std::string>{"town/ids", "x"});
  CHECK((in.features["town/ids"].type() == int64 && in.features["x"].dims() == shape{batch, 1}));
}
