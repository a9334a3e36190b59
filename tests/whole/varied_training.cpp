// one thread: nothing here runs at the same time
// A trainer and a supervisor whose settings follow schedules, functions of the program among them: the bits of an
// updater driven by hand with the same policies, also when the run is stopped and another process goes on. The loss is
// linear in the weights, so that the gradient of a step is its example: nothing of the model comes between.
#include <gradus/gradus.hpp>
#include <gradus/testing/faulty_files.hpp>
#include <gradus/train/supervisor.hpp>

#include <doctest/doctest.h>

#include <cstring>

using namespace gradus;
using gradus::testing::faulty_files;

namespace {

constexpr auto linear = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 3});
  const auto w = g.variable("w", {3}, {.init = ones});
  return model_spec{.loss = reduce_mean(reduce_sum(x * w, {1})), .metrics = {}, .predictions = {}};
};
constexpr std::int64_t last = 10;
const std::vector<float> examples = [] {
  std::vector<float> x;
  std::uint32_t state = 3;
  for (std::int64_t i = 0; i < 3 * last; ++i)
    x.push_back(static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) / 8388608.f - 1);
  return x;
}();
auto data() { return from_spans("x", examples, extents{3}).batch(1); }

// Everything that `hand` remembers, `run` has with the same bits.
void same_state(state_list& hand, const state_list& run) {
  CHECK(hand.entries().size() >= 2);  // the weights, and something of the optimizer's
  for (const state_entry& e : hand.entries()) {
    INFO(e.name);
    const auto* other = run.find(e.name);
    REQUIRE(other != nullptr);
    REQUIRE(other->bytes.size() == e.bytes.size());
    CHECK(std::memcmp(other->bytes.data(), e.bytes.data(), e.bytes.size()) == 0);
  }
}
template <class... Policies>
void as_by_hand(const Policies&... policies) {
  updater hand{policies...};
  std::vector<float> w{1, 1, 1};
  hand.track("w", w);
  for (std::size_t i = 0; i < last; ++i)
    hand.apply({{"w", std::vector<float>(&examples[3 * i], &examples[3 * i] + 3)}});
  state_list expected;
  hand.remembers(expected);

  for (const std::int64_t stop : {0, 1, 4, 7, 9}) {  // 0: never
    CAPTURE(stop);
    const faulty_files of_trainer, of_supervisor;
    const auto train_to = [&](std::int64_t step) {
      auto trainer = make_trainer(linear, policies..., of_trainer, run_config{.model_dir = "run"});
      trainer.train(data(), {.max_steps = step});
      CHECK(trainer.global_step() == step);
      if (step == last) same_state(expected, trainer.state());
    };
    const auto supervise_to = [&](std::int64_t step) {
      auto input = data();
      auto supervisor = make_supervisor<linear>({.logdir = "run"}, policies..., of_supervisor);
      auto session = supervisor.managed_session("", input);
      while (session.global_step() < step) REQUIRE(session.run());
      if (step != last) return;
      state_list list;
      session.steps().remembers(list);
      same_state(expected, list);
    };
    if (stop != 0) train_to(stop), supervise_to(stop);
    train_to(last), supervise_to(last);
  }
}

}  // namespace

TEST_CASE("a setting and the rate by functions of the program, and a clip by a schedule") {
  const auto beta = [](std::int64_t step) { return 0.5 + 0.04 * static_cast<double>(step); };
  const auto rate = [](std::int64_t step) { return 0.1 / static_cast<double>(1 + step); };
  as_by_hand(
      adam{}, vary<&adam::beta1>(beta), rate, clip_by_global_norm{},
      vary<&clip_by_global_norm::max_norm>(exponential_decay{.initial = 1, .decay_steps = 1, .decay_rate = 0.75}));
}
TEST_CASE("the rate by vary, and a number of micro-batches that changes") {
  const cosine_decay rate{.initial = 0.5, .decay_steps = 6, .alpha = 0.1};
  as_by_hand(momentum{}, vary<&momentum::rate>(rate), accumulate{},
             vary<&accumulate::every>([](std::int64_t step) { return 1 + step % 3; }));
}
