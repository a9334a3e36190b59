#include <gradus/estimator/train_and_evaluate.hpp>

#include <gradus/testing/hand_tasks.hpp>
#include <gradus/train/run_environment.hpp>

#include "linear_model.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

using namespace gradus;

namespace {
// An estimator that notes who called it, and when.
class noted {
public:
  noted(run_config c, task_system t) : config_(std::move(c)), tasks_(std::move(t)) {}

  void train(const input_function&, const estimator_train_options& o) {
    note("train");
    trained = o;
  }
  evaluation_result evaluate(const input_function&, const estimator_evaluate_options& o) {
    note(text("evaluate ", o.checkpoint_path));
    if (evaluation_secs > 0) tasks_.sleep(evaluation_secs);
    evaluation_result r;
    const float loss = 1;
    if (gives_loss) r.set("loss", const_tensor_view(std::span<const float>(&loss, 1), {}));
    if (gives_step) r.set_global_step(step_of(o.checkpoint_path));
    return r;
  }
  std::string latest_checkpoint() {
    const std::lock_guard held(mutex);
    return checkpoint;
  }
  const run_config& config() const { return config_; }
  std::string model_dir() const { return dir.path(); }
  void say(const std::string&) {}
  void warn(const std::string& line) { note("warn: " + line.substr(0, 14)); }
  void note(const std::string& what) {
    const std::lock_guard held(mutex);
    notes.push_back(text(tasks_.elapsed(), " ", what));
  }
  void save(const std::string& path) {
    const std::lock_guard held(mutex);
    checkpoint = path;
  }
  std::vector<std::string> seen() {
    const std::lock_guard held(mutex);
    return notes;
  }

  testing::temp_dir dir;
  double evaluation_secs = 0;
  bool gives_step = true, gives_loss = true;
  estimator_train_options trained;

private:
  static std::int64_t step_of(const std::string& path) { return *checkpoint_step(path); }
  std::mutex mutex;
  std::string checkpoint;
  std::vector<std::string> notes;
  run_config config_;
  task_system tasks_;
};

run_config as(const std::string& cluster, const std::string& type, int index = 0, const std::string& more = {}) {
  return run_config::from_tf_config(
      text(R"({"cluster": )", cluster, R"(, "task": {"type": ")", type, R"(", "index": )", index, "}", more, "}"), {});
}
const std::string four = R"({"chief": ["a:1"], "ps": ["b:1"], "worker": ["c:1", "c:2"]})",
                  old = R"({"master": ["a:1"], "worker": ["c:1"]})", one = R"({"chief": ["a:1"]})";

// The notes of one run whose time is turned by hand until it has ended.
struct run_of {
  testing::hand_tasks hand;
  noted e;
  std::string error;
  train_and_evaluate_options o;

  explicit run_of(run_config c) : e(std::move(c), hand.tasks()) {
    o.tasks = hand.tasks();
    o.start_server = [this](const run_config& config) {
      e.note("server " + config.task_type());
      return train_and_evaluate_options::running_server{[this] { e.note("join"); }, nullptr};
    };
  }
  task_handle start(train_spec t = train_spec(line::endless, {.max_steps = 200}),
                    eval_spec v = eval_spec(line::once, {.start_delay_secs = 0, .throttle_secs = 10})) {
    return hand.tasks().start("a run", "do without", [this, t, v] {
      try {
        train_and_evaluate(e, t, v, o);
        e.note("end");
      } catch (const gradus::error& x) {
        error = x.what();
        e.note("error");
      }
    });
  }
  std::vector<std::string> to_its_end(double secs = 100) {
    const auto task = start();
    hand.advance(secs);
    return e.seen();
  }
};
using notes = std::vector<std::string>;
}  // namespace

TEST_CASE("E3 an evaluator of index 1 is refused") {
  run_of r(as(four, "evaluator", 1));
  CHECK(r.to_its_end() == notes{"0 error"});
  CHECK(r.error.find("there can only be one `evaluator` task (with task id 0). Given task id 1") != std::string::npos);
}

TEST_CASE("E4 who starts a server, trains, evaluates, joins") {
  CHECK(run_of(as(four, "chief")).to_its_end() == notes{"0 server chief", "0 train", "0 end"});
  CHECK(run_of(as(four, "worker")).to_its_end() == notes{"0 server worker", "5 train", "5 end"});
  CHECK(run_of(as(four, "ps")).to_its_end() == notes{"0 server ps", "0 join", "0 end"});
  run_of evaluator(as(four, "evaluator"));
  evaluator.e.save("model-200.ckpt");
  CHECK(evaluator.to_its_end() == notes{"0 evaluate model-200.ckpt", "0 end"});
  run_of master(as(old, "master"));
  CHECK(master.to_its_end() == notes{"0 server master", "0 train", "0 end"});
  CHECK(master.e.trained.saving_listeners.size() == 1);  // it evaluates
  CHECK(master.e.trained.max_steps == 200);
  run_of alone{run_config()};
  CHECK(alone.to_its_end() == notes{"0 train", "0 end"});
  CHECK(alone.e.trained.saving_listeners.size() == 1);
  run_of chief(as(four, "chief"));
  chief.to_its_end();
  CHECK(chief.e.trained.saving_listeners.empty());  // the evaluator does
  // A master that is empty is an error, unless there is one node.
  CHECK(run_of(as(one, "chief")).to_its_end() == notes{"0 train", "0 end"});
  run_config no_master = as(four, "chief");
  auto place = *no_master.place;
  place.master.clear();
  no_master.place = std::make_shared<const detail::run_place>(place);
  run_of refused(no_master);
  CHECK(refused.to_its_end() == notes{"0 error"});
  CHECK(refused.error.find("Could not start server of chief") == 0);
  CHECK(run_of(as(four, "chief", 0, R"(, "environment": "google")")).to_its_end() == notes{"0 train", "0 end"});
  // Roles that there are not.
  run_config strange = as(R"({"chief": ["a:1"], "local": ["b:1"], "guest": ["c:1"]})", "local");
  run_of local(strange);
  CHECK(local.to_its_end() == notes{"0 error"});
  CHECK(local.error.find("cannot be `local`") != std::string::npos);
  run_of guest(as(R"({"chief": ["a:1"], "guest": ["c:1"]})", "guest"));
  guest.to_its_end();
  CHECK(guest.error.find("Task type \"guest\" is not supported") == 0);
}

TEST_CASE("E5 worker delays: 5 (i + 1) up to 60, by max_worker_delay") {
  const auto delay = [](int i, or_none<std::int64_t> most = {}) {
    run_config c = as(R"({"chief": ["a:1"], "worker": ["0:1", "1:1", "2:1", "3:1", "4:1", "5:1", "6:1", "7:1", "8:1",
                          "9:1", "10:1", "11:1", "12:1", "13:1", "14:1", "15:1", "16:1", "17:1", "18:1", "19:1", "20:1"]})",
                      "worker", i);
    c.experimental_max_worker_delay_secs = most;
    const notes all = run_of(c).to_its_end();
    REQUIRE(all.size() == 3);
    CHECK(all[0] == "0 server worker");  // before the sleep
    return all[1];
  };
  CHECK(delay(0) == "5 train");
  CHECK(delay(1) == "10 train");
  CHECK(delay(11) == "60 train");
  CHECK(delay(20) == "60 train");
  CHECK(delay(1, std::int64_t{3}) == "3 train");
  CHECK(delay(1, std::int64_t{0}) == "0 train");
}

TEST_CASE("E6 the evaluator") {
  run_of r(as(four, "evaluator"));
  r.e.evaluation_secs = 4;
  const auto task = r.start(train_spec(line::endless, {.max_steps = 200}),
                            eval_spec(line::once, {.start_delay_secs = 30, .throttle_secs = 10}));
  r.hand.advance(29);
  CHECK(r.e.seen().empty());
  r.hand.advance(1);  // there is no checkpoint: warned at once, and every 600 seconds
  CHECK(r.e.seen() == notes{"30 warn: Estimator is n"});
  r.hand.advance(602);
  CHECK(r.e.seen().size() == 1);
  r.hand.advance(10);
  CHECK(r.e.seen() == notes{"30 warn: Estimator is n", "640 warn: Estimator is n"});
  r.e.save("model-100.ckpt");
  r.hand.advance(8);  // at 650, for 4 seconds; the next at 660 finds nothing new
  CHECK(r.e.seen().back() == "650 evaluate model-100.ckpt");
  r.hand.advance(20);
  CHECK(r.e.seen().back() == "660 warn: No new checkpo");
  r.e.save("model-200.ckpt");
  r.hand.advance(10);
  CHECK(r.e.seen().back() == "680 evaluate model-200.ckpt");
  r.hand.advance(4);
  CHECK(r.e.seen().back() == "684 end");
}

TEST_CASE("E6 an evaluation without results, and one without a step") {
  for (const bool loss : {true, false}) {
    run_of r(as(four, "evaluator"));
    r.e.gives_step = false, r.e.gives_loss = loss;
    r.e.save("model-100.ckpt");
    r.to_its_end();
    CHECK(r.error.find(loss ? "should have \"global_step\"" : "should never return empty metrics") !=
          std::string::npos);
  }
}

TEST_CASE("an evaluator without a throttle waits a second; listeners end it; a second one is refused by its role") {
  run_of r(as(four, "evaluator"));
  const auto task =
      r.start(train_spec(line::endless), eval_spec(line::once, {.start_delay_secs = 0, .throttle_secs = 0}));
  int asked = 0;
  r.hand.settle();
  r.o.listener.before_eval = [&] { return ++asked < 3; };
  run_of second(as(four, "evaluator"));
  second.hand.settle();
  train_and_evaluate_options quick;
  quick.tasks = r.hand.tasks();
  const auto try_again = [&] { train_and_evaluate(r.e, train_spec(line::endless), eval_spec(line::once), quick); };
  CHECK_THROWS_WITH_AS(try_again(),
                       doctest::Contains(text("the role \"evaluator\" in \"", r.e.model_dir(), "\" is taken").c_str()),
                       failed_precondition);
  r.hand.advance(5);
  CHECK(asked == 3);
  CHECK(r.e.seen().back() == "3 end");
}

TEST_CASE("after_eval ends an evaluator") {
  run_of r(as(four, "evaluator"));
  r.e.save("model-1.ckpt");
  std::vector<std::string> told;
  r.o.listener.after_eval = [&](const eval_outcome& o) {
    told.push_back(o.status == eval_outcome::evaluated ? o.checkpoint_path : "none");
    return told.size() < 2;
  };
  CHECK(r.to_its_end() == notes{"0 evaluate model-1.ckpt", "10 warn: No new checkpo", "10 end"});
  CHECK(told == notes{"model-1.ckpt", "none"});
}

TEST_CASE("an evaluator that is started again takes up what one before it has found") {
  run_of r(as(four, "evaluator"));
  r.e.save("runs/model-200.ckpt");
  CHECK(r.to_its_end() == notes{"0 evaluate runs/model-200.ckpt", "0 end"});
  r.to_its_end();  // at 100: it was of the last step
  CHECK(r.e.seen().back() == "100 end");
  CHECK(r.e.seen().size() == 4);  // it evaluates nothing, and says that there is nothing new
  // Killed behind an evaluation, before it was exported: its events are taken.
  run_of killed(as(four, "evaluator"));
  killed.e.save("runs/model-200.ckpt");
  {
    summary_writer<> log(killed.e.model_dir() + "/eval");
    log.add_scalar("loss", 0.25f, 200);
    log.close();
  }
  std::vector<double> losses;
  killed.o.listener.after_eval = [&](const eval_outcome& found) {
    losses.push_back(found.metrics["loss"]);
    return true;
  };
  CHECK(killed.to_its_end() == notes{"0 end"});
  CHECK(losses == std::vector<double>{0.25});
  // A training that began anew in the folder of an earlier one is evaluated, and waited for.
  run_of anew(as(four, "evaluator"));
  {
    summary_writer<> log(anew.e.model_dir() + "/eval");
    log.add_scalar("loss", 0.25f, 200);
    log.close();
  }
  publish(posix{}, anew.e.model_dir() + "/eval/evaluated", "300 model-300.ckpt");
  const auto running = anew.start();
  anew.hand.advance(5);
  CHECK(anew.e.seen() == notes{"0 warn: Estimator is n"});
  anew.e.save("runs/model-200.ckpt");
  anew.hand.advance(100);
  CHECK(anew.e.seen() == notes{"0 warn: Estimator is n", "10 evaluate runs/model-200.ckpt", "10 end"});
  // A file that is none of ours counts as none.
  run_of other(as(four, "evaluator"));
  make_directories(posix{}, other.e.model_dir() + "/eval");
  publish(posix{}, other.e.model_dir() + "/eval/evaluated", "nonsense");
  other.e.save("runs/model-200.ckpt");
  CHECK(other.to_its_end() == notes{"0 evaluate runs/model-200.ckpt", "0 end"});
}

namespace {
// An exporter that notes its calls.
struct noting_exporter {
  std::vector<std::string>* calls;
  std::string name() const { return "noting"; }
  std::string export_model(const export_call& c) const {
    calls->push_back(text(c.eval_result.global_step(), c.is_the_final_export ? " final" : ""));
    CHECK(c.export_path == c.model_dir + "/export/noting");
    CHECK(c.limits.entries == 12345);  // the config's
    return text("exported ", c.eval_result.global_step());
  }
};
// A process that is alone: saves every 10 steps.
struct local_run {
  testing::temp_dir dir;
  testing::hand_tasks hand;
  int models = 0, trainings = 0, evaluations = 0;
  std::vector<std::string> exports;
  train_and_evaluate_options o{};
  std::function<void()> in_each_step = nullptr;
  train_and_evaluate_result result{};
  std::int64_t last = 0;

  void run(std::int64_t max_steps, double throttle_secs = 0) {
    struct steps {
      local_run* r;
      void after_run(run_context& c, const run_values&) {
        r->last = c.session().global_step();
        if (r->in_each_step) r->in_each_step();
      }
    };
    estimator e(
        [this](const named_tensors& f, value y, mode m) -> estimator_spec {
          ++(m == mode::train ? trainings : evaluations);
          return line::model(f, y, m);
        },
        {.config = {.model_dir = dir.path(), .save_checkpoints_steps = 10, .limits = {.entries = 12345}},
         .tasks = hand.tasks()});
    o.tasks = hand.tasks();
    result = train_and_evaluate(
        e, train_spec(line::endless, {.max_steps = max_steps, .hooks = {steps{this}}}),
        eval_spec(line::once, {.exporters = noting_exporter{&exports}, .throttle_secs = throttle_secs}), o);
  }
};
}  // namespace

TEST_CASE("E7 local runs; E10 export results come back") {
  local_run whole;
  whole.run(22);
  CHECK(whole.trainings == 1);
  CHECK(whole.evaluations == 3);
  CHECK(whole.exports == notes{"10", "20", "22 final"});
  CHECK(whole.result.metrics.global_step() == 22);
  CHECK(whole.result.export_results == notes{"exported 22"});
  local_run twelve;
  twelve.run(12);
  CHECK(twelve.evaluations == 2);
  local_run before;
  before.o.listener.before_eval = [] { return false; };
  before.run(22);
  CHECK(before.evaluations == 0);
  CHECK(before.result.metrics.empty());
  local_run after;
  after.o.listener.after_eval = [](const eval_outcome&) { return false; };
  after.run(200);
  CHECK(after.evaluations == 1);
  CHECK(after.last < 200);
  CHECK(after.result.metrics.global_step() == 10);
}

TEST_CASE("a training that is over when it begins is evaluated and exported: a kill came before") {
  local_run r;
  r.run(22);
  r.run(22);
  CHECK(r.evaluations == 4);
  CHECK(r.exports == notes{"10", "20", "22 final", "22 final"});
  CHECK(r.result.metrics.global_step() == 22);
  CHECK(r.result.export_results == notes{"exported 22"});
  r.o.listener.before_eval = [] { return false; };
  r.run(22);
  CHECK(r.evaluations == 4);
}

namespace {
// Ends a training at a step.
struct ends_at {
  std::int64_t step;
  void after_run(run_context& c, const run_values&) {
    if (c.session().global_step() == step) c.request_stop();
  }
};
struct waiting_exporter {
  static constexpr bool only_the_final_export = true;
  std::string name() const { return "last"; }
  std::string export_model(const export_call& c) const { return c.is_the_final_export ? "exported" : ""; }
};
}  // namespace

TEST_CASE("a training that ends before max_steps warns that an exporter waits for them in vain") {
  const auto warnings_of = [](input_function data, std::optional<std::int64_t> max_steps, std::int64_t ends) {
    const testing::temp_dir dir;
    std::string lines;
    estimator e(
        [](const named_tensors& f, value y, mode m) -> estimator_spec { return line::model(f, y, m); },
        {.config = {.model_dir = dir.path()}, .log = [&](std::string_view line) { lines += text(line, "\n"); }});
    train_and_evaluate(e, train_spec(std::move(data), {.max_steps = max_steps, .hooks = {ends_at{ends}}}),
                       eval_spec(line::once, {.exporters = waiting_exporter{}, .throttle_secs = 0}));
    const auto at = lines.find("The exporter \"last\"");
    return at == std::string::npos ? std::string() : lines.substr(at, lines.find('\n', at) - at);
  };
  CHECK(warnings_of(line::endless, 22, 13) ==
        "The exporter \"last\" exported nothing: it waits for the evaluation of max_steps (22), and the training ended "
        "at "
        "step 13. export_saved_model exports the newest checkpoint.");
  CHECK(warnings_of(line::endless, 22, 100).empty());
  CHECK(warnings_of(line::once, std::nullopt, 100)
            .starts_with("The exporter \"last\" exported nothing: it waits for the evaluation of max_steps, which the "
                         "train_spec does not "
                         "have, and the training ended at step "));
}

TEST_CASE("E9 throttling skips, the last checkpoint is evaluated anyway") {
  local_run r;
  r.in_each_step = [&] { r.hand.advance(1); };
  r.run(52, 25);  // saves at 10, 20, ... seconds: evaluated at 10, 40 (25 later), and 52
  CHECK(r.exports == notes{"10", "40", "52 final"});
  local_run last;
  last.run(25, 1000);
  CHECK(last.exports == notes{"10", "25 final"});
}
