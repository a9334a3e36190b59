// From a file to a trained model by feature columns: csv, padded_batch, map, trainer. Compiled and interpreted models
// agree to the bit, and what the graph looked up is what the columns look up by themselves.
// costs: 300
#include <gradus/columns/feature_layers.hpp>
#include <gradus/input/combinators.hpp>
#include <gradus/input/csv.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/ops/model.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/trainer.hpp>
#include <gradus/update/multi.hpp>
#include <gradus/update/rules/adagrad.hpp>
#include <gradus/update/rules/ftrl.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>

namespace {
using namespace gradus;

constexpr const char* cities[] = {"basel", "bern", "chur", "genf"};
// Who lives where they do not want to: basel and chur please one sex, the others the other; under 30 it is turned. Only
// the three features together say it.
bool pleased(int city, bool m, int age) { return ((city % 2 == 0) == m) != (age < 30); }

std::string drawn_people(const testing::temp_dir& dir, int n) {
  std::uint32_t state = 7;
  const auto below = [&](std::uint32_t most) {
    state = state * 1664525u + 1013904223u;
    return static_cast<int>((state >> 10) % most);
  };
  const std::string path = dir / "people.csv";
  std::ofstream out(path);
  for (int i = 0; i < n; ++i) {
    const int city = below(4), age = 18 + below(50);
    const bool m = below(2) == 1;
    out << cities[city] << ',' << (m ? "m" : "f") << ',' << age << ',' << (pleased(city, m, age) ? 1 : 0) << '\n';
  }
  return path;
}

const auto city = categorical_column_with_vocabulary_list("city", {"basel", "bern", "chur", "genf"});
const auto sex = categorical_column_with_vocabulary_list("sex", {"f", "m"});
const bucketized_column young(numeric_column("age"), {30});
const feature_layout columns({.input_layer = {numeric_column("age", {.normalizer_fn = [](float v) { return v / 68; }}),
                                              embedding_column(city, 3), embedding_column(sex, 2, {.max_norm = 2})},
                              .linear_model = {city, crossed_column({"city", "sex", young}, 1000)},
                              .keep = {{"label", float32, {}}}});

auto people(const std::string& path) {
  return csv(path, {{"city", uint8, {any_extent}}, {"sex", uint8, {any_extent}}, {"age", float32}, {"label", float32}})
      .padded_batch(50)
      .map(columns.parts(), columns, {.parallel = 2});
}

// The same model twice: of the columns, and of names and sizes, so that the compiler can build it.
const auto by_columns = [](graph& g) {
  const value deep = input_layer(g, columns), wide = linear_model(g, columns),
              label = g.placeholder("label", {batch, 1});
  const value logits = wide + dense(deep, {.units = 1, .name = "head"});
  return model_spec{.loss = reduce_mean(sigmoid_cross_entropy_with_logits(logits, label)),
                    .predictions = {{"probability", sigmoid(logits)}, {"deep", deep}}};
};
constexpr auto by_hand = [](graph& g) {
  const value age = g.placeholder("age", {batch, 1}), cities = g.placeholder("city/ids", {batch, 1}, int64),
              sexes = g.placeholder("sex/ids", {batch, 1}, int64),
              crosses = g.placeholder("age_bucketized_X_city_X_sex/ids", {batch, 1}, int64),
              label = g.placeholder("label", {batch, 1});
  value deep, wide;
  {
    const auto scope = g.name_scope("input_layer");
    const value c = sparse_embedding(cities, {.name = "city_embedding", .num_buckets = 4, .dimension = 3}),
                s = sparse_embedding(sexes, {.name = "sex_embedding", .num_buckets = 2, .dimension = 2, .max_norm = 2});
    deep = concat({age, c, s}, 1);
  }
  {
    const auto scope = g.name_scope("linear_model");
    const value x = sparse_linear(crosses, {.name = "age_bucketized_X_city_X_sex", .num_buckets = 1000}),
                c = sparse_linear(cities, {.name = "city", .num_buckets = 4});
    wide = x + c + g.variable("bias_weights", {1}, {.init = zeros});
  }
  const value logits = wide + dense(deep, {.units = 1, .name = "head"});
  return model_spec{.loss = reduce_mean(sigmoid_cross_entropy_with_logits(logits, label)),
                    .predictions = {{"probability", sigmoid(logits)}, {"deep", deep}}};
};

struct outcome {
  double loss = 0;
  std::vector<float> probability, deep;
  std::vector<float> cities, sexes;  // the tables
};
outcome trained(auto trainer, const std::string& path) {
  trainer.train(people(path).repeat(), {.max_steps = 300});
  outcome out;
  out.loss = trainer.evaluate(people(path))["loss"];
  trainer.predict(people(path), [&](const predictions& p) {
    const auto probability = p["probability"].template as<float>(), deep = p["deep"].template as<float>();
    out.probability.insert(out.probability.end(), probability.begin(), probability.end());
    out.deep.insert(out.deep.end(), deep.begin(), deep.end());
  });
  auto& variables = trainer.steps().variables();
  const auto table = [&](std::string_view name, std::size_t n) {
    const auto* first = reinterpret_cast<const float*>(variables.value(static_cast<std::size_t>(variables.find(name))));
    return std::vector<float>(first, first + n);
  };
  out.cities = table("input_layer/city_embedding/embedding_weights", 12);
  out.sexes = table("input_layer/sex_embedding/embedding_weights", 4);
  return out;
}
}  // namespace

TEST_CASE("columns from a file to a trained model, wide and deep, compiled and interpreted") {
  const testing::temp_dir dir;
  const std::string path = drawn_people(dir, 400);
  // As TensorFlow's DNNLinearCombined models: FTRL for the wide part, Adagrad for the deep one.
  const multi rules{on{named{"linear_model/"}, ftrl{.rate = 0.2}}, adagrad{.rate = 0.1}};
  const outcome a = trained(make_trainer(by_columns, rules), path), b = trained(make_trainer<by_hand>(rules), path);
  CHECK(a.loss < 0.2);
  CHECK(a.loss == b.loss);
  CHECK(a.probability == b.probability);
  CHECK(a.deep == b.deep);
  CHECK(a.cities == b.cities);
  int right = 0, n = 0;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line); ++n)
    right += (a.probability[static_cast<std::size_t>(n)] > 0.5f) == (line.back() == '1') ? 1 : 0;
  CHECK(n == 400);
  CHECK(right == 400);

  // Outside of a graph.
  const feature_columns rows(columns.input_layer());
  features first(2);
  file.clear(), file.seekg(0);
  feature f_city{.name = "city", .kind = feature_kind::text, .dims = {1}},
      f_sex{.name = "sex", .kind = feature_kind::text, .dims = {1}}, f_age{.name = "age", .dims = {1}};
  for (int i = 0; i < 2; ++i) {
    std::string part;
    std::getline(file, part, ','), f_city.texts.push_back(part);
    std::getline(file, part, ','), f_sex.texts.push_back(part);
    std::getline(file, part, ','), f_age.floats.push_back(std::stof(part));
    std::getline(file, part);
  }
  first.add(f_city), first.add(f_sex), first.add(f_age);
  const auto looked_up = rows.dense(first, [&](const embedding_column& c) {
    return c.name() == "city_embedding" ? embedding_table(a.cities, 4, 3) : embedding_table(a.sexes, 2, 2);
  });
  REQUIRE(looked_up.size() == 12);
  for (std::size_t i = 0; i < 12; ++i) CHECK(std::fabs(looked_up[i] - a.deep[i]) < 1e-6f);
}
