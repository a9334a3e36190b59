#include "gradus/train/warm_start.hpp"

#include <doctest/doctest.h>

#include "gradus/codec/safetensors.hpp"
#include "gradus/input/memory.hpp"
#include "gradus/ops/layer.hpp"
#include "gradus/ops/metric.hpp"
#include "gradus/testing/faulty_files.hpp"
#include "gradus/testing/temp_dir.hpp"
#include "gradus/train/run_hooks.hpp"
#include "gradus/train/trainer.hpp"
#include "gradus/train/validation.hpp"
#include "gradus/update/rules/momentum.hpp"

using namespace gradus;
using testing::faulty_files;

namespace {
model_spec line(graph& g) {
  const auto x = g.placeholder("x", {batch, 2});
  const auto y = g.placeholder("y", {batch, 1});
  const auto guess = dense(x, {.units = 1, .name = "out"});
  const auto error = guess - y;
  return {.loss = reduce_mean(square(error))};
}
std::vector<float> values(auto& trainer, std::string_view name) {
  const state_list list = trainer.state();
  const auto* e = list.find(name);
  REQUIRE(e != nullptr);
  const auto* p = reinterpret_cast<const float*>(e->bytes.data());
  return {p, p + e->bytes.size() / sizeof(float)};
}
const std::vector<float> xs = {1, 2, 3, 4, 5, 6, 7, 8}, ys = {1, 2, 3, 4};
auto data() { return from_spans("x", xs, extents{2}, "y", ys, extents{1}).repeat().batch(4); }

template <class... Policies>
auto run(const faulty_files& fs, std::string dir, const Policies&... policies) {
  return make_trainer(line, momentum{.rate = 0.01, .decay = 0.9}, fs,
                      run_config{.model_dir = std::move(dir), .tf_random_seed = 7, .checkpoint_save_graph_def = false},
                      policies...);
}
}  // namespace

TEST_CASE(
    "warm_start_from: variables of another run; fresh slots, or taken over where a list says so; skipped on resume") {
  const faulty_files fs;
  auto before = run(fs, "a", safetensors{});
  before.train(data(), {.steps = 5});
  const auto kernel = values(before, "out/kernel"), slot = values(before, "out/kernel/Momentum");
  REQUIRE(slot[0] != 0);

  // The checkpoint of step 0 holds what the run began with.
  const auto begun_with = [&](std::string dir, const auto& from) {
    auto t = run(fs, dir, from, every_steps{1000});
    t.train(data(), {.steps = 1});
  };
  const auto at_step_0 = [&](std::string dir, std::string_view name) {
    auto t = run(fs, dir);
    state_list list = t.state();
    saver<flat_binary, faulty_files>({}, {}, fs).restore(list, join_path(dir, "model-0.ckpt"), {.ignore_extra = true});
    return values(t, name);
  };
  begun_with("all", warm_start_from{"a", safetensors{}});
  CHECK(at_step_0("all", "out/kernel") == kernel);
  CHECK(at_step_0("all", "out/kernel/Momentum") == std::vector<float>(2));
  begun_with("slots",
             warm_start_from{warm_start_settings{.ckpt_to_initialize_from = "a", .vars_to_warm_start = {"out/kernel"}},
                             safetensors{}});
  CHECK(at_step_0("slots", "out/kernel") == kernel);
  CHECK(at_step_0("slots", "out/kernel/Momentum") == slot);

  auto resumed = run(fs, "all", warm_start_from{"no/such/run", safetensors{}});
  resumed.train(data(), {.steps = 1});
  CHECK(resumed.global_step() == 2);
}

TEST_CASE("a directory whose newest checkpoint is of another codec is not said to be no directory") {
  const faulty_files fs;
  run(fs, "a", safetensors{}).train(data(), {.steps = 1});
  for (const std::string from : {"a", "a/"}) {
    std::string said;
    try {
      run(fs, "b", warm_start_from{from}).train(data(), {.steps = 1});
    } catch (const error& e) {
      said = e.what();
    }
    CHECK(said ==
          "cannot warm-start from \"a/model-1.safetensors\": a checkpoint of the codec \"flat_binary\" has a name that "
          "ends in \".ckpt\"; name the codec that wrote it. Nothing was changed.");
  }
}

TEST_CASE(
    "a warm start of all variables takes the model's state: a validation begins anew, and the model reads its step") {
  const testing::temp_dir place;
  const auto counted = [](graph& g) {
    model_spec m = line(g);
    const value steps = g.variable("global_step", {}, {.init = zeros, .trainable = false, .type = int64});
    m.metrics = {{"steps", metrics::mean(cast(steps, float32))}};
    return m;
  };
  const auto in = [&](const std::string& dir) {
    return run_config{.model_dir = place / dir, .tf_random_seed = 7, .checkpoint_save_graph_def = false};
  };
  const auto make = [&](const std::string& dir, const auto&... more) {
    return make_trainer(counted, momentum{.rate = 0.01, .decay = 0.9}, in(dir), more...);
  };
  const auto held_out = from_spans("x", xs, extents{2}, "y", ys, extents{1}).batch(4);
  // Its rule ends this one at the first evaluation.
  const train_validation ends{.data = held_out, .every_n_steps = 2, .stop_when = {.threshold = 1e9}};
  const train_validation goes_on{.data = held_out, .every_n_steps = 2};
  make("plain").train(data(), {.max_steps = 5});
  make("ended").train(data(), {.max_steps = 5, .validation = ends});
  for (const std::string from : {"plain", "ended"}) {
    const warm_start_settings all{.ckpt_to_initialize_from = place / from, .vars_to_warm_start = {".*"}};
    auto t = make("from " + from, warm_start_from{all});
    std::vector<double> seen;
    struct looks {
      std::vector<double>* seen;
      void after_run(run_context&, const run_values& v) { seen->push_back(v.result("steps")); }
    };
    t.train(data(), {.steps = 4, .hooks = {looks{&seen}}, .validation = goes_on});
    const double first = static_cast<double>(t.global_step()) - 4;
    CHECK(seen == std::vector<double>{first, first + 1, first + 2, first + 3});
  }
}
