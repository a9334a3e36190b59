// A CSV file, feature columns and a deep network that the program builds: interpreted, with the umbrella.
#include <gradus/columns/feature_layers.hpp>
#include <gradus/gradus.hpp>
#include <gradus/input/combinators.hpp>
#include <gradus/input/csv.hpp>

#include <cstdio>

using namespace gradus;

namespace {

feature_layout columns_of(const std::string& dir) {
  const auto workclass = categorical_column_with_vocabulary_file("workclass", dir + "/workclass.txt");
  const auto education = categorical_column_with_hash_bucket("education", 100);
  const auto occupation = categorical_column_with_hash_bucket("occupation", 1000);
  const numeric_column age("age", {.normalizer_fn = [](float v) { return (v - 38) / 14; }});
  const numeric_column hours("hours", {.normalizer_fn = [](float v) { return (v - 40) / 12; }});
  const bucketized_column decade(numeric_column("age"), {20, 30, 40, 50, 60, 70});
  return feature_layout({.input_layer = {embedding_column(workclass, 4), embedding_column(education, 8),
                                         embedding_column(occupation, 8), indicator_column(decade), age, hours},
                         .keep = {{"income", float32, {}}}});
}

auto people(const std::string& path, const feature_layout& columns) {
  return csv(path,
             {{"age"},
              {"workclass", uint8, {any_extent}},
              {"education", uint8, {any_extent}},
              {"occupation", uint8, {any_extent}},
              {"hours"},
              {"income"}},
             {.header = true, .ignore_errors = true})
      .shuffle(10000)
      .padded_batch(128)
      .map(columns.parts(), columns);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string dir = argc > 1 ? argv[1] : "data/census";
  try {
    const auto columns = columns_of(dir);
    const auto network = [&columns](graph& g) {
      const value income = g.placeholder("income", {batch, 1});
      auto hidden = relu(dense(input_layer(g, columns), {.units = 64, .name = "hidden_1"}));
      hidden = relu(dense(dropout(hidden, 0.2f), {.units = 32, .name = "hidden_2"}));
      const auto logits = dense(hidden, {.units = 1, .name = "logits"});
      const auto loss = reduce_mean(sigmoid_cross_entropy_with_logits(logits, income));
      const auto right = cast(equal(cast(greater(logits, 0), float32), income), float32);
      g.summary_scalar("loss", loss);
      return model_spec{.loss = loss,
                        .metrics = {{"accuracy", metrics::mean(right)}},
                        .predictions = {{"probability", sigmoid(logits)}}};
    };
    auto trainer = make_trainer(network, adagrad{.rate = 0.05}, clip_by_global_norm{5.0}, log_lines{},
                                run_config{.model_dir = dir + "/model", .save_checkpoints_steps = 500});
    trainer.train(people(dir + "/train.csv", columns).repeat(), {.max_steps = 5000});
    const auto result = trainer.evaluate(people(dir + "/test.csv", columns));
    std::printf("accuracy %.4f, loss %.4f\n", result["accuracy"], result["loss"]);
    trainer.predict(people(dir + "/new.csv", columns), [](const predictions& p) {
      for (const float v : p["probability"].as<float>()) std::printf("%.3f\n", static_cast<double>(v));
    });
  } catch (const error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
