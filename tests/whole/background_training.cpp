// A run whose checkpoints are written behind training: every file holds the bits of the same save made in place.
#include <doctest/doctest.h>

#include "gradus/checkpoint/background.hpp"
#include "gradus/checkpoint/on_signal.hpp"
#include "gradus/input/memory.hpp"
#include "gradus/ops/layer.hpp"
#include "gradus/testing/temp_dir.hpp"
#include "gradus/train/trainer.hpp"
#include "gradus/update/rules/adam.hpp"

using namespace gradus;

namespace {
model_spec model(graph& g) {
  const auto x = g.placeholder("x", {batch, 4});
  const auto y = g.placeholder("y", {batch, 1});
  const auto hidden = tanh(dense(x, {.units = 600, .name = "hidden"}));
  const auto deep = tanh(dense(hidden, {.units = 600, .name = "deep"}));  // 360,000 weights: more than one piece
  const auto guess = dense(deep, {.units = 1, .name = "out"});
  const auto error = guess - y;
  return {.loss = reduce_mean(square(error))};
}
std::vector<float> ramp(std::size_t n) {
  std::vector<float> out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<float>(i % 13) / 13.f;
  return out;
}
const std::vector<float> xs = ramp(32), ys = ramp(8);
auto data() { return from_spans("x", xs, extents{4}, "y", ys, extents{1}).shuffle(8, 3).repeat().batch(2); }

template <class... Policies>
void train(const std::string& directory, const Policies&... policies) {
  auto t = make_trainer(model, adam{.rate = 1e-3}, policies...,
                        run_config{.model_dir = directory, .save_summary_steps = 0, .keep_checkpoint_max = 0});
  t.train(data(), {.max_steps = 8});
}
std::vector<std::vector<std::byte>> checkpoints(const std::string& directory) {
  std::vector<std::vector<std::byte>> out;
  for (const int step : {0, 3, 6, 8})
    out.push_back(read_file(posix{}, join_path(directory, text("model-", step, ".ckpt"))));
  return out;
}
struct raises {  // a signal after step 5
  using policy_for = kind::log_sink;
  void line(std::string_view) {}
  void step(const progress_report& r, bool) {
    if (r.step == 5) std::raise(SIGUSR1);
  }
};
}  // namespace

TEST_CASE("background training: copied, rolling and forked saves hold what saves in place hold") {
  const testing::temp_dir dir;
  const auto path = [&](std::string_view name) { return join_path(dir.path(), name); };
  train(path("in_place"), every_steps{3});
  const auto expected = checkpoints(path("in_place"));
  train(path("copy"), every_steps{3}, copy_snapshot{});
  CHECK(checkpoints(path("copy")) == expected);
  train(path("rolling"), every_steps{3}, rolling_snapshot{.piece = 10000});
  CHECK(checkpoints(path("rolling")) == expected);
  train(path("fork"), every_steps{3}, fork_snapshot{});
  CHECK(checkpoints(path("fork")) == expected);
}

TEST_CASE("background training: a signal makes a checkpoint and ends training; the next run goes on from there") {
  const testing::temp_dir dir;
  train(join_path(dir.path(), "whole"), every_steps{3});
  const auto part = join_path(dir.path(), "part");
  train(part, any_of{every_steps{3}, on_signal{SIGUSR1}}, raises{}, copy_snapshot{});
  CHECK(checkpoint_step(latest_checkpoint(posix{}, part)) == 5);
  train(part, any_of{every_steps{3}, on_signal{SIGUSR1}});
  CHECK(checkpoints(part) == checkpoints(join_path(dir.path(), "whole")));
}
