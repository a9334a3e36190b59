#include <gradus/estimator/export_output.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace gradus;

TEST_CASE("the three kinds of signatures have TensorFlow Serving's names and keys") {
  graph g;
  const value scores = g.placeholder("scores", {batch, 3}), classes = g.placeholder("classes", {batch}, int32);
  const export_output c = classification_output(scores, classes), r = regression_output(scores),
                      p = predict_output({{"a", classes}, {"b", scores}}), single = predict_output(scores);
  CHECK(c.method_name == "tensorflow/serving/classify");
  CHECK(c.outputs.names() == std::vector<std::string>{"scores", "classes"});
  CHECK(classification_output({}, classes).outputs.names() == std::vector<std::string>{"classes"});
  CHECK(r.method_name == "tensorflow/serving/regress");
  CHECK(r.outputs["outputs"].id == scores.id);
  CHECK(p.method_name == "tensorflow/serving/predict");
  CHECK(p.outputs.names() == std::vector<std::string>{"a", "b"});
  CHECK(single.outputs["output"].id == scores.id);
  CHECK_THROWS_AS(classification_output({}, {}), invalid_argument);
  CHECK_THROWS_AS(classification_output(classes), invalid_argument);
  CHECK_THROWS_AS(regression_output(classes), invalid_argument);
  CHECK_THROWS_AS(regression_output({}), invalid_argument);
  CHECK_THROWS_AS(predict_output({}), invalid_argument);
}
