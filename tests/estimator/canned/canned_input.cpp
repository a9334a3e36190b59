#include <gradus/estimator/canned/canned_input.hpp>

#include "canned_run.hpp"

#include <gradus/columns/feature_layers.hpp>
#include <gradus/estimator/binary_class_head.hpp>
#include <gradus/estimator/multi_class_head.hpp>
#include <gradus/estimator/regression_head.hpp>

using namespace gradus;
using namespace canned_test;

namespace {
const std::vector<float> ages{20, 30, 40}, weights{1, 2, 3};
const std::vector<std::uint8_t> words{'n', 'o', 0, 'y', 'e', 's', 'n', 'o', 0};
const feature_layout_settings age{.input_layer = {numeric_column("age")}};

// The first batch that comes out.
datum read_by(const any_head& head, const feature_layout_settings* layout, auto data,
              const std::vector<std::string>& labels, mode m = mode::train) {
  auto in = canned_input(labelled(data.batch(3), labels), m, layout, head);
  datum d;
  const bool found = in.batches.next(d);
  REQUIRE(found);
  return d;
}
std::vector<std::string> names(const datum& d) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < d.size(); ++i) all.push_back(d.about(i).name);
  return all;
}
}  // namespace

TEST_CASE("canned_input: columns, weights as they are, labels of texts as numbers; nothing else") {
  const any_head head = binary_class_head({.weight_column = "w", .label_vocabulary = {"yes", "no"}});
  const auto data = from_spans("age", ages, extents{}, "word", words, extents{3}, "w", weights);
  const datum d = read_by(head, &age, data, {"word"});
  CHECK(names(d) == std::vector<std::string>{"age", "w", "word"});
  CHECK(read(d["age"]) == std::vector<double>{20, 30, 40});
  CHECK(read(d["w"]) == std::vector<double>{1, 2, 3});
  CHECK((d["word"].type == int64 && read(d["word"]) == std::vector<double>{1, 0, 1}));
  // Mode predict has no use for labels, and does not look at them.
  const any_head other = binary_class_head({.label_vocabulary = {"a", "b"}});
  CHECK(names(read_by(other, &age, data, {"word"}, mode::predict)) == std::vector<std::string>{"age"});
  // Without columns: so many examples.
  const datum rows = read_by(head, nullptr, data, {"word"});
  CHECK(names(rows) == std::vector<std::string>{"examples", "w", "word"});
  CHECK(rows["examples"].dims == extents{3});
}

TEST_CASE("canned_input: weights that are also a numeric column") {
  const any_head head = binary_class_head({.weight_column = "w"});
  const std::vector<std::int32_t> whole{1, 2, 3}, classes{0, 1, 0};
  const auto data = from_spans("w", whole, extents{}, "y", classes);
  const numeric_column plain("w"), scaled("w", {.normalizer_fn = [](float v) { return v / 2; }});
  const feature_layout_settings dense{.input_layer = {plain}}, linear{.linear_model = {plain}};
  const feature_layout_settings other{.input_layer = {scaled}}, ids{.linear_model = {bucketized_column(scaled, {2})}};
  for (const auto* settings : {&dense, &linear}) {
    const datum d = read_by(head, settings, data, {"y"});
    CHECK(names(d) == std::vector<std::string>{"w", "y"});
    CHECK(read(d["w"]) == std::vector<double>{1, 2, 3});
  }
  CHECK(names(read_by(head, &ids, data, {"y"})) == std::vector<std::string>{"w_bucketized/ids", "w", "y"});
  refuses("the weight_column \"w\" is also a numeric_column with a normalizer_fn or a default_value; let a map copy",
          [&] { read_by(head, &other, data, {"y"}); });
}

TEST_CASE("canned_input: labels that are numbers are looked at, and stay what they are") {
  const std::vector<std::int32_t> classes{0, 2, 1};
  const std::vector<double> fractions{0, 0.25, 1};
  const std::vector<float> pairs{1, -2, 3, -4, 5, -6};
  const datum c = read_by(multi_class_head(3), &age, from_spans("age", ages, extents{}, "y", classes), {"y"});
  CHECK((c["y"].type == int32 && read(c["y"]) == std::vector<double>{0, 2, 1}));
  const datum f = read_by(binary_class_head(), &age, from_spans("age", ages, extents{}, "y", fractions), {"y"});
  CHECK((f["y"].type == float64 && read(f["y"]) == std::vector<double>{0, 0.25, 1}));
  const datum p = read_by(regression_head({.label_dimension = 2}), &age,
                          from_spans("age", ages, extents{}, "y", pairs, extents{2}), {"y"});
  CHECK((p["y"].dims == extents{3, 2} && read(p["y"]) == std::vector<double>{1, -2, 3, -4, 5, -6}));
}

TEST_CASE("canned_input: what is refused") {
  const std::vector<std::int64_t> classes{0, 3, 1};
  const std::vector<float> numbers{0, -0.5f, 1}, pairs{0, 1, 1, 0, 1, 2};
  const auto of = [](const any_head& head, auto data, const std::vector<std::string>& labels) {
    return [=] { read_by(head, &age, data, labels); };
  };
  const auto with = [](const auto& y) { return from_spans("age", ages, extents{}, "y", y); };
  refuses("the label \"y\" of example 1 of the batch is 3, expected [0, 2]: there are 3 classes",
          of(multi_class_head(3), with(classes), {"y"}));
  refuses("the label \"y\" of example 1 of the batch is -0.5, expected [0, 1]",
          of(binary_class_head(), with(numbers), {"y"}));
  refuses("the label \"y\" of example 2 of the batch is 2, expected [0, 1]",
          of(binary_class_head(), from_spans("age", ages, extents{}, "y", pairs, extents{2}), {"y"}));
  const any_head texts = binary_class_head({.label_vocabulary = {"yes", "nein"}});
  refuses("Labels dtype should be string if there is a vocabulary. Instead got float32",
          of(texts, with(numbers), {"y"}));
  refuses("example 0 of the batch is \"no\", which the label_vocabulary of 2 texts does not have (",
          of(texts, from_spans("age", ages, extents{}, "y", words, extents{3}), {"y"}));
  refuses("there is no label \"z\"", of(binary_class_head(), with(numbers), {"z"}));
  refuses("the label \"age\" is also what the columns make", of(regression_head(), with(numbers), {"age"}));
}
