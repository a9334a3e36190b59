#include <gradus/estimator/training_call.hpp>

#include <gradus/estimator/estimator.hpp>
#include <gradus/ops/layer.hpp>

#include "linear_model.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace gradus;

TEST_CASE("a train op that leaves the moving averages out is warned of") {
  for (const bool grouped : {false, true}) {
    std::vector<std::string> lines;
    testing::temp_dir dir;
    const auto model = [&](const named_tensors& features, value labels, mode m) {
      graph& g = features.of();
      const value y = batch_norm(reshape(features["x"], {-1, 1}), {.name = "norm"});
      estimator_spec spec{.mode = m, .loss = reduce_mean(square(reshape(y, {-1}) - labels))};
      if (m != mode::train) return spec;
      optimizer opt{gradient_descent{.rate = 0.05}};
      spec.train_op = opt.minimize(spec.loss, {.global_step = get_global_step(g)}), spec.optimizers = opt;
      if (!grouped) return spec;
      std::vector<value> all{spec.train_op};
      g.for_each_in(collection::update_ops, [&](value v) { all.push_back(v); });
      spec.train_op = g.group({});
      for (const value& v : all) g.depend(spec.train_op, v);
      return spec;
    };
    estimator e(model, {.model_dir = dir.path(), .log = [&](const std::string& l) { lines.push_back(l); }});
    e.train(line::endless, {.steps = 3});
    const auto warned = [](const std::string& l) { return l.starts_with("WARNING: the moving averages"); };
    CHECK(std::count_if(lines.begin(), lines.end(), warned) == (grouped ? 0 : 1));
    CHECK((e.get_variable_value("norm/moving_mean").number() != 0) == grouped);
  }
}

TEST_CASE("the listeners of a call leave the hook with it") {
  testing::temp_dir dir;
  checkpoint_saver_hook hook(dir.path(), {.save_steps = 1});
  std::int64_t made = 0, last = 0;
  hook.add_listener(detail::counted_saves{&made, &last});
  {
    const detail::listeners_of_call added(&hook), none(nullptr);
    hook.add_listener(detail::counted_saves{&made, &last});
    CHECK(hook.listeners() == 2);
  }
  CHECK(hook.listeners() == 1);
}

TEST_CASE("options of the saver follow the run_config; a best without a metric is named") {
  run_config c{.keep_checkpoint_max = 3, .keep_checkpoint_best = {.count = 2}};
  c.keep_checkpoint_every_n_hours = 1.5;
  const saver_options o = detail::saver_options_for(c);
  CHECK(o.max_to_keep == 3);
  CHECK(o.best.count == 2);
  CHECK(o.keep_checkpoint_every_n_hours == 1.5);
  CHECK(detail::best_of_nothing(c).starts_with("train: keep_checkpoint_best keeps the best 2 checkpoints"));
}
