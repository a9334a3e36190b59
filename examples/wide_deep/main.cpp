// Wide and deep (Cheng et al. 2016, arXiv:1606.07792): embeddings generalize, crossed features remember exceptions, and
// a model of both does both. From CSV files to trained models by feature columns; docs/feature_columns.md explains it.
//
// Whether somebody likes a town is drawn: a taste that job and town share, turned for some pairs, and less with age.
#include <cstdio>
#include <fstream>
#include <gradus/columns/feature_layers.hpp>
#include <gradus/input/combinators.hpp>
#include <gradus/input/csv.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/ops/model.hpp>
#include <gradus/train/trainer.hpp>
#include <gradus/update/multi.hpp>
#include <gradus/update/rules/adagrad.hpp>
#include <gradus/update/rules/ftrl.hpp>
#include <string>

using namespace gradus;

namespace {

constexpr int jobs = 40, towns = 30;

struct drawn_world {
  random_stream random{5};
  double taste[jobs][3], charm[towns][3];
  bool turned[jobs][towns];
  drawn_world() {
    for (auto& t : taste)
      for (double& v : t) v = random.uniform() - 0.5;
    for (auto& c : charm)
      for (double& v : c) v = random.uniform() - 0.5;
    for (auto& row : turned)
      for (bool& t : row) t = random.uniform() < 0.15;
  }
  int below(int n) { return static_cast<int>(random.uniform() * n); }
  void write(const std::string& path, int people) {
    std::ofstream out(path);
    out << "job,town,age,likes\n";
    for (int i = 0; i < people; ++i) {
      const int job = below(jobs), town = below(towns), age = 18 + below(60);
      double liking = 0.1 - 0.002 * age;
      for (int k = 0; k < 3; ++k) liking += taste[job][k] * charm[town][k];
      out << "job" << job << ",town" << town << ',' << age << ',' << ((liking > 0) != turned[job][town] ? 1 : 0)
          << '\n';
    }
  }
};

auto people(const std::string& path, const feature_layout& columns) {
  return csv(path, {{"job", uint8, {any_extent}}, {"town", uint8, {any_extent}}, {"age"}, {"likes"}}, {.header = true})
      .padded_batch(100)
      .map(columns.parts(), columns);
}

// Accuracy on people that were not seen. A layer without columns takes no part.
double accuracy_of(const feature_layout& columns, const std::string& dir) {
  const auto model = [&columns](graph& g) {
    const value likes = g.placeholder("likes", {batch, 1});
    value logits;
    if (!columns.linear_model().empty()) logits = linear_model(g, columns);
    if (!columns.input_layer().empty()) {
      const value hidden = relu(dense(input_layer(g, columns), {.units = 32, .name = "hidden"}));
      const value deep = dense(hidden, {.units = 1, .name = "logits"});
      logits = logits ? logits + deep : deep;
    }
    const value right = cast(equal(cast(greater(logits, 0), float32), likes), float32);
    return model_spec{.loss = reduce_mean(sigmoid_cross_entropy_with_logits(logits, likes)),
                      .metrics = {{"accuracy", metrics::mean(right)}}};
  };
  // As TensorFlow's DNNLinearCombinedClassifier: FTRL for the wide part, Adagrad for the deep one.
  auto trainer =
      make_trainer(model, multi{on{named{"linear_model/"}, ftrl{.rate = 0.2, .l1 = 0.01}}, adagrad{.rate = 0.1}});
  trainer.train(people(dir + "/train.csv", columns).repeat(), {.max_steps = 2000});
  return trainer.evaluate(people(dir + "/test.csv", columns))["accuracy"];
}

}  // namespace

int main(int argc, char** argv) {
  const std::string dir = argc > 1 ? argv[1] : "runs/wide_deep";
  try {
    make_directories(posix{}, dir);
    drawn_world world;
    world.write(dir + "/train.csv", 10000);
    world.write(dir + "/test.csv", 4000);
    std::ofstream vocabulary(dir + "/jobs.txt");
    for (int i = 0; i < jobs; ++i) vocabulary << "job" << i << '\n';
    vocabulary.close();

    const auto job = categorical_column_with_vocabulary_file("job", dir + "/jobs.txt", {.num_oov_buckets = 1});
    const auto town = categorical_column_with_hash_bucket("town", 100);
    const numeric_column age("age", {.normalizer_fn = [](float v) { return (v - 48) / 17; }});
    const bucketized_column decade(numeric_column("age"), {30, 40, 50, 60, 70});
    const std::vector<dense_column> deep{embedding_column(job, 8), embedding_column(town, 8), age};
    const std::vector<linear_column> wide{job, town, decade, crossed_column({"job", "town"}, 5000)};
    const components keep{{"likes", float32, {}}};

    const double w = accuracy_of(feature_layout({.linear_model = wide, .keep = keep}), dir),
                 d = accuracy_of(feature_layout({.input_layer = deep, .keep = keep}), dir),
                 both = accuracy_of(feature_layout({.input_layer = deep, .linear_model = wide, .keep = keep}), dir);
    std::printf("accuracy on new people: wide %.1f%%, deep %.1f%%, wide and deep %.1f%%\n", 100 * w, 100 * d,
                100 * both);
    return both > w && both > d ? 0 : 1;
  } catch (const error& e) {
    std::fprintf(stderr, "wide_deep: %s\n", e.what());
    return 1;
  }
}
