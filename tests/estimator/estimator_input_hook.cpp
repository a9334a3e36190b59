#include <gradus/estimator/estimator_input_hook.hpp>

#include <gradus/codec/state_file.hpp>
#include <gradus/input/generator.hpp>
#include <gradus/testing/hand_tasks.hpp>

#include "linear_model.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <set>
#include <string>

using namespace gradus;
using doctest::Approx;

namespace {
run_config saving(const std::string& directory, double every) {
  return {.model_dir = directory, .save_checkpoints_steps = every};
}
float weight(const estimator& e) { return e.get_variable_value("w").as<float>()[0]; }
template <class Error>
std::string refusal(auto&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "(nothing was refused)";
}
}  // namespace

TEST_CASE("a call of train reads on where the last one ended") {
  const testing::temp_dir with, without;
  {
    estimator e(line::model, {.config = saving(with.path(), 100)});
    e.train(line::endless, {.steps = 3, .hooks = {estimator_input_hook(e)}});
    e.evaluate(line::once);
    e.train(line::endless, {.steps = 3, .hooks = {estimator_input_hook(e)}});
    CHECK(weight(e) == Approx(line::fitted(6).w));
  }
  estimator again(line::model, {.config = saving(with.path(), 100)});  // as another process
  again.train(line::endless, {.steps = 1, .hooks = {estimator_input_hook(again)}});
  CHECK(weight(again) == Approx(line::fitted(7).w));

  estimator anew(line::model, {.config = saving(without.path(), 100)});
  anew.train(line::endless, {.steps = 3});
  anew.train(line::endless, {.steps = 3});
  CHECK(weight(anew) == Approx(line::fitted(3).train(3).w));
  CHECK(weight(anew) != Approx(line::fitted(6).w));
}

TEST_CASE("a training that ended in the middle goes on with the bits of one that did not") {
  struct stops {
    int left;
    void after_run(run_context&, const run_values&) {
      if (--left == 0) raise(status::data_loss, "the disk is gone");
    }
  };
  const testing::temp_dir whole, broken;
  estimator a(line::model, {.config = saving(whole.path(), 3)});
  a.train(line::endless, {.max_steps = 11, .hooks = {estimator_input_hook(a)}});

  estimator b(line::model, {.config = saving(broken.path(), 3)});
  const auto train = [&](int steps) {
    b.train(line::endless, {.max_steps = 11, .hooks = {estimator_input_hook(b), stops{steps}}});
  };
  CHECK_THROWS_AS(train(5), data_loss);  // the newest checkpoint is of an earlier step
  CHECK_THROWS_AS(train(3), data_loss);
  train(100);
  CHECK(weight(b) == weight(a));
  CHECK(weight(b) == Approx(line::fitted(11).w));
}

TEST_CASE("its files are beside the model's") {
  const testing::temp_dir dir;
  estimator e(line::model, {.config = saving(dir.path(), 2)});
  e.train(line::endless, {.steps = 4, .hooks = {estimator_input_hook(e, "ignore")}});
  CHECK(std::filesystem::exists(dir.path() + "/input-4.ckpt"));
  CHECK(std::filesystem::exists(dir.path() + "/checkpoint_input"));
  CHECK(e.latest_checkpoint().find("model") != std::string::npos);
}

TEST_CASE("what it refuses") {
  const testing::temp_dir dir;
  estimator e(line::model, {.config = saving(dir.path(), 2)});
  estimator_input_hook hook(e);
  CHECK(refusal<failed_precondition>([&] { hook.begin(); }) ==
        "estimator_input_hook: the estimator reads no input now; give the hook to est.train(input_fn, {.hooks = ...})");
  CHECK(refusal<invalid_argument>([&] { estimator_input_hook(e, "perhaps"); }).find("perhaps") != std::string::npos);
  estimator saves_nothing(line::model, {.config = {.model_dir = dir.path(), .save_checkpoints_steps = none}});
  CHECK(refusal<invalid_argument>([&] { estimator_input_hook{saves_nothing}; }).find("saves no checkpoints") !=
        std::string::npos);

  const auto random_numbers = [] {
    return labelled(
        from_generator({{"x", float32, {}}, {"y", float32, {}}}, [] { return [](datum&) { return false; }; }).batch(2),
        {"y"});
  };
  const std::string said =
      refusal<failed_precondition>([&] { e.train(random_numbers, {.steps = 1, .hooks = {estimator_input_hook(e)}}); });
  CHECK(
      said.starts_with("estimator_input_hook: the input depends on state outside its position: from_generator; give "
                       "external_state_policy::ignore, or warn, as the hook's second argument"));
  CHECK_NOTHROW(
      e.train(random_numbers, {.steps = 1, .hooks = {estimator_input_hook(e, external_state_policy::ignore)}}));
}

// Ten seconds a step by the estimator's clock, which no time of the system comes near.
TEST_CASE("seconds between saves are those of the estimator's clock, as its model's") {
  const testing::temp_dir place;
  testing::hand_tasks hand;
  struct slow {
    testing::hand_tasks* hand;
    void after_run(run_context&, const run_values&) { hand->advance(10); }
  };
  estimator e(line::model,
              {.config = {.model_dir = place.path(), .save_checkpoints_secs = 25, .keep_checkpoint_max = 0},
               .tasks = hand.tasks()});
  e.train(line::endless, {.steps = 8, .hooks = {slow{&hand}, estimator_input_hook(e)}});
  std::set<std::string> inputs;
  for (const auto& file : std::filesystem::directory_iterator(place.path()))
    if (const std::string name = file.path().filename().string(); name.starts_with("input-")) inputs.insert(name);
  CHECK(inputs.size() == 4);  // at the beginning, after 30 and 60 s, and at the end
  CHECK(inputs.contains("input-3.ckpt"));
  CHECK(inputs.contains("input-6.ckpt"));
}
