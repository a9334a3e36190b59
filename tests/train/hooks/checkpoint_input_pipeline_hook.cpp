#include <gradus/train/hooks/checkpoint_input_pipeline_hook.hpp>

#include <gradus/input/dataset.hpp>
#include <gradus/input/generator.hpp>
#include <gradus/input/range.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/hooks/checkpoint_saver_hook.hpp>
#include <gradus/train/hooks/feed_fn_hook.hpp>
#include <gradus/train/monitored_session.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "hooked.hpp"

using namespace gradus;

namespace {
any_dataset numbers() { return range_dataset(40).shuffle(40, 3).repeat(); }
std::int64_t next(any_dataset& d) {
  datum e;
  REQUIRE(d.next(e));
  return e.value<std::int64_t>(0);
}
// What the first `n` elements are when a session's initializer hook has rewound the input once.
std::vector<std::int64_t> stream(int n) {
  any_dataset d = numbers();
  next(d);
  d.rewind();
  std::vector<std::int64_t> all;
  for (int i = 0; i < n; ++i) all.push_back(next(d));
  return all;
}
std::vector<std::string> files_of(const std::string& directory) {
  std::vector<std::string> names;
  posix{}.list(directory, names);
  std::sort(names.begin(), names.end());
  return names;
}
// What an estimator's input function does to its iterator: in after_create_session, before or behind other hooks.
struct initializes {
  any_dataset* input;
  void after_create_session(hooked_session&) {
    next(*input);
    input->rewind();
  }
};
// Adds what it is fed to a variable, and counts the step.
struct summing {
  graph g;
  value step = create_global_step(g), x = g.placeholder("x", {}, int64);
  value sum = g.variable("sum", {}, {.init = zeros, .trainable = false, .type = int64});
  value next_step = assign_add(step, g.constant(1, int64)), add = assign_add(sum, x), both = g.group({next_step, add});
  scaffold parts;
};
// Lets the step's op be aborted after it ran, where a test says so.
struct aborts_at {
  std::int64_t* left;
  void after_run(run_context&, const run_values&) {
    if (--*left == 0) raise(status::aborted, "the peer is gone");
  }
};
std::string why(const std::function<void()>& call, status kind) {
  try {
    call();
  } catch (const error& e) {
    CHECK(e.kind() == kind);
    return e.what();
  }
  return "(nothing was refused)";
}
}  // namespace

TEST_CASE("in a monitored session: trained, stopped, trained again, no element is read twice or left out") {
  for (const bool initializer_first : {true, false}) {
    const testing::temp_dir dir;
    std::vector<std::int64_t> seen;
    for (const int steps : {7, 1, 12}) {
      summing m;
      any_dataset input = numbers();
      checkpoint_input_pipeline_hook saves({.model_dir = dir.path(), .save_steps = 5, .mismatch = step_mismatch::fail});
      saves.add("train", input);
      std::vector<std::int64_t> fed{0};
      const any_hook feeding = feed_fn_hook([&] {
        fed[0] = next(input);
        seen.push_back(fed[0]);
        return std::vector<feed>{{m.x, fed}};
      });
      const any_hook first = initializes{&input}, mine = std::ref(saves);
      chief_session_creator chief(sessions_of(m.g), m.g, m.parts, {.checkpoint_dir = dir.path()});
      monitored_session s(chief, {checkpoint_saver_hook(dir.path(), {.save_steps = 5, .parts = &m.parts}),
                                  initializer_first ? first : mine, initializer_first ? mine : first, feeding});
      for (int i = 0; i < steps; ++i) s.run(m.both);
      s.close();
    }
    CHECK(seen == stream(20));
    CHECK(files_of(dir.path()) ==
          std::vector<std::string>{".gradus-lock", "checkpoint", "checkpoint_input", "input-13.ckpt", "input-18.ckpt",
                                   "input-20.ckpt", "input-7.ckpt", "input-8.ckpt", "model-13.ckpt", "model-18.ckpt",
                                   "model-20.ckpt", "model-7.ckpt", "model-8.ckpt"});
  }
}

TEST_CASE("a session that is made again gets its input back as well: each step has its own element") {
  const testing::temp_dir dir;
  summing m;
  any_dataset input = numbers();
  checkpoint_input_pipeline_hook saves({.model_dir = dir.path(), .save_steps = 3, .mismatch = step_mismatch::fail});
  saves.add("train", input);
  std::int64_t until_abort = 5;
  std::vector<std::int64_t> fed{0};
  chief_session_creator chief(sessions_of(m.g), m.g, m.parts, {.checkpoint_dir = dir.path()});
  monitored_session s(chief, {checkpoint_saver_hook(dir.path(), {.save_steps = 3, .parts = &m.parts}),
                              initializes{&input}, std::ref(saves), feed_fn_hook([&] {
                                fed[0] = next(input);
                                return std::vector<feed>{{m.x, fed}};
                              }),
                              aborts_at{&until_abort}});
  while (s.run(m.step).as<std::int64_t>()[0] < 0) {
  }
  const auto sum_of = [&](int n) {
    std::int64_t sum = 0;
    const auto all = stream(n);
    for (const auto x : all) sum += x;
    return sum;
  };
  // The run above took an element as every run does; the rest are steps. Step 3 was saved, step 4 was lost.
  for (int i = 0; i < 8; ++i) s.run(m.both);
  const std::int64_t steps = s.raw_session()->variable("global_step").as<std::int64_t>()[0];
  CHECK(until_abort < 0);
  std::int64_t sum = s.raw_session()->variable("sum").as<std::int64_t>()[0];
  CHECK(sum == sum_of(static_cast<int>(steps) + 1) - stream(1)[0]);
}

TEST_CASE("what it does is what the run's configuration says") {
  run_config c{.model_dir = "runs/a",
               .save_checkpoints_steps = 20,
               .keep_checkpoint_max = 3,
               .keep_checkpoint_every_n_hours = 2,
               .restore_newest = true};
  const input_checkpoint_options o = input_checkpoint_of(c, "warn");
  CHECK((o.model_dir == "runs/a" && o.save_steps == 20 && o.save_secs == 0 && o.keep.max_to_keep == 3));
  CHECK((o.keep.keep_checkpoint_every_n_hours == 2 && o.restore_newest));
  CHECK((o.external_state == external_state_policy::warn && o.num_worker_replicas == 1));
  CHECK(input_checkpoint_of(c).external_state == external_state_policy::fail);
  const struct {
    const run_config& config() const { return c; }
    run_config c;
  } estimator{c};
  CHECK(input_checkpoint_of(estimator, external_state_policy::ignore).save_steps == 20);
  CHECK(input_checkpoint_of(run_config{.model_dir = "d"}).save_secs == 600);
  CHECK(input_checkpoint_of(run_config{.model_dir = "d", .save_checkpoints_secs = 7}).save_secs == 7);
  CHECK(why([] { input_checkpoint_of(run_config{.model_dir = "d", .save_checkpoints_secs = none}); },
            status::invalid_argument)
            .find("one of which should be provided") != std::string::npos);
  CHECK(why([] { input_checkpoint_of(run_config{}); }, status::invalid_argument).find("no model_dir") !=
        std::string::npos);
  CHECK(why([&] { input_checkpoint_of(c, "allow"); }, status::invalid_argument) ==
        "external_state_policy: expected \"fail\", \"warn\" or \"ignore\", found \"allow\"");
}

TEST_CASE("state outside the position: the first run fails, warns, or says nothing") {
  for (const auto policy : {external_state_policy::fail, external_state_policy::warn, external_state_policy::ignore}) {
    const testing::temp_dir dir;
    summing m;
    any_dataset input =
        from_generator({{"value", int64, {}}}, [] { return [](datum& e) { return e.set<std::int64_t>(0, 7), true; }; });
    std::vector<std::string> said;
    checkpoint_input_pipeline_hook saves(
        {.model_dir = dir.path(), .save_steps = 1, .external_state = policy, .log = [&](std::string_view line) {
           said.emplace_back(line);
         }});
    saves.add("train", input);
    chief_session_creator chief(sessions_of(m.g), m.g, m.parts);
    monitored_session s(chief, {std::ref(saves)});
    if (policy == external_state_policy::fail) {
      CHECK(why([&] { s.run(m.next_step); }, status::failed_precondition)
                .starts_with("the input depends on state outside its position: from_generator"));
      CHECK(why([&] { s.close(); }, status::failed_precondition).starts_with("the input depends on state outside"));
    } else {
      s.run(m.next_step);
    }
    CHECK(said.size() == (policy == external_state_policy::warn ? 2 : 0));  // two saves: at the beginning, of step 1
  }
}

TEST_CASE("an input whose position does not fit begins anew where that is allowed, and is refused else") {
  for (const saved_input how : {saved_input::required, saved_input::if_it_fits, saved_input::ignored}) {
    const testing::temp_dir dir;
    std::vector<std::string> said;
    input_checkpoint_options o{.model_dir = dir.path(), .save_steps = 5};
    o.restore_input = how, o.log = [&](std::string_view line) { said.emplace_back(line); };
    {
      any_dataset in = numbers();
      checkpoint_input_pipeline_hook saves(o);
      saves.add("train", in);
      saves.after_create_session(), saves.before_run(5);
      next(in);
      saves.after_run(6), saves.end(6);
    }
    any_dataset other = range_dataset(50).shuffle(50, 3).repeat(), same = numbers();
    checkpoint_input_pipeline_hook saves(o);
    saves.add("train", other);
    saves.after_create_session();
    if (how == saved_input::required) {
      CHECK_THROWS_AS(saves.before_run(6), data_loss);
      continue;
    }
    saves.before_run(6);
    any_dataset anew = range_dataset(50).shuffle(50, 3).repeat();
    CHECK(next(other) == next(anew));
    CHECK(said.empty() == (how == saved_input::ignored));
  }
}
