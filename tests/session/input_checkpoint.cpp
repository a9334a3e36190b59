#include <gradus/session/input_checkpoint.hpp>

#include <gradus/input/dataset.hpp>
#include <gradus/input/generator.hpp>
#include <gradus/input/range.hpp>
#include <gradus/testing/clock.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <algorithm>

#include "../message.hpp"

using namespace gradus;

namespace {

std::vector<std::string> files_of(const std::string& directory) {
  std::vector<std::string> names;
  posix{}.list(directory, names);
  std::sort(names.begin(), names.end());
  return names;
}
any_dataset numbers() { return range_dataset(40).shuffle(40, 3).repeat(); }
std::int64_t next(any_dataset& d) {
  datum e;
  REQUIRE(d.next(e));
  return e.value<std::int64_t>(0);
}
any_dataset callback() {
  return from_generator({{"value", int64, {}}},
                        [] { return [](datum& e) { return e.set<std::int64_t>(0, 7), true; }; });
}

}  // namespace

TEST_CASE("train, stop, train again: no element twice, none left out") {
  const testing::temp_dir dir;
  auto reference = numbers();
  std::vector<std::int64_t> all, seen;
  for (int i = 0; i < 100; ++i) all.push_back(next(reference));
  std::int64_t step = 0;
  for (const int steps : {7, 1, 30, 62}) {
    auto input = numbers();
    checkpoint_input_pipeline_hook hook({.model_dir = dir.path(), .save_steps = 10});
    hook.add("train", input);
    hook.begin();
    next(input), next(input);  // another hook may use it, or rewind it, before the first step
    hook.after_create_session();
    input.rewind();
    for (int i = 0; i < steps; ++i) {
      hook.before_run(step);
      seen.push_back(next(input));
      hook.after_run(++step);
    }
    hook.end(step);
  }
  // What the first session did before its first step is part of the stream: rewound, it was at the second iteration.
  auto second = numbers();
  next(second);
  second.rewind();
  std::vector<std::int64_t> expected;
  for (int i = 0; i < 100; ++i) expected.push_back(next(second));
  CHECK(seen == expected);
  CHECK(files_of(dir.path()) == std::vector<std::string>{"checkpoint_input", "input-100.ckpt", "input-68.ckpt",
                                                         "input-78.ckpt", "input-88.ckpt", "input-98.ckpt"});
}

TEST_CASE("workers save their own, and nobody touches the model's") {
  const testing::temp_dir dir;
  publish(posix{}, dir / "checkpoint", "model_checkpoint_path: \"model-5.ckpt\"\n");
  publish(posix{}, dir / "model-5.ckpt.gradus-tmp-0", "being written");
  for (const int id : {0, 1}) {
    auto input = numbers();
    for (int i = 0; i <= id; ++i) next(input);
    checkpoint_input_pipeline_hook hook({.model_dir = dir.path(),
                                         .save_steps = 1,
                                         .task_id = id,
                                         .num_worker_replicas = 2,
                                         .keep = {.max_to_keep = 1}});
    hook.add("train", input);
    hook.before_run(5);
    next(input);
    hook.after_run(6);
    hook.end(6);
  }
  CHECK(files_of(dir.path()) == std::vector<std::string>{"checkpoint", "checkpoint_input_worker_0",
                                                         "checkpoint_input_worker_1", "input_worker_0-6.ckpt",
                                                         "input_worker_1-6.ckpt", "model-5.ckpt.gradus-tmp-0"});
  const auto model = read_file(posix{}, dir / "checkpoint");
  CHECK(std::string(reinterpret_cast<const char*>(model.data()), model.size()) ==
        "model_checkpoint_path: \"model-5.ckpt\"\n");
  for (const int id : {0, 1}) {
    auto reference = numbers(), input = numbers();
    for (int i = 0; i < id + 2; ++i) next(reference);
    checkpoint_input_pipeline_hook hook(
        {.model_dir = dir.path(), .save_steps = 1, .task_id = id, .num_worker_replicas = 2});
    hook.add("train", input);
    hook.before_run(6);
    CHECK(next(input) == next(reference));
  }
}

TEST_CASE("steps that differ") {
  const testing::temp_dir dir;
  auto input = numbers();
  {
    checkpoint_input_pipeline_hook hook({.model_dir = dir.path(), .save_steps = 100});
    hook.add("train", input);
    hook.before_run(3);
  }
  std::vector<std::string> said;
  const auto restore = [&](step_mismatch how, std::int64_t step) {
    checkpoint_input_pipeline_hook hook(
        {.model_dir = dir.path(), .save_steps = 100, .mismatch = how, .log = [&](std::string_view line) {
           said.emplace_back(line);
         }});
    hook.add("train", input);
    hook.before_run(step);
  };
  restore(step_mismatch::warn, 3);
  restore(step_mismatch::ignore, 4);
  CHECK(said.empty());
  restore(step_mismatch::warn, 4);
  REQUIRE(said.size() == 1);
  CHECK(said[0] == text("the input's checkpoint \"", dir / "input-3.ckpt",
                        "\" is of step 3, the model's of step 4: elements are read again"));
  CHECK(message_of(status::failed_precondition, [&] { restore(step_mismatch::fail, 2); }).find("left out; remove") !=
        std::string::npos);
}

TEST_CASE("state outside: fail, warn, ignore") {
  const testing::temp_dir dir;
  std::vector<std::string> said;
  const auto save = [&](any_dataset d, external_state_policy policy) {
    checkpoint_input_pipeline_hook hook(
        {.model_dir = dir.path(), .save_steps = 1, .external_state = policy, .log = [&](std::string_view line) {
           said.emplace_back(line);
         }});
    hook.add("train", d);
    hook.end(1);
  };
  for (const auto policy : {external_state_policy::fail, external_state_policy::warn, external_state_policy::ignore})
    save(numbers(), policy);
  CHECK(said.empty());
  const auto refused = message_of(status::failed_precondition,
                                  [&] { save(callback().shuffle(3).batch(2), external_state_policy::fail); });
  CHECK(refused.starts_with("the input depends on state outside its position: from_generator"));
  save(callback().shuffle(3).batch(2), external_state_policy::ignore);
  CHECK(said.empty());
  save(callback().shuffle(3).batch(2), external_state_policy::warn);
  REQUIRE(said.size() == 1);
  CHECK(said[0].starts_with("the input depends on state outside its position: from_generator; restored"));
  CHECK(parse_external_state_policy("warn") == external_state_policy::warn);
  CHECK(message_of(status::invalid_argument, [] { parse_external_state_policy("none"); }) ==
        "external_state_policy: expected \"fail\", \"warn\" or \"ignore\", found \"none\"");
}

TEST_CASE("by seconds, and options that mean nothing") {
  const testing::temp_dir dir;
  auto input = numbers();
  testing::hand_clock time;
  checkpoint_input_pipeline_hook<posix, testing::hand_clock> hook({.model_dir = dir.path(), .save_secs = 10}, {}, time);
  hook.add("train", input);
  hook.before_run(0);
  time.advance(9);
  hook.after_run(1);
  CHECK(hook.checkpoints().size() == 1);
  time.advance(1);
  hook.after_run(2);
  CHECK(hook.checkpoints() == std::vector<std::string>{"input-0.ckpt", "input-2.ckpt"});
  const auto refused = [&](input_checkpoint_options o) {
    return message_of(status::invalid_argument, [&] { checkpoint_input_pipeline_hook{std::move(o)}; });
  };
  CHECK(refused({.model_dir = dir.path()}).find("exactly one") != std::string::npos);
  CHECK(refused({.model_dir = dir.path(), .save_steps = 1, .save_secs = 1}).find("exactly one") != std::string::npos);
  CHECK(refused({.model_dir = "", .save_steps = 1}).find("model_dir") != std::string::npos);
  checkpoint_input_pipeline_hook nothing({.model_dir = dir.path(), .save_steps = 1});
  CHECK(message_of(status::failed_precondition, [&] { nothing.begin(); }).find("no input") != std::string::npos);
}

TEST_CASE("in the model's checkpoint") {
  const testing::temp_dir dir;
  auto input = numbers(), reference = numbers();
  float w = 3;
  const auto with_list = [&](auto&& use) {
    auto position = make_saveable_from_iterator(input);
    state_list list;
    list.scalar("w", w);
    position.remembers(list);
    use(list);
  };
  next(input), next(reference);
  saver s;
  with_list([&](const state_list& list) { s.save(list, dir / "model", 1); });
  next(input), w = 0;
  with_list([&](const state_list& list) { CHECK(s.restore_latest(list, dir.path())->step == 1); });
  CHECK(w == 3);
  CHECK(next(input) == next(reference));
}
