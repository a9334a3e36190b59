// A trainer on a server leads boards whose model is the same text; it evaluates what they have learned together.
#include <gradus/cluster/federated_member.hpp>
#include <gradus/cluster/federated_server.hpp>
#include <gradus/gradus.hpp>
#include <gradus/run/static_step.hpp>

#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/supervisor.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "../message.hpp"
#include "../train/run_files.hpp"

using namespace gradus;

namespace {
constexpr auto line_model = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 2}), y = g.placeholder("y", {batch, 1});
  const auto out = dense(batch_norm(x, {.name = "norm"}), {.units = 1, .name = "out"});
  return model_spec{.loss = reduce_mean(squared_difference(out, y)), .metrics = {}, .predictions = {{"out", out}}};
};
struct board {
  using trainer_type =
      decltype(make_static_stepper<line_model>(static_batch<8>{}, gradient_descent{.rate = 0.1}, portable{}));
  trainer_type trainer{static_batch<8>{}, gradient_descent{.rate = 0.1}, portable{}};
  std::byte room[trainer_type::variable_bytes];
  federated_member<trainer_type> member;
  explicit board(std::uint16_t number) : member(trainer, number, room) { trainer.initialize(number); }
};
random_stream draw{.seed = 8};
void fill(auto xs, auto ys) {
  for (float& v : xs) v = uniform_float(draw.word()) * 2 - 1;
  for (std::size_t k = 0; k < ys.size(); ++k) ys[k] = xs[2 * k] - 2 * xs[2 * k + 1];
}
// Rounds of two boards, each with four steps on examples of its own.
void lead(federated_server& server, board& one, board& two, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    const auto frame = server.begin_round();
    for (board* b : {&one, &two}) {
      b->member.receive(frame);
      REQUIRE(b->member.has_round());
      for (int i = 0; i < 4; ++i) {
        fill(b->trainer.input<"x">(), b->trainer.input<"y">());
        b->trainer.step();
      }
      const int number = b == &two;
      const auto sent = b->member.send(32, [&](std::span<const std::byte> piece) { server.receive(number, piece); });
      CHECK(sent == federated_answer::taken);
    }
    CHECK(server.end_round().members == 2);
  }
}
auto examples() {
  static std::vector<float> x(64 * 2), y(64);
  fill(std::span(x), std::span(y));
  return from_spans("x", x, extents{2}, "y", y, extents{1}).batch(16);
}
}  // namespace

TEST_CASE("federated rounds: a trainer leads, and knows what the boards learned") {
  auto trainer = make_trainer<line_model>(adam{}, portable{});
  CHECK_THROWS_WITH_AS(federated_server(trainer.steps().variables(), {.members = 2}),
                       "federated_server: the variables have no values; call initialize or restore a checkpoint first",
                       failed_precondition);
  board one(0), two(1);
  auto test_set = examples();
  const auto loss = [&] {
    auto data = test_set;
    return trainer.evaluate(data)["loss"];
  };
  trainer.train(test_set, {.max_steps = 1});  // what the server itself knows
  federated_server server(trainer.steps().variables(), {.members = 2});
  const double before = loss();
  lead(server, one, two, 15);
  const double after = loss();
  CAPTURE(before);
  CAPTURE(after);
  CHECK(after < 0.2 * before);
}

// What the boards have learned is the trainer's state as what it has trained itself: it is evaluated, saved, and
// trained on, also where the trainer has only read a checkpoint.
TEST_CASE("federated rounds: a trainer that has read a checkpoint evaluates the mean, saves it and trains on") {
  for (const bool trains : {false, true}) {
    CAPTURE(trains);
    const gradus::testing::temp_dir dir;
    const auto make = [&] { return make_trainer<line_model>(adam{}, run_config{.model_dir = dir.path()}, portable{}); };
    auto test_set = examples();
    const auto loss_of = [&](auto& trainer) {
      auto data = test_set;
      return trainer.evaluate(data)["loss"];
    };
    make().train(test_set, {.max_steps = 3});
    auto trainer = make();
    if (trains) {
      auto data = test_set;
      trainer.train(data, {.max_steps = 3});  // stands there: it has restored, and trained nothing
    }
    const double before = loss_of(trainer);
    board one(0), two(1);
    federated_server server(trainer.steps().variables(), {.members = 2});
    lead(server, one, two, 15);
    const double after = loss_of(trainer);
    CHECK(after < 0.2 * before);
    CHECK(loss_of(trainer) == after);
    {
      auto reader = make();
      CHECK(loss_of(reader) == before);
    }
    // A call of train that makes no step saves.
    auto data = test_set;
    trainer.train(data, {.max_steps = 3});
    CHECK(trainer.global_step() == 3);
    auto reader = make();
    CHECK(loss_of(reader) == after);
    CHECK(loss_of(trainer) == after);
    // Another round behind the save, and then steps.
    lead(server, one, two, 1);
    const double later = loss_of(trainer);
    CHECK(later != after);
    data = test_set;
    trainer.train(data, {.max_steps = 4});
    CHECK(trainer.global_step() == 4);
    CHECK(loss_of(trainer) < 2 * later);
    auto last = make();
    CHECK(loss_of(last) == loss_of(trainer));
  }
}

// A later call of train begins where the checkpoint says that the input was, as one does after an evaluation.
TEST_CASE("federated rounds: the input of a trainer that has read a checkpoint goes on behind the rounds") {
  const gradus::testing::temp_dir dir;
  const auto make = [&] { return make_trainer<line_model>(adam{}, run_config{.model_dir = dir.path()}, portable{}); };
  auto test_set = examples();
  make().train(test_set, {.max_steps = 1});
  auto trainer = make();
  auto fresh = examples();
  trainer.evaluate(fresh);
  board one(0), two(1);
  federated_server server(trainer.steps().variables(), {.members = 2});
  lead(server, one, two, 1);
  const auto loss = [&] {
    auto data = fresh;
    return trainer.evaluate(data)["loss"];
  };
  const double mean = loss();
  // Another input does not fit the saved position; the mean stays.
  const std::vector<float> x(64), y(32);
  auto other = from_spans("x", x, extents{2}, "y", y, extents{1}).shuffle(3, 1).batch(16);
  CHECK_THROWS_AS(trainer.train(other, {.max_steps = 9}), error);
  CHECK(loss() == mean);
  auto data = examples();  // four batches, of which the checkpoint has read one
  trainer.train(data, {.max_steps = 9});
  CHECK(trainer.global_step() == 4);
}

TEST_CASE("federated rounds: a profile would drop what no checkpoint has, and drops its own steps") {
  const gradus::testing::temp_dir dir;
  const auto make = [&] { return make_trainer<line_model>(adam{}, run_config{.model_dir = dir.path()}, portable{}); };
  auto test_set = examples();
  make().train(test_set, {.max_steps = 2});
  auto trainer = make();
  const auto loss = [&] {
    auto data = test_set;
    return trainer.evaluate(data)["loss"];
  };
  const double saved = loss();
  board one(0), two(1);
  federated_server server(trainer.steps().variables(), {.members = 2});
  lead(server, one, two, 1);
  const double mean = loss();
  CHECK(mean != saved);
  auto data = test_set;
  data.rewind();
  CHECK(says(message_of(status::failed_precondition, [&] { trainer.profile(data, 2); }),
             "values of step 2 that no checkpoint has; let train save them"));
  CHECK(loss() == mean);
  auto same = test_set;
  trainer.train(same, {.max_steps = 2});
  trainer.profile(data, 2);
  CHECK(loss() == mean);
  // Rounds that begin in the steps of a profile.
  data.rewind();
  trainer.profile(data, 2);
  lead(server, one, two, 1);
  CHECK(says(message_of(status::failed_precondition, [&] { loss(); }), "after steps that are dropped"));
  CHECK(loss() == mean);
}

// Another run, or an older checkpoint that was read by its path: a save would replace what came of the newest one.
TEST_CASE("federated rounds: a mean that came of an older checkpoint than the newest is not saved over it") {
  for (const bool by_path : {false, true}) {
    CAPTURE(by_path);
    const gradus::testing::temp_dir dir;
    const auto make = [&] {
      return make_trainer<line_model>(adam{}, run_config{.model_dir = dir.path(), .save_checkpoints_steps = 1},
                                      portable{});
    };
    const auto trains_to = [&](std::int64_t step) {
      auto other = make();
      auto data = examples();
      other.train(data, {.max_steps = step});
      return other.global_step();
    };
    trains_to(by_path ? 3 : 1);
    auto trainer = make();
    auto data = examples();
    if (by_path)
      trainer.evaluate(data, {.checkpoint_path = dir / "model-1.ckpt"});
    else
      trainer.evaluate(data);
    CHECK(trainer.global_step() == 1);
    if (!by_path) trains_to(3);
    board one(0), two(1);
    federated_server server(trainer.steps().variables(), {.members = 2});
    lead(server, one, two, 2);
    auto again = examples();
    const std::string said = message_of(status::failed_precondition, [&] { trainer.train(again, {.max_steps = 5}); });
    CHECK(says(said, "model-3.ckpt\""));
    CHECK(says(said, "which a save would replace"));
    CHECK(trains_to(3) == 3);
  }
}

// The newest checkpoint is damaged and was passed over: the older one is what the run goes on from.
TEST_CASE("federated rounds: a mean that came of the checkpoint that a fallback chose is saved") {
  const gradus::testing::temp_dir dir;
  const auto make = [&] {
    return make_trainer<line_model>(
        adam{}, run_config{.model_dir = dir.path(), .save_checkpoints_steps = 1, .restore_fallback = true}, portable{});
  };
  auto test_set = examples();
  make().train(test_set, {.max_steps = 3});
  std::filesystem::resize_file(dir / "model-3.ckpt", 100);
  auto trainer = make();
  auto data = examples();
  trainer.evaluate(data);
  CHECK(trainer.global_step() == 2);
  board one(0), two(1);
  federated_server server(trainer.steps().variables(), {.members = 2});
  lead(server, one, two, 2);
  auto again = examples();
  trainer.train(again, {.max_steps = 4});
  CHECK(trainer.global_step() == 4);
}

// What restart_mirrors began anew stays so: only the input is read from the checkpoint.
TEST_CASE("federated rounds: slots that begin anew behind the rounds are not those of the checkpoint") {
  const gradus::testing::temp_dir dir;
  const auto make = [&] {
    return make_trainer<line_model>(momentum{.rate = 0.1}, run_config{.model_dir = dir.path()}, portable{});
  };
  auto test_set = examples();
  make().train(test_set, {.max_steps = 2});
  auto trainer = make();
  auto data = test_set;
  data.rewind();
  trainer.evaluate(data);
  board one(0), two(1);
  federated_server server(trainer.steps().variables(), {.members = 2});
  lead(server, one, two, 1);
  trainer.steps().restart_mirrors();
  auto same = test_set;
  trainer.train(same, {.max_steps = 2});
  const auto saved = run_files::newest_checkpoint(posix{}, dir.path());
  int slots = 0;
  for (const auto& [name, content] : saved.records)
    if (name.find("/Momentum ") != std::string::npos) {
      ++slots;
      CHECK(std::ranges::all_of(content, [](auto b) { return b == decltype(b){}; }));
    }
  CHECK(slots > 0);
}

TEST_CASE("federated rounds: a supervisor's session that ends with rounds saves their mean") {
  const gradus::testing::temp_dir dir;
  auto sv = make_supervisor<line_model>({.logdir = dir.path()}, adam{}, portable{});
  const auto bias_of = [](auto& session) {
    variable_arena& all = session.steps().variables();
    return *reinterpret_cast<const float*>(all.value(static_cast<std::size_t>(all.find("out/bias"))));
  };
  auto test_set = examples();
  float mean = 0;
  {
    auto session = sv.managed_session("", test_set);
    session.run();
    session.save();
    const float before = bias_of(session);
    board one(0), two(1);
    federated_server server(session.steps().variables(), {.members = 2});
    lead(server, one, two, 2);
    mean = bias_of(session);
    CHECK(mean != before);
  }
  auto session = sv.managed_session("", test_set);
  CHECK(bias_of(session) == mean);
}
