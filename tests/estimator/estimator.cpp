#include <gradus/estimator/estimator.hpp>

#include <gradus/codec/safetensors.hpp>
#include <gradus/codec/tensor_bundle.hpp>
#include <gradus/estimator/checkpoint_values.hpp>
#include <gradus/ops/host.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/metric.hpp>
#include <gradus/summary/reader.hpp>
#include <gradus/summary/shared_writer.hpp>
#include <gradus/testing/hand_tasks.hpp>
#include <gradus/train/hooks/early_stopping_hook.hpp>
#include <gradus/train/hooks/summary_saver_hook.hpp>
#include <gradus/train/run_environment.hpp>
#include <gradus/train/saved_model.hpp>

#include "../train/run_files.hpp"
#include "linear_model.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

using namespace gradus;
using doctest::Approx;
using line::recorder;

namespace {
void doubled_values(std::span<float> y, std::span<const float> x) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = 2 * x[i];
}
struct saves_seen {
  std::vector<std::int64_t>* steps;
  bool stops = false;
  bool after_save(hooked_session&, std::int64_t step) {
    steps->push_back(step);
    return stops;
  }
};
// Scalars in the event files of a directory, by tag: the last of each; and texts.
struct events {
  std::map<std::string, float> last;
  std::map<std::string, std::int64_t> steps;
  bool has_checkpoint_path = false;
  explicit events(const std::string& directory) {
    if (!std::filesystem::exists(directory)) return;
    for (const auto& f : std::filesystem::directory_iterator(directory)) {
      if (f.path().filename().string().find(event_file_prefix) != 0) continue;
      summary_iterator all(f.path().string());
      for (const auto& e : all)
        for (const auto& v : e.values) {
          if (v.kind == value_kind::simple_value) last[v.tag] = v.simple_value, steps[v.tag] = e.step;
          has_checkpoint_path = has_checkpoint_path || v.tag == "checkpoint_path";
        }
    }
  }
};
std::string read_text(const std::string& path) {
  const auto bytes = read_file(posix{}, path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
std::string message_of(auto&& f) {
  try {
    f();
  } catch (const error& e) {
    return e.what();
  }
  return {};
}
estimator_spec without_labels(const named_tensors& features, mode m) {
  return {.mode = m, .predictions = {{"x", features["x"] * 2.0}}};
}
struct rate {
  double of = 0.05;
};
}  // namespace

TEST_CASE("E13 constructor") {
  testing::temp_dir dir, other;
  const std::function<estimator_spec(const named_tensors&)> nothing;
  CHECK_THROWS_WITH_AS(estimator(nothing, {.model_dir = dir.path()}), doctest::Contains("model_fn must be given"),
                       invalid_argument);
  CHECK_FALSE(is_model_function<decltype(&line::model), rate>);  // params that it does not take
  CHECK_FALSE(is_model_function<estimator_spec(const named_tensors&, const char*)>);
  estimator no_labels(without_labels, {.model_dir = dir.path()});
  CHECK((*no_labels.predict([] { return line::data(); }).begin())["x"].as<float>()[0] == 2);
  rate mine;
  mine.of = 0.25;
  double seen = 0;
  estimator with_params(
      [&](const named_tensors& f, value y, mode m, rate r) -> estimator_spec {
        seen = r.of;
        r.of = 17;
        return line::model(f, y, m);
      },
      {.model_dir = dir.path()}, mine);
  mine.of = 0.5;
  with_params.train(line::endless, {.steps = 1});
  CHECK(seen == 0.25);
  with_params.train(line::endless, {.steps = 1});
  CHECK(seen == 0.25);
  CHECK(estimator(line::model, {.model_dir = dir.path(), .config = {.model_dir = dir.path()}}).model_dir() ==
        dir.path());
  CHECK_THROWS_WITH_AS(estimator(line::model, {.model_dir = dir.path(), .config = {.model_dir = other.path()}}),
                       doctest::Contains("but with different values"), invalid_argument);
  std::vector<std::string> lines;
  const estimator temporary(line::model, {.log = [&](const std::string& l) { lines.push_back(l); }});
  CHECK(std::filesystem::is_directory(temporary.model_dir()));
  CHECK(temporary.config().model_dir == temporary.model_dir());
  CHECK(lines ==
        std::vector<std::string>{"WARNING: Using temporary folder as model directory: " + temporary.model_dir()});
  std::filesystem::remove(temporary.model_dir());
}

TEST_CASE("E14 model_fn called once per train call; input_fn, too") {
  testing::temp_dir dir;
  int models = 0, inputs = 0;
  estimator e([&](const named_tensors& f, value y, mode m) -> estimator_spec { return ++models, line::model(f, y, m); },
              {.model_dir = dir.path()});
  const auto input = [&]() -> estimator_input { return ++inputs, line::endless(); };
  e.train(input, {.steps = 4});
  CHECK(models == 1);
  CHECK(inputs == 1);
  e.train(input, {.steps = 4});
  CHECK(models == 2);
  CHECK(inputs == 2);
}

TEST_CASE("E15 steps adds, max_steps does not; max_steps reached: model_fn is not called") {
  testing::temp_dir dir;
  int models = 0;
  std::vector<std::string> lines;
  estimator e([&](const named_tensors& f, value y, mode m) -> estimator_spec { return ++models, line::model(f, y, m); },
              {.model_dir = dir.path(), .log = [&](const std::string& l) { lines.push_back(l); }});
  const auto step = [&] { return e.get_variable_value("global_step").number(); };
  e.train(line::endless, {.steps = 5}).train(line::endless, {.steps = 5});
  CHECK(step() == 10);
  e.train(line::endless, {.max_steps = 12});
  CHECK(step() == 12);
  e.train(line::endless, {.max_steps = 12});
  CHECK(step() == 12);
  CHECK(models == 3);
  CHECK(lines.back().find("WARNING: Skipping training since max_steps has already saved: global_step is ") == 0);
  for (const std::int64_t bad : {0, -3}) {
    CHECK_THROWS_AS(e.train(line::endless, {.steps = bad}), invalid_argument);
    CHECK_THROWS_AS(e.train(line::endless, {.max_steps = bad}), invalid_argument);
    CHECK_THROWS_AS(e.evaluate(line::once, {.steps = bad}), invalid_argument);
  }
  CHECK_THROWS_WITH_AS(e.train(line::endless, {.steps = 1, .max_steps = 20}),
                       "Can not provide both steps (1) and max_steps (20); give one of them", invalid_argument);
  e.train(line::once);  // until the input ends
  CHECK(step() == 14);
  CHECK(models == 4);
}

TEST_CASE("the trained values are those of the arithmetic, and go on where they stopped") {
  testing::temp_dir dir;
  estimator e(line::model, {.model_dir = dir.path()});
  e.train(line::endless, {.steps = 6});
  const line::fitted six(6), ten(10);
  CHECK(e.get_variable_value("w").number() == Approx(six.w));
  e.train(line::endless, {.steps = 4});
  CHECK(e.get_variable_value("w").number() == Approx(ten.w));
  CHECK(e.get_variable_value("b").number() == Approx(ten.b));
  CHECK(e.get_variable_names() == std::vector<std::string>{"b", "global_step", "w"});
  CHECK(e.latest_checkpoint() == dir.path() + "/model-10.ckpt");
  CHECK_THROWS_AS(e.get_variable_value("nonsense"), not_found);
  testing::temp_dir empty;
  CHECK_THROWS_AS(estimator(line::model, {.model_dir = empty.path()}).get_variable_names(), not_found);
}

TEST_CASE("E16 warm start only without checkpoint") {
  testing::temp_dir from, dir;
  estimator(line::model, {.model_dir = from.path()}).train(line::endless, {.steps = 6});
  const double w = estimator(line::model, {.model_dir = from.path()}).get_variable_value("w").number();
  std::vector<std::string> lines;
  estimator e(line::model, {.model_dir = dir.path(), .warm_start_from = from.path(), .log = [&](const std::string& l) {
                              lines.push_back(l);
                            }});
  CHECK(e.evaluate(line::once)["mean_y"] == Approx(6.0).epsilon(0.1));  // of warm variables, without a checkpoint
  CHECK((*e.predict(line::once).begin())["y"].as<float>()[0] == Approx(3.0).epsilon(0.1));
  e.train(line::endless, {.steps = 1, .hooks = {[&] {
                                        struct first_value {
                                          double expected;
                                          void after_create_session(hooked_session& s) {
                                            CHECK(s.variable("w").as<float>()[0] == Approx(expected));
                                            CHECK(s.global_step() == 0);  // not trainable, so not taken
                                          }
                                        };
                                        return first_value{w};
                                      }()}});
  const auto said = [&] { return std::count(lines.begin(), lines.end(), "Warm-started 2 variables."); };
  CHECK(said() == 3);
  e.train(line::endless, {.steps = 1});
  CHECK(said() == 3);
}

TEST_CASE("E17 hooks of spec, caller and chief all begin, in TensorFlow's order; chief hooks only on the chief") {
  testing::temp_dir dir;
  std::vector<std::string> calls;
  session_resources box;
  const auto model = [&](const named_tensors& f, value y, mode m) -> estimator_spec {
    estimator_spec spec = line::model(f, y, m);
    spec.training_chief_hooks = {recorder{&calls, "chief"}};
    spec.training_hooks = {recorder{&calls, "spec"}};
    return spec;
  };
  const auto options_of = [&](const std::string& type) {
    return estimator_options{
        .config = run_config::from_tf_config(
            R"({"cluster": {"chief": ["a:1"], "worker": ["b:1"]}, "task": {"type": ")" + type + R"(", "index": 0}})",
            {.model_dir = dir.path()}),
        .sessions = estimator_sessions(shared_resources(box))};
  };
  estimator chief(model, options_of("chief")), worker(model, options_of("worker"));
  chief.train(line::endless, {.steps = 1, .hooks = {recorder{&calls, "caller"}}});
  const auto three = [](const std::string& what) {
    return std::vector<std::string>{"chief" + what, "caller" + what, "spec" + what};
  };
  std::vector<std::string> all;
  for (const char* what : {".begin", ".session", ".run", ".end"})
    for (const auto& c : three(what)) all.push_back(c);
  CHECK(calls == all);
  const auto saved = chief.latest_checkpoint();
  calls.clear();
  worker.train(line::endless, {.steps = 1, .hooks = {recorder{&calls, "caller"}}});
  CHECK(calls.size() == 8);
  CHECK(std::count(calls.begin(), calls.end(), "chief.begin") == 0);
  CHECK(chief.latest_checkpoint() == saved);  // the worker saves nothing
}

TEST_CASE("E8 no saver hook and listeners; a saver hook of the caller's own serves them") {
  testing::temp_dir dir;
  std::vector<std::int64_t> steps;
  estimator e(line::model, {.config = {.model_dir = dir.path(), .save_checkpoints_steps = none}});
  CHECK_THROWS_WITH_AS(e.train(line::endless, {.steps = 3, .saving_listeners = {saves_seen{&steps}}}),
                       doctest::Contains("There should be a CheckpointSaverHook to use saving_listeners"),
                       invalid_argument);
  e.train(line::endless, {.steps = 3});
  CHECK(e.latest_checkpoint().empty());
  e.train(line::endless, {.steps = 3,
                          .hooks = {checkpoint_saver_hook(dir.path(), {.save_steps = 2})},
                          .saving_listeners = {saves_seen{&steps}}});
  CHECK(steps == std::vector<std::int64_t>{0, 2, 3});
  // A hook serves several calls; the listeners of one leave it with that call.
  const auto own = std::make_shared<checkpoint_saver_hook>(dir.path(), checkpoint_saver_options{.save_steps = 2});
  std::vector<std::int64_t> later;
  e.train(line::endless, {.steps = 2, .hooks = {own}, .saving_listeners = {saves_seen{&steps}}});
  e.train(line::endless, {.steps = 2, .hooks = {own}, .saving_listeners = {saves_seen{&later}}});
  CHECK(steps == std::vector<std::int64_t>{0, 2, 3, 3, 5});
  CHECK(later == std::vector<std::int64_t>{5, 7});
}

TEST_CASE("a listener may end the training; checkpoints are kept as the run_config says, with relative names") {
  testing::temp_dir dir;
  std::vector<std::int64_t> steps;
  estimator e(line::model,
              {.config = {.model_dir = dir.path(), .save_checkpoints_steps = 2, .keep_checkpoint_max = 2}});
  e.train(line::endless, {.steps = 9, .saving_listeners = {saves_seen{&steps}}});
  CHECK(steps == std::vector<std::int64_t>{0, 2, 4, 6, 8, 9});
  CHECK(read_state_file(posix{}, dir.path())->all == std::vector<std::string>{"model-8.ckpt", "model-9.ckpt"});
  e.train(line::endless, {.steps = 9, .saving_listeners = {saves_seen{&steps, true}}});
  CHECK(e.get_variable_value("global_step").number() == 11);  // what it says of the first save stops nobody
}

TEST_CASE("E18 evaluate") {
  testing::temp_dir dir;
  estimator e(line::model, {.config = {.model_dir = dir.path(), .save_checkpoints_steps = 5}});
  e.train(line::endless, {.steps = 10});
  const line::fitted five(5), ten(10);
  const auto found = e.evaluate(line::once);
  CHECK(found["mean_y"] == Approx(ten.w * 2.5 + ten.b));
  CHECK(found["loss"] == Approx((ten.loss(0) + ten.loss(1)) / 2));
  CHECK(found["global_step"] == 10);
  CHECK(found.global_step() == 10);
  const events here(dir.path() + "/eval");
  CHECK(here.last.at("loss") == Approx(found["loss"]));
  CHECK(here.steps.at("mean_y") == 10);
  CHECK_FALSE(here.last.contains("global_step"));
  CHECK(here.has_checkpoint_path);
  e.evaluate(line::endless, {.steps = 1, .name = "first"});
  CHECK(events(dir.path() + "/eval_first").last.at("loss") == Approx(ten.loss(0)));

  const auto naughty = [](std::string name) {
    return [name](const named_tensors& f, value y, mode m) -> estimator_spec {
      estimator_spec spec = line::model(f, y, m);
      spec.eval_metric_ops[name] = metrics::mean(f["x"]);
      return spec;
    };
  };
  CHECK_THROWS_AS(estimator(naughty("loss"), {.model_dir = dir.path()}).evaluate(line::once), invalid_argument);
  CHECK_THROWS_AS(estimator(naughty("global_step"), {.model_dir = dir.path()}).evaluate(line::once), invalid_argument);
  const auto earlier = e.evaluate(line::once, {.checkpoint_path = dir.path() + "/model-5.ckpt"});
  CHECK(earlier.global_step() == 5);
  CHECK(earlier["loss"] == Approx((five.loss(0) + five.loss(1)) / 2));
  testing::temp_dir empty;
  const auto fresh = estimator(line::model, {.model_dir = empty.path()}).evaluate(line::once);
  const line::fitted none_yet(0);
  CHECK(fresh.global_step() == 0);
  CHECK(fresh["loss"] == Approx((none_yet.loss(0) + none_yet.loss(1)) / 2));
  CHECK_THROWS_WITH_AS(found["accuracy"], doctest::Contains("there are: \"global_step\", \"loss\", \"mean_y\""),
                       not_found);
}

TEST_CASE("evaluation hooks: the caller's, then the spec's; one may end it; an input without batches") {
  testing::temp_dir dir;
  std::vector<std::string> calls;
  const auto model = [&](const named_tensors& f, value y, mode m) -> estimator_spec {
    estimator_spec spec = line::model(f, y, m);
    spec.evaluation_hooks = {recorder{&calls, "spec"}};
    return spec;
  };
  estimator e(model, {.model_dir = dir.path()});
  e.train(line::endless, {.steps = 1});
  CHECK(calls.empty());
  e.evaluate(line::endless, {.steps = 2, .hooks = {recorder{&calls, "caller"}}});
  CHECK(calls == std::vector<std::string>{"caller.begin", "spec.begin", "caller.session", "spec.session", "caller.run",
                                          "spec.run", "caller.run", "spec.run", "caller.end", "spec.end"});
  std::vector<std::string> lines;
  estimator heard(model, {.model_dir = dir.path(), .log = [&](const std::string& line) { lines.push_back(line); }});
  const auto nothing = heard.evaluate([] { return labelled(line::data().take(0), {"y"}); });
  CHECK(nothing["loss"] == 0);
  CHECK(nothing.global_step() == 1);
  const auto warned = [](const std::string& l) { return l.find("WARNING: evaluate: the input gave no batch") == 0; };
  CHECK(std::count_if(lines.begin(), lines.end(), warned) == 1);
  heard.evaluate(line::once);
  CHECK(std::count_if(lines.begin(), lines.end(), warned) == 1);
}

TEST_CASE("modes that disagree on a variable are refused, and the variable is named") {
  testing::temp_dir dir;
  const auto disagree = [](const named_tensors& f, value y, mode m) -> estimator_spec {
    estimator_spec spec = line::model(f, y, m);
    if (m == mode::evaluate) f.of().variable("only_evaluated", {});
    if (m == mode::predict) spec.predictions = {{"y", f.of().variable("w_2", {}) * f["x"]}};
    return spec;
  };
  estimator e(disagree, {.model_dir = dir.path()});
  e.train(line::endless, {.steps = 1});
  const auto said = message_of([&] { e.evaluate(line::once); });
  CHECK(said.find("the model_fn for mode evaluate does not have the variables of the checkpoint") == 0);
  CHECK(said.find("only_evaluated") != said.npos);
  CHECK(message_of([&] { static_cast<void>(e.predict(line::once).begin()); }).find("\"w_2\"") != std::string::npos);
}

TEST_CASE("one training at a time; an evaluation beside it is free") {
  testing::temp_dir dir;
  estimator e(line::model, {.model_dir = dir.path()}), second(line::model, {.model_dir = dir.path()});
  struct meanwhile {
    estimator* other;
    std::string said;
    double loss = -1;
    void after_run(run_context&, const run_values&) {
      said = message_of([&] { other->train(line::endless, {.steps = 1}); });
      loss = other->evaluate(line::once)["loss"];
    }
  };
  const auto hook = std::make_shared<meanwhile>(&second);
  e.train(line::endless, {.steps = 1, .hooks = {hook}});
  CHECK(hook->said.find(text("the role \"training\" in \"", dir.path(), "\" is taken: expected to be the only one")) ==
        0);
  CHECK(hook->loss == Approx((line::fitted(0).loss(0) + line::fitted(0).loss(1)) / 2));
}

TEST_CASE("a NaN ends training, after the step was saved if it was due") {
  testing::temp_dir dir;
  const auto bad = [](const named_tensors& f, value y, mode m) -> estimator_spec {
    estimator_spec spec = line::model(f, y, m);
    spec.loss = spec.loss / (spec.loss - spec.loss);
    return spec;
  };
  estimator e(bad, {.config = {.model_dir = dir.path(), .save_checkpoints_steps = 1}});
  CHECK(message_of([&] { e.train(line::endless, {.steps = 3}); }).empty());  // an infinity is none
  const auto worse = [](const named_tensors& f, value y, mode m) -> estimator_spec {
    estimator_spec spec = line::model(f, y, m);
    const value nothing = spec.loss - spec.loss;
    spec.loss = nothing / nothing;
    return spec;
  };
  testing::temp_dir other;
  estimator n(worse, {.config = {.model_dir = other.path(), .save_checkpoints_steps = 1}});
  CHECK(message_of([&] { n.train(line::endless, {.steps = 3}); }).find("NaN loss during training") == 0);
  CHECK(n.latest_checkpoint() == other.path() + "/model-1.ckpt");
}

TEST_CASE("what training writes: the loss and the graph for TensorBoard; a training without batches is warned of") {
  testing::temp_dir dir;
  std::vector<std::string> lines;
  estimator e(line::model, {.config = {.model_dir = dir.path(), .save_summary_steps = 2, .log_step_count_steps = 2},
                            .log = [&](const std::string& l) { lines.push_back(l); }});
  e.train(line::endless, {.steps = 5});
  const events here(dir.path());
  CHECK(here.steps.at("loss") == 5);
  CHECK(here.last.contains("global_step/sec"));
  CHECK(std::filesystem::exists(dir.path() + "/graph.pbtxt"));
  CHECK(std::count_if(lines.begin(), lines.end(), [](const auto& l) { return l.starts_with("loss = "); }) == 3);
  CHECK(lines.back().starts_with("Loss for final step: "));
  e.train([] { return labelled(line::data().take(0), {"y"}); });
  CHECK(lines.back() == "WARNING: Training with estimator made no steps. Perhaps input is empty or misspecified.");
}

namespace {
int event_files(const std::string& directory) {
  int n = 0;
  for (const auto& f : std::filesystem::directory_iterator(directory))
    n += f.path().filename().string().starts_with(event_file_prefix);
  return n;
}
std::vector<std::int64_t> steps_of(const std::string& directory, const std::string& tag) {
  return run_files::steps_of(run_files::read_curves(posix{}, directory), tag);
}
int graphs_in(const std::string& directory) {
  int n = 0;
  for (const auto& f : std::filesystem::directory_iterator(directory)) {
    if (!f.path().filename().string().starts_with(event_file_prefix)) continue;
    summary_iterator all(f.path().string());
    for (const auto& e : all) n += e.what == event_kind::graph_def;
  }
  return n;
}
}  // namespace

TEST_CASE("one event file for each role of an estimator, whatever is called how often; curves as from many") {
  testing::temp_dir dir;
  const std::string eval = dir.path() + "/eval";
  const estimator_options o{.config = {.model_dir = dir.path(), .save_summary_steps = 1}};
  using steps = std::vector<std::int64_t>;
  estimator e(line::model, o);
  for (int round = 1; round <= 3; ++round) {
    e.train(line::endless, {.steps = 2});
    CHECK(event_files(dir.path()) == 1);
    CHECK(steps_of(dir.path(), "loss").size() == static_cast<std::size_t>(2 * round));  // closed: all of it is there
    e.evaluate(line::once);
    CHECK(event_files(eval) == 1);
    CHECK(steps_of(eval, "loss").size() == static_cast<std::size_t>(round));
  }
  CHECK(steps_of(dir.path(), "loss") == steps{1, 2, 3, 4, 5, 6});
  CHECK(steps_of(eval, "loss") == steps{2, 4, 6});
  CHECK(graphs_in(dir.path()) == 1);

  // Another one of this process goes on in the same file. Behind the file of another process a new one begins.
  estimator next(line::model, o);
  next.train(line::endless, {.steps = 2});
  CHECK(event_files(dir.path()) == 1);
  CHECK(steps_of(dir.path(), "loss") == steps{1, 2, 3, 4, 5, 6, 7, 8});
  summary_writer<>(dir.path()).close();
  e.train(line::endless, {.steps = 2});
  CHECK(event_files(dir.path()) == 3);
  CHECK(steps_of(dir.path(), "loss") == steps{1, 2, 3, 4, 5, 6, 7, 8, 9, 10});

  // A training that fails leaves its file closed; the next one drops what was not saved.
  struct fails_at {
    std::int64_t left;
    void after_run(run_context&, const run_values&) {
      if (--left == 0) raise(status::internal, "a hook's own");
    }
  };
  CHECK_THROWS_AS(next.train(line::endless, {.steps = 5, .hooks = {fails_at{3}}}), internal);
  next.train(line::endless, {.steps = 2});
  CHECK(event_files(dir.path()) == 3);
  CHECK(steps_of(dir.path(), "loss") == steps{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});

  // A hook that is given the directory writes into the same file, and hides no curve.
  const auto with_hook = [&](const named_tensors& f, value labels, mode m) {
    auto spec = line::model(f, labels, m);
    spec.training_hooks.push_back(
        summary_saver_hook({.save_steps = 1, .output_dir = dir.path(), .summary_op = {{"mine", spec.loss}}}));
    return spec;
  };
  estimator hooked(with_hook, o);
  hooked.train(line::endless, {.steps = 2});
  hooked.train(line::endless, {.steps = 2});
  CHECK(event_files(dir.path()) == 3);
  CHECK(steps_of(dir.path(), "loss") == steps{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16});
  CHECK(steps_of(dir.path(), "mine") == steps{13, 14, 15, 16});
}

TEST_CASE("the summary of a step is on file before the checkpoint of that step is") {
  testing::temp_dir dir;
  std::vector<std::int64_t> on_file;
  struct looking {
    const std::string* at;
    std::vector<std::int64_t>* to;
    void after_save(hooked_session&, std::int64_t step) const {  // where a kill would leave the run
      const auto all = steps_of(*at, "loss");
      to->push_back(step == 0 ? 0 : all.empty() ? -1 : all.back());
    }
  };
  const std::string path = dir.path();
  estimator e(line::model, {.config = {.model_dir = path, .save_summary_steps = 1, .save_checkpoints_steps = 2}});
  e.train(line::endless, {.steps = 4, .saving_listeners = {looking{&path, &on_file}}});
  CHECK(on_file == std::vector<std::int64_t>{0, 2, 4});
}

TEST_CASE("events that a full queue did not take are warned of, also where the training fails") {
  for (const bool fails : {false, true}) {
    testing::temp_dir dir;
    std::vector<std::string> lines;
    struct flood {
      std::string at;
      bool fails;
      void after_run(run_context&, const run_values&) const {
        const auto log = detail::shared_summary_writer(at);
        for (int i = 0; i < 100'000 && log->rejected() == 0; ++i) log->add_scalar("x", 1, i);
        REQUIRE(log->rejected() > 0);
        if (fails) raise(status::internal, "a hook's own");
      }
    };
    estimator e(line::model, {.config = {.model_dir = dir.path(), .summaries = {.max_queue = 1}},
                              .log = [&](const std::string& l) { lines.push_back(l); }});
    const auto train = [&] { e.train(line::endless, {.steps = 1, .hooks = {flood{dir.path(), fails}}}); };
    if (fails)
      CHECK_THROWS_AS(train(), internal);
    else
      train();
    CHECK(std::count_if(lines.begin(), lines.end(), [](const std::string& l) {
            return l.starts_with("WARNING: ") && l.find("the queue of summaries was full") != std::string::npos;
          }) == 1);
  }
}

TEST_CASE("roles that do not train are told so; a worker whose variables are elsewhere, too") {
  testing::temp_dir dir;
  const auto as = [&](const std::string& type) {
    return run_config::from_tf_config(
        R"({"cluster": {"chief": ["a:1"], "ps": ["b:1"], "worker": ["c:1"]}, "task": {"type": ")" + type +
            R"(", "index": 0}})",
        {.model_dir = dir.path()});
  };
  for (const char* type : {"ps", "evaluator"}) {
    estimator e(line::model, {.config = as(type)});
    CHECK_THROWS_WITH_AS(e.train(line::endless, {.steps = 1}), doctest::Contains("Please use train_and_evaluate"),
                         invalid_argument);
  }
  for (const char* type : {"chief", "worker"}) {
    estimator e(line::model, {.config = as(type)});
    CHECK_THROWS_AS(e.train(line::endless, {.steps = 1}), unimplemented);
  }
}

TEST_CASE("another codec's checkpoints: written, gone on from, evaluated, warm-started from") {
  for (const any_codec& c : {any_codec(safetensors{}), any_codec(tensor_bundle{})}) {
    testing::temp_dir dir, other;
    estimator e(line::model, {.model_dir = dir.path(), .codec = c});
    e.train(line::endless, {.steps = 3}).train(line::endless, {.steps = 3});
    CHECK(e.get_variable_value("w").number() == Approx(line::fitted(3).train(3).w));
    const auto found = e.evaluate(line::once);
    CHECK(found.global_step() == 6);
    estimator warm(line::model, {.model_dir = other.path(), .warm_start_from = dir.path()});
    CHECK(warm.evaluate(line::once)["loss"] == Approx(found["loss"]));
  }
}

TEST_CASE("the batches of the call at work can be had") {
  testing::temp_dir dir;
  estimator e(line::model, {.model_dir = dir.path()});
  CHECK(e.running_batches() == nullptr);
  struct looks {
    estimator* of;
    bool found = false;
    void begin() { found = of->running_batches() != nullptr && of->running_batches()->batch_size() == 2; }
  };
  const auto hook = std::make_shared<looks>(&e);
  e.train(line::endless, {.steps = 1, .hooks = {hook}});
  CHECK(hook->found);
  CHECK(e.running_batches() == nullptr);
  // Calls in a call, and predictions that are read on behind it: each has its own, the outer one has its own again.
  struct nests {
    estimator* of;
    std::optional<prediction_range>* kept;
    any_batches *before = nullptr, *within = nullptr, *after = nullptr, *last = nullptr;
    int runs = 0;
    void after_run(run_context&, const run_values&) {
      if (++runs == 2) {
        last = of->running_batches();
        return;
      }
      before = of->running_batches();
      of->evaluate(line::once);
      after = of->running_batches();
      kept->emplace(of->predict(line::once));
      (void)(*kept)->begin();
      within = of->running_batches();
    }
  };
  std::optional<prediction_range> predictions;
  const auto nested = std::make_shared<nests>(&e, &predictions);
  e.train(line::endless, {.steps = 2, .hooks = {nested}});
  CHECK(nested->before != nullptr);
  CHECK(nested->after == nested->before);
  CHECK((nested->within != nullptr && nested->within != nested->before));
  CHECK(nested->last == nested->within);  // the predictions are at work still
  CHECK(e.running_batches() == nested->within);
  predictions.reset();
  CHECK(e.running_batches() == nullptr);
}

TEST_CASE("E20 export") {
  testing::temp_dir dir, base, other;
  testing::hand_tasks hand(1.7e9);
  estimator e(line::model, {.config = {.model_dir = dir.path(), .save_checkpoints_steps = 5}, .tasks = hand.tasks()});
  const auto serving = raw_serving_input({{"x", float32, {}}});
  CHECK_THROWS_WITH_AS(e.export_saved_model(base.path(), serving), doctest::Contains("Couldn't find trained model at"),
                       not_found);
  CHECK(std::filesystem::is_empty(base.path()));
  e.train(line::endless, {.steps = 10});
  // The newest checkpoint, under ten digits of seconds.
  const std::string path = e.export_saved_model(base.path(), serving);
  CHECK(path == base.path() + "/1700000000");
  CHECK(detail::variable_in(path, "w", {}).number() == Approx(line::fitted(10).w));
  CHECK(std::filesystem::exists(path + "/saved_model.pb"));
  hand.advance(1);
  const std::string early =
      e.export_saved_model(base.path(), serving, {.checkpoint_path = dir.path() + "/model-5.ckpt"});
  CHECK(detail::variable_in(early, "w", {}).number() == Approx(line::fitted(5).w));
  // Assets.
  publish(posix{}, other.path() + "/words.txt", "a\nb\n");
  hand.advance(1);
  const std::string with = e.export_saved_model(
      base.path(), serving, {.assets_extra = {{"sub/vocabulary.txt", other.path() + "/words.txt"}}});
  CHECK(std::filesystem::file_size(with + "/assets.extra/sub/vocabulary.txt") == 4);
  // Of the source of a warm start, where nothing was trained yet.
  testing::temp_dir fresh;
  hand.advance(1);
  estimator warm(line::model, {.model_dir = fresh.path(), .warm_start_from = dir.path(), .tasks = hand.tasks()});
  CHECK(detail::variable_in(warm.export_saved_model(base.path(), serving), "w", {}).number() ==
        Approx(line::fitted(10).w));
  // An export is a source of a warm start, too.
  testing::temp_dir third;
  estimator from_export(line::model, {.model_dir = third.path(), .warm_start_from = path});
  CHECK(from_export.evaluate(line::once)["loss"] == Approx(e.evaluate(line::once)["loss"]));
  // Three modes.
  const auto supervised = raw_serving_input({{"x", float32, {}}}, {{"y", float32, {}}});
  hand.advance(1);
  const std::string three = e.export_all_saved_models(
      base.path(), {{mode::train, supervised}, {mode::evaluate, supervised}, {mode::predict, serving}});
  const std::string bytes = read_text(three + "/saved_model.pb");
  for (const char* word : {"serving_default", "train", "eval", "tensorflow/supervised/training",
                           "tensorflow/supervised/eval", "tensorflow/serving/predict", "predictions/y"})
    CHECK(bytes.find(word) != bytes.npos);
  CHECK(e.export_all_saved_models(base.path() + "/one", {{mode::evaluate, supervised}}).ends_with("/one/1700000004"));
  CHECK_THROWS_AS(e.export_all_saved_models(base.path(), {}), invalid_argument);
  CHECK_THROWS_AS(e.export_saved_model(base.path(), nullptr), invalid_argument);
}

TEST_CASE("an export to evaluate adds up the metrics of what it is fed, as evaluate does") {
  testing::temp_dir dir, base;
  estimator e(line::model, {.model_dir = dir.path()});
  e.train(line::endless, {.steps = 10});
  const auto supervised = raw_serving_input({{"x", float32, {}}}, {{"y", float32, {}}});
  const std::string path =
      e.export_all_saved_models(base.path(), {{mode::train, supervised}, {mode::evaluate, supervised}});
  const auto found = e.evaluate(line::once);
  const line::fitted by_hand(10);
  for (const std::string as : {"eval", "train"}) {
    const auto loaded = load_saved_model(path, {.tags = {as}});
    CHECK(loaded.imported().left_out().empty());
    const signature_def& s = loaded.signatures().at(as);
    std::vector<std::string> keys;
    for (const auto& [key, t] : s.outputs) keys.push_back(key);
    CHECK(keys == std::vector<std::string>{"loss", "metrics/mean_y/update_op", "metrics/mean_y/value",
                                           "predictions/twice", "predictions/y"});
    CHECK(s.method == (as == "eval" ? "tensorflow/supervised/eval" : "tensorflow/supervised/training"));
    std::vector<std::string> inputs;
    for (const auto& [key, t] : s.inputs) inputs.push_back(key);
    CHECK(inputs == std::vector<std::string>{"x", "y"});
    double sum = 0;
    for (int k = 0; k < 2; ++k) {
      const auto at = line::given.x.begin() + 2 * k, to = line::given.y.begin() + 2 * k;
      const std::vector<float> x(at, at + 2), y(to, to + 2);
      const auto got = loaded.predict(as, {{"x", x}, {"y", y}});
      for (const float one : x) sum += by_hand.w * static_cast<double>(one) + by_hand.b;
      CHECK(got["metrics/mean_y/update_op"].as<float>()[0] == Approx(sum / (2 * (k + 1))));
      CHECK(got["metrics/mean_y/value"].as<float>()[0] == got["metrics/mean_y/update_op"].as<float>()[0]);
      CHECK(got["loss"].as<float>()[0] == Approx(by_hand.loss(k)));
      if (k == 1)  // the bits of evaluate, which saw the same batches
        CHECK(static_cast<double>(got["metrics/mean_y/value"].as<float>()[0]) == found["mean_y"]);
    }
    // Nothing but local variables was changed.
    CHECK(owned_tensor(loaded.session().variable("w")).number() == e.get_variable_value("w").number());
  }
  // Exports of inference have no metrics.
  const auto serving =
      load_saved_model(e.export_saved_model(base.path() + "/s", raw_serving_input({{"x", float32, {}}})));
  for (const auto& [key, t] : serving.signatures().at("serving_default").outputs) CHECK(!key.starts_with("metrics"));
}

TEST_CASE("every metric goes out with an export and comes back with its numbers") {
  testing::temp_dir dir, base;
  const std::vector<double> thresholds{0.3, 0.6};
  const auto model = [&](const named_tensors& f, value labels, mode m) -> estimator_spec {
    graph& g = f.of();
    const value p = sigmoid(f["x"] * g.variable("w", {}, {.init = constant_initializer(0.5)}) - 1.0);
    estimator_spec spec{.mode = m, .predictions = p};
    if (m == mode::predict) return spec;
    const value is = greater(labels, 5.0), says = greater(p, 0.5);
    spec.loss = reduce_mean(square(p - labels));
    namespace k = metrics;
    spec.eval_metric_ops = {
        {"mean", k::mean(p)},
        {"weighted", k::mean(p, {.weights = labels})},
        {"accuracy", k::accuracy(cast(is, int32), cast(says, int32))},
        {"mse", k::mean_squared_error(labels, p)},
        {"rmse", k::root_mean_squared_error(labels, p)},
        {"precision", k::precision(is, says)},
        {"recall", k::recall(is, says)},
        {"metrics_of_y", k::mean(labels)},
        {"auc", k::auc(is, p)},
        {"at", k::precision_at_thresholds(is, p, thresholds)},
    };
    optimizer opt{gradient_descent{.rate = 0}};
    if (m == mode::train)
      spec.train_op = opt.minimize(spec.loss, {.global_step = get_global_step(g)}), spec.optimizers = opt;
    return spec;
  };
  estimator e(model, {.model_dir = dir.path()});
  e.train(line::endless, {.steps = 1});
  const auto supervised = raw_serving_input({{"x", float32, {}}}, {{"y", float32, {}}});
  const auto found = e.evaluate(line::once);
  const auto loaded =
      load_saved_model(e.export_all_saved_models(base.path(), {{mode::evaluate, supervised}}), {.tags = {"eval"}});
  CHECK(loaded.imported().left_out().empty());
  for (int k = 0; k < 2; ++k) {
    const auto at = line::given.x.begin() + 2 * k, to = line::given.y.begin() + 2 * k;
    const auto got =
        loaded.predict("eval", {{"x", std::vector<float>(at, at + 2)}, {"y", std::vector<float>(to, to + 2)}});
    if (k == 0) continue;
    int metrics_seen = 0;
    for (const auto& [name, v] : found) {
      if (name == "loss" || name == "global_step") continue;
      INFO(name);
      ++metrics_seen;
      // A key that begins with "metrics" gets no second prefix, as in TensorFlow.
      const const_tensor_view& there = got[(name.starts_with("metrics") ? name : "metrics/" + name) + "/value"];
      REQUIRE(there.size_bytes() == const_tensor_view(v).size_bytes());
      CHECK(std::memcmp(there.data, const_tensor_view(v).data, there.size_bytes()) == 0);
    }
    CHECK(metrics_seen == 10);
  }
}

TEST_CASE("a metric that TensorFlow's ops cannot compute is refused by its name; predictions without keys") {
  testing::temp_dir dir, base;
  bool odd = true;
  const auto model = [&](const named_tensors& f, value labels, mode m) -> estimator_spec {
    estimator_spec spec = line::model(f, labels, m);
    spec.predictions = spec.predictions["y"];
    if (m != mode::predict && odd)
      spec.eval_metric_ops = {{"doubled", metrics::mean(host_call<&doubled_values>({f["x"]}))}};
    return spec;
  };
  estimator e(model, {.model_dir = dir.path()});
  e.train(line::endless, {.steps = 1});
  const auto supervised = raw_serving_input({{"x", float32, {}}}, {{"y", float32, {}}});
  CHECK_THROWS_WITH_AS(e.export_all_saved_models(base.path(), {{mode::evaluate, supervised}}),
                       doctest::Contains("signature \"eval\": the output \"metrics/doubled/update_op\" cannot be "
                                         "written in TensorFlow's ops: node \"HostCall\""),
                       unimplemented);
  CHECK(std::filesystem::is_empty(base.path()));
  odd = false;
  const auto loaded =
      load_saved_model(e.export_all_saved_models(base.path(), {{mode::evaluate, supervised}}), {.tags = {"eval"}});
  CHECK(loaded.signatures().at("eval").outputs.contains("predictions"));
}

TEST_CASE("the signatures of an export: one is the default, of several one must be") {
  testing::temp_dir dir, base;
  const auto with = [&](export_outputs_map outputs) {
    return [outputs, names = std::vector<std::string>()](const named_tensors& f, value y, mode m) -> estimator_spec {
      estimator_spec spec = line::model(f, y, m);
      if (m != mode::predict) return spec;
      for (const auto& [name, o] : outputs) spec.export_outputs[name] = regression_output(spec.predictions["y"]);
      return spec;
    };
  };
  const auto serving = raw_serving_input({{"x", float32, {}}});
  estimator one(with({{"mine", {}}}), {.model_dir = dir.path()}),
      several(with({{"a", {}}, {"b", {}}}), {.model_dir = dir.path()}),
      named_one(with({{"a", {}}, {"serving_default", {}}}), {.model_dir = dir.path()});
  one.train(line::endless, {.steps = 1});
  const std::string bytes = read_text(one.export_saved_model(base.path() + "/one", serving) + "/saved_model.pb");
  CHECK(bytes.find("mine") != bytes.npos);
  CHECK(bytes.find("serving_default") != bytes.npos);
  CHECK(bytes.find("tensorflow/serving/regress") != bytes.npos);
  CHECK_THROWS_WITH_AS(several.export_saved_model(base.path(), serving), doctest::Contains("Multiple export_outputs"),
                       invalid_argument);
  CHECK_FALSE(named_one.export_saved_model(base.path() + "/named", serving).empty());
}

TEST_CASE("early stopping in a folder that it began; a folder that began without it is refused") {
  const testing::temp_dir dir, plain;
  int looks = 0;
  const auto stops = [&](int at) {
    return make_early_stopping_hook([&looks, at] { return ++looks == at; }, {.run_every_steps = 1});
  };
  estimator e(line::model, {.model_dir = dir.path()});
  e.train(line::endless, {.steps = 5, .hooks = {stops(2)}});
  CHECK(e.get_variable_value("global_step").as<std::int64_t>()[0] == 2);
  CHECK(e.get_variable_value("w").as<float>()[0] == Approx(line::fitted(2).w));
  CHECK(e.get_variable_value("signal_early_stopping/STOP").as<bool>()[0]);
  looks = 0;
  e.train(line::endless, {.steps = 3, .hooks = {stops(9)}});  // the chief decides anew
  CHECK(e.get_variable_value("w").as<float>()[0] == Approx(line::fitted(2).train(3).w));
  CHECK(e.evaluate(line::once)["loss"] > 0);

  estimator without(line::model, {.model_dir = plain.path()});
  without.train(line::endless, {.steps = 1});
  CHECK(message_of([&] {
          without.train(line::endless, {.steps = 1, .hooks = {stops(9)}});
        }).find("signal_early_stopping/STOP") != std::string::npos);
}

TEST_CASE("device_fn of the configuration gives devices to the nodes of the training graph, the global step first") {
  testing::temp_dir dir;
  std::vector<std::string> asked, trained, evaluated;
  estimator est(
      [&](const named_tensors& f, value y, mode m) -> estimator_spec {
        auto spec = line::model(f, y, m);
        graph& g = *spec.loss.g;
        auto& devices = m == mode::train ? trained : evaluated;
        for (int i = 0; i < g.nodes.count; ++i)
          devices.push_back(g.nodes[i].device < 0 ? std::string() : std::string(g.text_at(g.nodes[i].device)));
        return spec;
      },
      {.model_dir = dir.path(), .config = {.device_fn = [&](const placed_op& op) {
                                  if (op.type == "VariableV2") asked.push_back(std::string(op.name));
                                  return std::string(op.type == "VariableV2" ? "/job:ps/task:1" : "/cpu:0");
                                }}});
  est.train(line::endless, {.steps = 1});
  est.evaluate(line::once, {.steps = 1});
  REQUIRE(!asked.empty());
  CHECK(asked.front() == "global_step");
  REQUIRE(!trained.empty());
  CHECK(trained.front() == "/job:ps/task:1");
  for (const std::string& device : trained) CHECK((device == "/job:ps/task:1" || device == "/cpu:0"));
  REQUIRE(!evaluated.empty());
  for (const std::string& device : evaluated) CHECK(device.empty());
}

TEST_CASE("an evaluation of data that never end is refused where nothing can stop it") {
  testing::temp_dir dir;
  estimator e(line::model, {.model_dir = dir.path()});
  e.train(line::endless, {.steps = 2});
  CHECK(message_of([&] { e.evaluate(line::endless); }).find("never ends") != std::string::npos);
  CHECK(e.evaluate(line::endless, {.steps = 3})["global_step"] == 2);
  struct stops {
    int left = 2;
    void after_run(run_context& c, const run_values&) {
      if (--left == 0) c.request_stop();
    }
  };
  CHECK(e.evaluate(line::endless, {.hooks = {stops{}}})["global_step"] == 2);
}

TEST_CASE("a checkpoint that is not there is not said to be a fault of the model_fn") {
  testing::temp_dir dir;
  estimator e(line::model, {.model_dir = dir.path()});
  e.train(line::endless, {.steps = 2});
  const std::string said =
      message_of([&] { e.evaluate(line::once, {.checkpoint_path = dir.path() + "/model-7.ckpt"}); });
  CHECK(said.find("model-7.ckpt") != std::string::npos);
  CHECK(said.find("model_fn") == std::string::npos);
}
