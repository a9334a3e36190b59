// A trainer on a server leads boards whose model is the same text; it evaluates what they have learned together.
#include <gradus/cluster/federated_member.hpp>
#include <gradus/cluster/federated_server.hpp>
#include <gradus/gradus.hpp>
#include <gradus/run/static_step.hpp>

#include <doctest/doctest.h>

#include <vector>

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
}  // namespace

TEST_CASE("federated rounds: a trainer leads, and knows what the boards learned") {
  auto trainer = make_trainer<line_model>(adam{}, portable{});
  CHECK_THROWS_WITH_AS(federated_server(trainer.steps().variables(), {.members = 2}),
                       "federated_server: the variables have no values; call initialize or restore a checkpoint first",
                       failed_precondition);
  board one(0), two(1);
  random_stream draw{.seed = 8};
  std::vector<float> x(64 * 2), y(64);
  const auto fill = [&](auto xs, auto ys) {
    for (float& v : xs) v = uniform_float(draw.word()) * 2 - 1;
    for (std::size_t k = 0; k < ys.size(); ++k) ys[k] = xs[2 * k] - 2 * xs[2 * k + 1];
  };
  fill(std::span(x), std::span(y));
  auto test_set = from_spans("x", x, extents{2}, "y", y, extents{1}).batch(16);
  const auto loss = [&] {
    auto data = test_set;
    return trainer.evaluate(data)["loss"];
  };
  trainer.train(test_set, {.max_steps = 1});  // what the server itself knows
  federated_server server(trainer.steps().variables(), {.members = 2});
  const double before = loss();
  for (int round = 0; round < 15; ++round) {
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
  const double after = loss();
  CAPTURE(before);
  CAPTURE(after);
  CHECK(after < 0.2 * before);
}
