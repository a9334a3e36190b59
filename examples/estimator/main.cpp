// A canned estimator from CSV files to a model that is continued with more words: wide and deep (Cheng et al. 2016,
// arXiv:1606.07792) on people as a census counts them. docs/canned.md explains it.
//
//   build/demo/bin/estimator [directory]       runs/estimator unless told; what it held is deleted
//   tensorboard --logdir runs/estimator
//
// The people are drawn: an income grows with education, hours and the occupation, with age up to 50; some occupations
// pay only those who have studied. At first the model knows six of the ten occupations, all others are one more.
// Then a second model knows all ten, and begins with what the first has learned.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gradus/data.hpp>
#include <gradus/estimator.hpp>
#include <string>
#include <vector>

using namespace gradus;

namespace {

const std::vector<std::string> occupations{"clerk",  "farmer", "teacher", "nurse", "driver",
                                           "lawyer", "cook",   "surgeon", "guard", "broker"};
const std::vector<std::string> schools{"primary", "secondary", "bachelor", "master"};

void draw_people(const std::string& path, int n, std::uint64_t seed) {
  random_stream random(seed);
  const auto below = [&](int limit) { return static_cast<int>(random.uniform() * limit); };
  const double pay[]{-0.6, -1.2, 0.0, -0.2, -0.9, 1.4, -1.0, 2.0, -0.7, 1.1};
  std::ofstream out(path);
  out << "age,education,occupation,hours,income\n";
  for (int i = 0; i < n; ++i) {
    const int age = 18 + below(50), school = below(4), job = below(10), hours = 20 + below(41);
    const bool asks_for_more = job == 5 || job == 7;  // a lawyer and a surgeon have studied, or earn little
    double score = pay[job] + 0.5 * (school - 1.5) + 0.05 * (hours - 40) - 0.003 * (age - 50) * (age - 50) + 0.5;
    if (asks_for_more && school < 2) score -= 3;
    const bool much = random.uniform() < 1 / (1 + std::exp(-2 * score));
    out << age << ',' << schools[static_cast<std::size_t>(school)] << ',' << occupations[static_cast<std::size_t>(job)]
        << ',' << hours << ',' << (much ? ">50K" : "<=50K") << '\n';
  }
}

void write_vocabulary(const std::string& path, std::size_t known) {
  std::ofstream out(path);
  for (std::size_t i = 0; i < known; ++i) out << occupations[i] << '\n';
}

auto people(const std::string& path) {
  return csv(path,
             {{"age"},
              {"education", uint8, {any_extent}},
              {"occupation", uint8, {any_extent}},
              {"hours"},
              {"income", uint8, {any_extent}}},
             {.header = true});
}

// The model of so many known occupations.
dnn_linear_combined_classifier classifier(const std::string& vocabulary, const std::string& model_dir,
                                          const estimator_warm_start& start = {}) {
  const auto job = categorical_column_with_vocabulary_file("occupation", vocabulary, {.num_oov_buckets = 1});
  const auto school = categorical_column_with_vocabulary_list("education", schools);
  const bucketized_column decade(numeric_column("age"), {25, 30, 35, 40, 45, 50, 55, 60});
  const numeric_column hours("hours", {.normalizer_fn = [](float v) { return (v - 40) / 12; }});
  return dnn_linear_combined_classifier(
      {.linear_feature_columns = {job, school, decade, crossed_column({job, "education"}, 500)},
       .linear_optimizer = ftrl{.rate = 0.05},
       .dnn_feature_columns = {embedding_column(job, 4), indicator_column(school), decade, hours},
       .dnn_optimizer = adagrad{.rate = 0.02},
       .dnn_hidden_units = {32, 16},
       .label_vocabulary = {"<=50K", ">50K"},
       .model_dir = model_dir,
       .config = {.tf_random_seed = 1, .save_checkpoints_steps = 500},
       .warm_start_from = start});
}

}  // namespace

int main(int argc, char** argv) {
  const std::string dir = argc > 1 ? argv[1] : "runs/estimator";
  try {
    std::filesystem::remove_all(dir);
    std::filesystem::create_directories(dir);
    draw_people(dir + "/train.csv", 10000, 1), draw_people(dir + "/test.csv", 4000, 2);
    write_vocabulary(dir + "/six.txt", 6), write_vocabulary(dir + "/ten.txt", 10);

    const train_spec training(
        [&] { return labelled(people(dir + "/train.csv").shuffle(10000, 3).repeat().padded_batch(100), {"income"}); },
        {.max_steps = 1500});
    const auto tests = [&] { return labelled(people(dir + "/test.csv").padded_batch(100), {"income"}); };
    const eval_spec evaluating(tests, {.steps = {}, .throttle_secs = 0});

    auto first = classifier(dir + "/six.txt", dir + "/six");
    const auto six = train_and_evaluate(first, training, evaluating).metrics;
    std::printf("six occupations:  accuracy %.3f, auc %.3f after %lld steps (always the same: %.3f)\n", six["accuracy"],
                six["auc"], static_cast<long long>(six.global_step()), six["accuracy_baseline"]);

    // Rows of the old vocabulary go where the new one has their words; new words begin with zeros, as "others" do.
    const vocab_info more{
        .new_vocab = dir + "/ten.txt", .new_vocab_size = 10, .num_oov_buckets = 1, .old_vocab = dir + "/six.txt"};
    auto second = classifier(
        dir + "/ten.txt", dir + "/ten",
        warm_start_settings{
            .ckpt_to_initialize_from = dir + "/six",
            .var_name_to_vocab_info = {
                {"linear/linear_model/occupation/weights", more},
                {"dnn/input_from_feature_columns/input_layer/occupation_embedding/embedding_weights", more}}});
    const auto begin = second.evaluate(tests);  // nothing is trained yet
    const auto ten = train_and_evaluate(second, training, evaluating).metrics;
    std::printf("ten, to begin:    accuracy %.3f, auc %.3f\n", begin["accuracy"], begin["auc"]);
    std::printf("ten occupations:  accuracy %.3f, auc %.3f after %lld steps\n", ten["accuracy"], ten["auc"],
                static_cast<long long>(ten.global_step()));
    int shown = 0;
    for (const prediction& p : second.predict(tests)) {
      std::printf("  %-6s with probability %.2f\n", second.class_of(p).c_str(),
                  static_cast<double>(
                      p["probabilities"].as<float>()[static_cast<std::size_t>(p["class_ids"].as<std::int64_t>()[0])]));
      if (++shown == 3) break;
    }
    std::printf("tensorboard --logdir %s\n", dir.c_str());
    const bool learned = six["accuracy"] > six["accuracy_baseline"] + 0.05 && ten["auc"] > six["auc"] + 0.005,
               began_well = begin["accuracy"] > begin["accuracy_baseline"] + 0.03;
    return learned && began_well ? 0 : 1;
  } catch (const error& e) {
    std::fprintf(stderr, "estimator: %s\n", e.what());
    return 1;
  }
}
