#include <gradus/estimator/compiled_estimator.hpp>

#include <gradus/gradus.hpp>
#include <gradus/ops/metric.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "../train/run_files.hpp"

using namespace gradus;

namespace {
inline constexpr auto line = [](graph& g) {
  const value x = g.placeholder("x", {batch, 1}), y = g.placeholder("y", {batch, 1});
  const value found = dense(x, {.units = 1, .name = "out"});
  const value loss = reduce_mean(square(found - y));
  return model_spec{.loss = loss,
                    .metrics = {{"mean", metrics::mean(found)}},
                    .predictions = {{"y", found}, {"twice", found + found}}};
};
const std::vector<float> x{1, 2, 3, 4, 5}, y{3, 5, 7, 9, 11};
auto data() { return from_spans("x", x, extents{1}, "y", y, extents{1}).batch(2); }
auto endless() { return from_spans("x", x, extents{1}, "y", y, extents{1}).repeat().batch(2); }
}  // namespace

TEST_CASE("the bits of a trainer with the same policies") {
  testing::temp_dir dir, other;
  auto e = make_estimator<line>(adam{.rate = 0.1}, run_config{.model_dir = dir.path(), .tf_random_seed = 3});
  e.train(endless, {.steps = 20}).train(endless, {.max_steps = 50});
  auto t = make_trainer<line>(adam{.rate = 0.1}, run_config{.model_dir = other.path(), .tf_random_seed = 3});
  auto batches = endless();
  t.train(batches, {.max_steps = 20});
  auto again = endless();
  t.train(again, {.max_steps = 50});
  CHECK(run_files::difference(run_files::newest_checkpoint(posix{}, dir.path()),
                              run_files::newest_checkpoint(posix{}, other.path())) == "");
  CHECK(e.get_variable_value("global_step").number() == 50);
  auto last = data();
  const auto expected = t.evaluate(last);
  const auto found = e.evaluate(data);
  CHECK(found["loss"] == expected["loss"]);
  CHECK(found["mean"] == expected["mean"]);
  CHECK(found.global_step() == 50);
  CHECK(e.evaluate(data, {.steps = 1, .name = "first"})["mean"] != found["mean"]);
  CHECK(std::filesystem::is_directory(dir.path() + "/eval_first"));
}

TEST_CASE("predictions: examples, a key, batches; lazily") {
  testing::temp_dir dir;
  auto e = make_estimator<line>(adam{}, run_config{.model_dir = dir.path()});
  e.train(endless, {.steps = 2});
  std::vector<float> all;
  for (const prediction& p : e.predict(data)) {
    CHECK(p["twice"].as<float>()[0] == 2 * p["y"].as<float>()[0]);
    all.push_back(p["y"].as<float>()[0]);
  }
  CHECK(all.size() == 5);  // the last batch has one
  for (const prediction& p : e.predict(data, {.predict_keys = {"y"}})) CHECK(p.size() == 1);
  std::vector<std::int64_t> sizes;
  for (const prediction& p : e.predict(data, {.yield_single_examples = false})) sizes.push_back(p["y"].dims[0]);
  CHECK(sizes == std::vector<std::int64_t>{2, 2, 1});
  int inputs = 0;
  mode asked = mode::train;
  auto later = e.predict([&](mode m) { return ++inputs, asked = m, data(); });
  CHECK(inputs == 0);
  CHECK((*later.begin())["y"].as<float>()[0] == all[0]);
  CHECK(inputs == 1);
  CHECK(asked == mode::predict);
  const auto wrong = [&] { static_cast<void>(e.predict(data, {.predict_keys = {"z"}}).begin()); };
  CHECK_THROWS_WITH_AS(wrong(), "Expected to run at least one output from \"y\", \"twice\", provided \"z\".",
                       invalid_argument);
}

TEST_CASE("steps and max_steps as an estimator's; hooks of a list; until the input ends") {
  testing::temp_dir dir;
  int inputs = 0;
  auto e = make_estimator<line>(adam{}, run_config{.model_dir = dir.path()}, silent{});
  const auto input = [&](const run_config& c) {
    CHECK(c.model_dir == dir.path());
    ++inputs;
    return endless();
  };
  CHECK_THROWS_AS(e.train(input, {.steps = 1, .max_steps = 2}), invalid_argument);
  CHECK_THROWS_AS(e.train(input, {.steps = 0}), invalid_argument);
  CHECK_THROWS_AS(e.evaluate(data, {.steps = -1}), invalid_argument);
  CHECK(inputs == 0);
  e.train(input, {.max_steps = 4});
  e.train(input, {.max_steps = 4});
  CHECK(inputs == 1);
  struct stops {
    void after_run(run_context& c, const run_values& v) {
      if (v.global_step == 6) c.request_stop();
    }
  };
  e.train(input, {.steps = 100, .hooks = {stops{}}});
  CHECK(e.get_variable_value("global_step").number() == 6);
  testing::temp_dir fresh;
  auto until = make_estimator<line>(adam{}, run_config{.model_dir = fresh.path()}, silent{});
  until.train(data);
  CHECK(until.get_variable_value("global_step").number() == 3);
  CHECK(until.get_variable_names().size() > 3);
}
