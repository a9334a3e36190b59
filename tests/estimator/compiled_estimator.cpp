#include <gradus/estimator/compiled_estimator.hpp>

#include <gradus/gradus.hpp>
#include <gradus/ops/metric.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/saved_model.hpp>

#include <doctest/doctest.h>

#include <algorithm>
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

TEST_CASE(
    "a later call of a process reads from the beginning, the first call of another process on from the position") {
  testing::temp_dir dir, other;
  const auto make = [&] {
    return make_estimator<line>(gradient_descent{.rate = 0.01},
                                run_config{.model_dir = dir.path(), .tf_random_seed = 3});
  };
  {
    auto e = make();
    e.train(endless, {.steps = 3}), e.train(endless, {.steps = 3});
  }
  auto again = make();
  again.train(endless, {.steps = 3});
  auto t =
      make_trainer<line>(gradient_descent{.rate = 0.01}, run_config{.model_dir = other.path(), .tf_random_seed = 3});
  auto first = endless(), second = endless();
  t.train(first, {.max_steps = 3});
  t.train(second, {.max_steps = 6}), t.train(second, {.max_steps = 9});
  CHECK(run_files::difference(run_files::newest_checkpoint(posix{}, dir.path()),
                              run_files::newest_checkpoint(posix{}, other.path())) == "");
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

namespace {
struct warned_of {
  using policy_for = kind::log_sink;
  int* skipped;
  void line(std::string_view s) { *skipped += s.find("max_steps 4 is reached and nothing was trained") != s.npos; }
  void step(const progress_report&, bool) {}
};
}  // namespace

TEST_CASE("steps and max_steps as an estimator's; hooks of a list; until the input ends") {
  testing::temp_dir dir;
  int inputs = 0, skipped = 0;
  auto e = make_estimator<line>(adam{}, run_config{.model_dir = dir.path()}, warned_of{&skipped});
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
  CHECK(skipped == 0);
  e.train(input, {.max_steps = 4});
  CHECK((inputs == 1 && skipped == 1));
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

TEST_CASE("all predictions of a call are those of one checkpoint, which is read once") {
  testing::temp_dir dir;
  const auto make = [&] { return make_estimator<line>(adam{.rate = 0.1}, run_config{.model_dir = dir.path()}); };
  make().train(endless, {.steps = 2});
  auto e = make();
  const auto predicted = [&](auto between) {
    std::vector<float> all;
    for (const prediction& p : e.predict(data)) {
      if (all.empty()) between();
      all.push_back(p["y"].as<float>()[0]);
    }
    return all;
  };
  const std::vector<float> before = predicted([] {});
  CHECK(predicted([&] { make().train(endless, {.steps = 2}); }) == before);  // another one saves a newer checkpoint
  const std::vector<float> after = predicted([] {});
  CHECK(after != before);
  // An evaluation meanwhile reads the newest again, and the rest goes on with that.
  make().train(endless, {.steps = 2});
  const std::vector<float> newest = predicted([] {});
  CHECK(predicted([&] { e.evaluate(data); }) == newest);
  CHECK(predicted([&] { std::filesystem::remove_all(dir.path()); }) == newest);
}

TEST_CASE("an export predicts the bits of predict, and evaluates those of evaluate; only what is needed is fed") {
  testing::temp_dir dir, base;
  auto e = make_estimator<line>(adam{.rate = 0.1}, run_config{.model_dir = dir.path(), .save_checkpoints_steps = 5});
  CHECK_THROWS_WITH_AS(e.export_saved_model(base.path()), doctest::Contains("has no checkpoint; train first"),
                       not_found);
  e.train(endless, {.steps = 10});
  const saved_model loaded = load_saved_model(e.export_saved_model(base.path() + "/predict"));
  CHECK(loaded.signatures().size() == 1);
  CHECK(loaded.signatures().at("serving_default").inputs.size() == 1);
  const saved_model early = load_saved_model(
      e.export_saved_model(base.path() + "/early", {.checkpoint_path = text(dir.path(), "/model-5.ckpt")}));
  CHECK(owned_tensor(early.session().variable("out/kernel")).number() != e.get_variable_value("out/kernel").number());
  std::size_t i = 0;
  for (const prediction& p : e.predict(data)) {
    const auto got = loaded.predict("serving_default", {{"x", const_tensor_view(std::span(&x[i++], 1), {1, 1})}});
    CHECK(got.keys() == std::vector<std::string>{"twice", "y"});
    CHECK(got["y"].as<float>()[0] == p["y"].as<float>()[0]);
    CHECK(got["twice"].as<float>()[0] == p["twice"].as<float>()[0]);
  }
  CHECK(i == 5);

  const std::string all = e.export_all_saved_models(base.path() + "/all", {mode::train, mode::evaluate, mode::predict});
  const saved_model judge = load_saved_model(all, {.tags = {"eval"}});
  CHECK(judge.signatures().at("eval").inputs.size() == 2);
  const auto found = e.evaluate(data);
  double mean = 0;
  for (std::size_t at = 0; at < 5; at += 2) {
    const std::size_t n = std::min<std::size_t>(2, 5 - at);
    const auto rows = [&](const std::vector<float>& of) {
      return const_tensor_view(std::span(&of[at], n), {static_cast<std::int64_t>(n), 1});
    };
    mean = static_cast<double>(
        judge.predict("eval", {{"x", rows(x)}, {"y", rows(y)}})["metrics/mean/value"].as<float>()[0]);
  }
  CHECK(mean == found["mean"]);
  CHECK(load_saved_model(all).signatures().contains("serving_default"));
  // A graph for training brings the slots along.
  const auto names = detail::variables_in(all, {});
  CHECK(std::count_if(names.begin(), names.end(), [](const auto& n) { return n.find("Adam") != n.npos; }) == 4);
  CHECK(load_saved_model(all, {.tags = {"train"}}).signatures().at("train").outputs.contains("predictions/y"));
  CHECK_THROWS_WITH_AS(e.export_all_saved_models(base.path(), {}), doctest::Contains("No valid modes for exporting"),
                       invalid_argument);
}

namespace {
inline constexpr auto silent_line = [](graph& g) {
  const value in = g.placeholder("x", {batch, 1}), to = g.placeholder("y", {batch, 1});
  return model_spec{.loss = reduce_mean(square(dense(in, {.units = 1, .name = "out"}) - to))};
};
inline constexpr auto wider_line = [](graph& g) {
  const value in = g.placeholder("x", {batch, 1}), to = g.placeholder("y", {batch, 1});
  const value found = dense(dense(in, {.units = 2, .name = "first"}), {.units = 1, .name = "out"});
  return model_spec{.loss = reduce_mean(square(found - to)), .predictions = {{"y", found}}};
};
}  // namespace

TEST_CASE("what an export refuses: a model without predictions, variables that are not those of the checkpoint") {
  testing::temp_dir dir, base;
  auto e = make_estimator<silent_line>(adam{}, run_config{.model_dir = dir.path()});
  e.train(endless, {.steps = 1});
  CHECK_THROWS_WITH_AS(e.export_saved_model(base.path()),
                       doctest::Contains("the model names no predictions to export: return model_spec{.predictions"),
                       invalid_argument);
  const auto wider = make_estimator<wider_line>(adam{}, run_config{.model_dir = dir.path()});
  CHECK_THROWS_WITH_AS(wider.export_saved_model(base.path()),
                       doctest::Contains("\"first/kernel\" (float32 [1, 2]), \"first/bias\" (float32 [2]), "
                                         "\"out/kernel\" (float32 [2, 1])"),
                       invalid_argument);
  CHECK(std::filesystem::is_empty(base.path()));
}

TEST_CASE("saving listeners of a list: told of each save, behind the policies; what they say stops a run") {
  struct tells {
    std::string* log;
    std::int64_t stops_at = -1;
    void begin() { *log += "begin; "; }
    void before_save(hooked_session& s, std::int64_t step) {
      *log += text("before ", step, s.global_step() == step ? "; " : " (not now); ");
    }
    bool after_save(hooked_session& s, std::int64_t step) {
      *log += text("after ", step, s.variable("out/kernel").size() == 1 ? "; " : "?; ");
      return step == stops_at;
    }
    void end(hooked_session&, std::int64_t step) { *log += text("end ", step, "; "); }
  };
  struct as_policy : tells {
    using policy_for = kind::saving_listener;
  };
  testing::temp_dir dir;
  std::string log, of_policy;
  auto e = make_estimator<line>(adam{}, as_policy{{&of_policy}}, silent{},
                                run_config{.model_dir = dir.path(), .save_checkpoints_steps = 2});
  e.train(endless, {.steps = 5, .saving_listeners = {tells{&log}}});
  CHECK(log == "begin; before 0; after 0; before 2; after 2; before 4; after 4; before 5; after 5; end 5; ");
  CHECK(log == of_policy);
  log.clear(), of_policy.clear();
  // Another call has other listeners; the one from before is told no more. What begins with a checkpoint saves none.
  std::string other;
  e.train(endless, {.steps = 10, .saving_listeners = {tells{&other, 6}}});
  CHECK(other == "begin; before 6; after 6; end 6; ");
  CHECK(log.empty());
  CHECK(e.get_variable_value("global_step").number() == 6);
  e.train(endless, {.steps = 1});
  CHECK(other == "begin; before 6; after 6; end 6; ");
  // A hook that raises leaves no listener behind.
  struct raises {
    void after_run(run_context&, const run_values&) { raise(status::internal, "mine"); }
  };
  CHECK_THROWS_WITH_AS(e.train(endless, {.steps = 1, .hooks = {raises{}}, .saving_listeners = {tells{&log}}}), "mine",
                       error);
  log.clear();
  e.train(endless, {.steps = 3});
  CHECK(log.empty());
  // Without anything that saves there is nothing to be told of.
  testing::temp_dir none_saved;
  auto quiet = make_estimator<line>(
      adam{}, silent{},
      run_config{.model_dir = none_saved.path(), .save_checkpoints_steps = none, .save_checkpoints_secs = none});
  CHECK_THROWS_WITH_AS(quiet.train(endless, {.steps = 1, .saving_listeners = {tells{&log}}}),
                       doctest::Contains("saving_listeners of a run that saves nothing: give run_config a model_dir"),
                       failed_precondition);
}

TEST_CASE("a warm start whose source is chosen when the program runs: a directory, an export, settings, none") {
  testing::temp_dir old_dir, base;
  auto old = make_estimator<line>(adam{.rate = 0.1}, silent{}, run_config{.model_dir = old_dir.path()});
  old.train(endless, {.steps = 20});
  const double kernel = old.get_variable_value("out/kernel").number(),
               bias = old.get_variable_value("out/bias").number();
  const auto begun = [&](const estimator_warm_start& from) {
    testing::temp_dir dir;
    auto e = make_estimator<line>(gradient_descent{.rate = 0}, silent{}, from, run_config{.model_dir = dir.path()});
    e.train(endless, {.steps = 1});
    return std::pair(e.get_variable_value("out/kernel").number(), e.get_variable_value("out/bias").number());
  };
  CHECK(begun(old_dir.path()) == std::pair(kernel, bias));
  CHECK(begun(old.export_saved_model(base.path())) == std::pair(kernel, bias));
  const auto half =
      begun(warm_start_settings{.ckpt_to_initialize_from = old_dir.path(), .vars_to_warm_start = ".*bias"});
  CHECK(half.second == bias);
  CHECK(half.first != kernel);
  const auto fresh = begun({});
  CHECK(fresh == std::pair(half.first, 0.0));
  CHECK_THROWS_WITH_AS(begun(""), "warm_start_from: ckpt_to_initialize_from must not be empty; give a path",
                       invalid_argument);
}

TEST_CASE("evaluating an older checkpoint hides no later evaluation; the newest takes the place of its own") {
  testing::temp_dir dir;
  auto e = make_estimator<line>(adam{}, run_config{.model_dir = dir.path(), .save_checkpoints_steps = 2}, silent{});
  e.train(endless, {.steps = 4});
  auto later = make_estimator<line>(adam{}, run_config{.model_dir = dir.path()}, silent{});
  later.evaluate(data);
  later.trainer().evaluate(data(), {.checkpoint_path = dir.path() + "/model-2.ckpt"});
  later.trainer().evaluate(data(), {.checkpoint_path = later.latest_checkpoint()});
  std::vector<std::string> names;
  REQUIRE(posix{}.list(dir.path() + "/eval", names) == 0);
  REQUIRE(names.size() == 1);
  std::string said;
  for (const event& at : summary_iterator(join_path(dir.path() + "/eval", names[0])))
    said += at.what == event_kind::session_log ? text("start ", at.step, "; ")
            : at.what == event_kind::summary   ? text(at.step, "; ")
                                               : std::string();
  CHECK(said == "start 4; 4; 2; start 4; 4; ");
}
