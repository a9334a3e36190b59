// costs: 300
// What crosses an estimator, interpreted and compiled: threads, dropout by mode, a warm start to more words that is
// killed and resumed.
#include <gradus/estimator.hpp>
#include <gradus/estimator/compiled_estimator.hpp>
#include <gradus/gradus.hpp>
#include <gradus/run/optimizer.hpp>
#include <gradus/run/pool.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "../train/run_files.hpp"

using namespace gradus;

namespace {

// A class of four by 24 numbers: products large enough that threads divide them.
constexpr int examples = 96, inputs = 24, hidden = 160;
struct drawn_numbers {
  std::vector<float> x;
  std::vector<std::int32_t> y;
  drawn_numbers() {
    random_stream r{7, 0};
    for (int i = 0; i < examples; ++i) {
      for (int k = 0; k < inputs; ++k) x.push_back(static_cast<float>(2 * r.uniform() - 1));
      y.push_back(static_cast<std::int32_t>(r.uniform() * 4));
    }
  }
};
const drawn_numbers drawn;
auto once_through() { return from_spans("x", drawn.x, extents{inputs}, "y", drawn.y).batch(48); }
auto endless() { return from_spans("x", drawn.x, extents{inputs}, "y", drawn.y).repeat().batch(48); }

constexpr value logits_of(value x, double rate) {
  const value h = relu(dense(x, {.units = hidden, .name = "hidden"}));
  return dense(rate > 0 ? dropout(h, rate) : h, {.units = 4, .name = "out"});
}
inline constexpr auto with_dropout = [](graph& g) {
  const value x = g.placeholder("x", {batch, inputs}), y = g.placeholder("y", {batch}, int32);
  const value logits = logits_of(x, 0.5);
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, y)),
                    .metrics = {{"accuracy", metrics::accuracy(y, logits)}},
                    .predictions = {{"logits", logits}}};
};
estimator_spec spec_of(const named_tensors& f, value y, mode m, double rate) {
  const value logits = logits_of(f["x"], rate);
  estimator_spec spec{.mode = m, .predictions = {{"logits", logits}}};
  if (m == mode::predict) return spec;
  spec.loss = reduce_mean(sparse_softmax_cross_entropy(logits, y));
  spec.eval_metric_ops = {{"accuracy", metrics::accuracy(y, logits)}};
  optimizer opt{adam{.rate = 0.01}};
  if (m == mode::train)
    spec.train_op = opt.minimize(spec.loss, {.global_step = get_global_step(f.of())}), spec.optimizers = opt;
  return spec;
}
estimator interpreted(const std::string& dir, session_maker sessions = nullptr, double rate = 0.5) {
  return estimator([rate](const named_tensors& f, value y, mode m) -> estimator_spec { return spec_of(f, y, m, rate); },
                   {.model_dir = dir, .sessions = std::move(sessions)});
}
estimator_input labelled_once() { return labelled(once_through(), {"y"}); }

template <class Estimator, class InputFn>
std::vector<float> logits(Estimator& e, InputFn input) {
  std::vector<float> all;
  for (const prediction& p : e.predict(input)) {
    const auto row = p["logits"].template as<float>();
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}
struct outcome {
  run_files::content checkpoint;
  double loss = 0, accuracy = 0;
  std::vector<float> logits;
};
void check_same(const outcome& a, const outcome& b) {
  CHECK(run_files::difference(a.checkpoint, b.checkpoint) == "");
  CHECK((a.loss == b.loss && a.accuracy == b.accuracy));
  CHECK(a.logits == b.logits);
}
outcome of_interpreted(session_maker sessions) {
  testing::temp_dir dir;
  estimator e = interpreted(dir.path(), std::move(sessions));
  e.train([] { return labelled(endless(), {"y"}); }, {.steps = 6});
  const auto found = e.evaluate(labelled_once);
  return {run_files::newest_checkpoint(posix{}, dir.path()), found["loss"], found["accuracy"],
          logits(e, labelled_once)};
}
template <class... Policies>
outcome of_compiled(const Policies&... policies) {
  testing::temp_dir dir;
  auto e = make_estimator<with_dropout>(adam{.rate = 0.01}, run_config{.model_dir = dir.path()}, silent{}, policies...);
  e.train(endless, {.steps = 6});
  const auto found = e.evaluate(once_through);
  return {run_files::newest_checkpoint(posix{}, dir.path()), found["loss"], found["accuracy"], logits(e, once_through)};
}

}  // namespace

TEST_CASE("an estimator on threads trains, evaluates and predicts the bits of one thread") {
  const outcome one = of_interpreted(nullptr);
  CHECK(one.checkpoint.step == 6);
  CHECK(one.logits.size() == examples * 4);
  worker_pool pool(3);
  check_same(of_interpreted(estimator_sessions(threads{3})), one);
  check_same(of_interpreted(estimator_sessions(threads_on(pool))), one);
  const outcome compiled = of_compiled();
  check_same(of_compiled(threads{3}), compiled);
  check_same(of_compiled(threads_on(pool)), compiled);
  // Both estimators are one model; a session's step keeps more beside it.
  CHECK(compiled.logits == one.logits);
  CHECK(compiled.accuracy == one.accuracy);
  CHECK(compiled.loss == doctest::Approx(one.loss));  // means over examples, and over batches
}

TEST_CASE("dropout is of training alone: evaluations and predictions use all of the layer, whatever was trained") {
  testing::temp_dir dir, plain_dir, compiled_dir;
  estimator e = interpreted(dir.path()), plain = interpreted(plain_dir.path(), nullptr, 0);
  const auto input = [] { return labelled(endless(), {"y"}); };
  e.train(input, {.steps = 5}), plain.train(input, {.steps = 5});
  auto c = make_estimator<with_dropout>(adam{.rate = 0.01}, run_config{.model_dir = compiled_dir.path()}, silent{});
  c.train(endless, {.steps = 5});
  const auto kernel = e.get_variable_value("hidden/kernel");
  CHECK(std::memcmp(kernel.data, plain.get_variable_value("hidden/kernel").data, kernel.size_bytes()) != 0);

  // By hand, in double precision.
  const auto at = [&](const char* name) { return e.get_variable_value(name); };
  const auto bias = at("hidden/bias"), top = at("out/kernel"), last = at("out/bias");
  std::vector<double> expected;
  double loss = 0;
  for (std::size_t i = 0; i < examples; ++i) {
    std::vector<double> h(hidden), out(4);
    for (std::size_t u = 0; u < hidden; ++u) {
      double sum = static_cast<double>(bias.as<float>()[u]);
      for (std::size_t k = 0; k < inputs; ++k)
        sum += static_cast<double>(drawn.x[i * inputs + k]) * static_cast<double>(kernel.as<float>()[k * hidden + u]);
      h[u] = std::max(sum, 0.0);
    }
    double all = 0;
    for (std::size_t o = 0; o < 4; ++o) {
      out[o] = static_cast<double>(last.as<float>()[o]);
      for (std::size_t u = 0; u < hidden; ++u) out[o] += h[u] * static_cast<double>(top.as<float>()[u * 4 + o]);
      all += std::exp(out[o]);
      expected.push_back(out[o]);
    }
    loss += std::log(all) - out[static_cast<std::size_t>(drawn.y[i])];
  }
  const auto check = [&](const std::vector<float>& found) {
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      CHECK(static_cast<double>(found[i]) == doctest::Approx(expected[i]).epsilon(1e-4));
  };
  const auto first = logits(e, labelled_once), again = logits(e, labelled_once);
  check(first);
  CHECK(first == again);  // nothing is drawn
  CHECK(logits(c, once_through) == first);
  const auto found = e.evaluate(labelled_once);
  CHECK(found["loss"] == doctest::Approx(loss / examples));
  CHECK(e.evaluate(labelled_once)["loss"] == found["loss"]);
  CHECK(c.evaluate(once_through)["loss"] == doctest::Approx(loss / examples));
  // Neither moved the random stream: training goes on with the bits of one that nobody asked.
  testing::temp_dir quiet_dir;
  estimator quiet = interpreted(quiet_dir.path());
  quiet.train(input, {.steps = 5});
  for (estimator* one : {&e, &quiet}) one->train(input, {.steps = 3});
  CHECK(run_files::difference(run_files::newest_checkpoint(posix{}, dir.path()),
                              run_files::newest_checkpoint(posix{}, quiet_dir.path())) == "");
}

namespace {
// Towns of people, of which a first model knows two and a second four.
const std::vector<std::uint8_t> towns{'u', 'l', 'm', 0,   'b', 'e', 'r', 'n', 'g', 'r', 'a', 'z',
                                      'r', 'o', 'm', 'e', 'b', 'e', 'r', 'n', 'o', 's', 'l', 'o'};
const std::vector<float> ages{20, 30, 40, 50, 60, 70}, incomes{1, 3, 2, 5, 4, 2};
estimator_input people() {
  return labelled(from_spans("town", towns, extents{4}, "age", ages, extents{}, "y", incomes).repeat().batch(6), {"y"});
}
void write_lines(const std::string& path, const std::vector<std::string>& lines) {
  std::string all;
  for (const auto& line : lines) all += line + "\n";
  publish(posix{}, path, all);
}
dnn_linear_combined_regressor regressor(const std::string& vocabulary, const std::string& dir, double rate,
                                        const estimator_warm_start& start = {}) {
  const auto town = categorical_column_with_vocabulary_file("town", vocabulary, {.num_oov_buckets = 1});
  const numeric_column age("age", {.normalizer_fn = [](float v) { return v / 50; }});
  return dnn_linear_combined_regressor({.linear_feature_columns = {town, age},
                                        .linear_optimizer = adagrad{.rate = rate},
                                        .dnn_feature_columns = {embedding_column(town, 3), age},
                                        .dnn_optimizer = adam{.rate = rate},
                                        .dnn_hidden_units = {4},
                                        .dnn_dropout = 0.25,
                                        .model_dir = dir,
                                        .config = {.save_checkpoints_steps = 2},
                                        .warm_start_from = start});
}
struct killed {};
struct kills {
  std::int64_t at;
  std::int64_t runs = 0;
  void after_run(run_context&, const run_values&) {
    if (++runs == at) throw killed();
  }
};
constexpr const char *wide = "linear/linear_model/town/weights",
                     *deep = "dnn/input_from_feature_columns/input_layer/town_embedding/embedding_weights";
}  // namespace

TEST_CASE(
    "a warm start to a larger vocabulary, killed at any step and resumed, ends with the bits of an undisturbed one") {
  testing::temp_dir place;
  const std::string two = place / "two.txt", four = place / "four.txt";
  write_lines(two, {"bern", "ulm"}), write_lines(four, {"graz", "ulm", "rome", "bern"});
  auto old = regressor(two, place / "old", 0.05);
  old.train(people, {.steps = 10});
  const auto rows = [](const estimator& e, const char* name) {
    const auto v = e.get_variable_value(name);
    const auto width = static_cast<std::size_t>(v.dims[1]);
    std::vector<std::vector<float>> all;
    for (std::size_t i = 0; i < static_cast<std::size_t>(v.dims[0]); ++i)
      all.emplace_back(v.as<float>().begin() + static_cast<std::ptrdiff_t>(i * width),
                       v.as<float>().begin() + static_cast<std::ptrdiff_t>((i + 1) * width));
    return all;
  };
  const vocab_info more{.new_vocab = four, .new_vocab_size = 4, .num_oov_buckets = 1, .old_vocab = two};
  const warm_start_settings start{.ckpt_to_initialize_from = place / "old",
                                  .var_name_to_vocab_info = {{wide, more}, {deep, more}}};
  // Rows of words that both know have moved along.
  auto still = regressor(four, place / "still", 0, start);
  still.train(people, {.steps = 1});
  for (const char* name : {wide, deep}) {
    const auto before = rows(old, name), after = rows(still, name);
    REQUIRE((before.size() == 3 && after.size() == 5));
    CHECK((after[3] == before[0] && after[1] == before[1]));
  }
  CHECK(std::memcmp(still.get_variable_value("dnn/hiddenlayer_0/kernel").data,
                    old.get_variable_value("dnn/hiddenlayer_0/kernel").data, 6 * sizeof(float)) == 0);

  auto whole = regressor(four, place / "whole", 0.05, start);
  whole.train(people, {.max_steps = 8});
  const auto expected = run_files::newest_checkpoint(posix{}, place / "whole");
  REQUIRE(expected.step == 8);
  for (std::int64_t at = 1; at < 8; ++at) {
    const std::string dir = place / text("killed-", at);
    {
      auto first = regressor(four, dir, 0.05, start);
      CHECK_THROWS_AS(first.train(people, {.max_steps = 8, .hooks = {kills{at}}}), killed);
    }
    CHECK(run_files::newest_checkpoint(posix{}, dir).step < 8);
    // What was trained counts from here on, and the source of the warm start does not have to be there.
    auto second = regressor(four, dir, 0.05, warm_start_settings{.ckpt_to_initialize_from = place / "gone"});
    second.train(people, {.max_steps = 8});
    CHECK(run_files::difference(run_files::newest_checkpoint(posix{}, dir), expected) == "");
  }
}
