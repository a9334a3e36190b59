// One model, one seed, one input, trained by each runtime that there is: what same_bits.cpp compares and kills.
#pragma once
#include <gradus/codecs.hpp>
#include <gradus/estimator.hpp>
#include <gradus/estimator/compiled_estimator.hpp>
#include <gradus/gradus.hpp>
#include <gradus/run/optimizer.hpp>
#include <gradus/train/hooks/checkpoint_saver_hook.hpp>
#include <gradus/train/hooks/nan_tensor_hook.hpp>
#include <gradus/train/hooks/step_counter_hook.hpp>
#include <gradus/train/hooks/stop_at_step_hook.hpp>
#include <gradus/train/monitored_session.hpp>
#include <gradus/train/session_supervisor.hpp>
#include <gradus/train/supervisor.hpp>

#include <string_view>
#include <vector>

namespace trained_by {

using namespace gradus;

// Dropout, so that the position of the random stream has to be resumed as well.
constexpr value loss_of(value x, value y) {
  const value hidden = dropout(tanh(dense(x, {.units = 9, .name = "hidden"})), 0.25);
  const value error = dense(hidden, {.units = 1, .name = "out"}) - y;
  return reduce_mean(square(error));
}
inline constexpr auto model = [](graph& g) {
  const value x = g.placeholder("x", {gradus::batch, 6}), y = g.placeholder("y", {gradus::batch, 1});
  return model_spec{.loss = loss_of(x, y)};
};
inline const auto built_by_program = [](graph& g) { return model(g); };
inline constexpr int batch_size = 8, examples = 8 * 13;
inline constexpr std::uint64_t seed = 7;

// The same policies for all: a rule with slots and powers, a schedule, a clip over all gradients.
inline const adam rule{};
inline const exponential_decay rate{.initial = 0.01, .decay_steps = 10, .decay_rate = 0.9};
inline const clip_by_global_norm clip{0.5};

struct points {
  std::vector<float> x, y;
  points() {
    for (int i = 0; i < examples; ++i) {
      for (int k = 0; k < 6; ++k) x.push_back(static_cast<float>((i * 37 + k * 11) % 23) / 11.0F - 1.0F);
      y.push_back(x[static_cast<std::size_t>(6 * i)] * x[static_cast<std::size_t>(6 * i + 1)]);
    }
  }
  auto batches() const { return from_spans("x", x, extents{6}, "y", y, extents{1}).repeat().batch(batch_size); }
  // The batch of a step, by its number.
  std::span<const float> xs(std::int64_t step) const {
    return std::span(x).subspan(static_cast<std::size_t>(step * batch_size % examples) * 6, 6 * batch_size);
  }
  std::span<const float> ys(std::int64_t step) const {
    return std::span(y).subspan(static_cast<std::size_t>(step * batch_size % examples), batch_size);
  }
};

// A graph that trains the model, for sessions of one's own.
struct train_graph {
  graph g{gradus::mode::train};
  value step = create_global_step(g);
  value loss = model(g).loss;
  optimizer<default_device, adam, exponential_decay, clip_by_global_norm> opt{rule, rate, clip};
  value train = opt.minimize(loss, {.global_step = step});
};

inline void by_trainer(std::int64_t steps, auto trainer) {
  const points data;
  auto batches = data.batches();
  trainer.train(batches, {.max_steps = steps});
}
inline run_config config_of(const std::string& dir, std::int64_t save_steps) {
  return {.model_dir = dir,
          .tf_random_seed = seed,
          .save_summary_steps = 0,
          .save_checkpoints_steps = static_cast<double>(save_steps),
          .checkpoint_save_graph_def = false};
}
inline void by_supervisor(const std::string& dir, std::int64_t steps, std::int64_t save_steps) {
  const points data;
  auto batches = data.batches();
  auto sv = make_supervisor<model>({.logdir = dir, .save_summaries_secs = 0, .tf_random_seed = seed}, rule, rate, clip,
                                   every_steps{save_steps});
  auto sess = sv.managed_session("", batches);
  sv.stop_on_exception([&] {
    while (!sv.should_stop() && sess.global_step() < steps) sess.run();
  });
}
inline void by_monitored_session(const std::string& dir, std::int64_t steps, std::int64_t save_steps) {
  const points data;
  train_graph t;
  scaffold parts({.init_op = global_variables_initializer(t.g, seed)});
  chief_session_creator chief(sessions_of(t.g, t.opt), t.g, parts, {.checkpoint_dir = dir});
  monitored_session sess(chief, {checkpoint_saver_hook(dir, {.save_steps = save_steps, .parts = &parts}),
                                 stop_at_step_hook({.last_step = steps}), nan_tensor_hook(t.loss)});
  sess.within([&] {
    std::int64_t at = global_step(*sess.raw_session(), t.step);
    // Killed behind the last save, it begins where it ends: the hook looks behind a step, as TensorFlow's does.
    while (!sess.should_stop() && at < steps) sess.run(t.train, {{"x", data.xs(at)}, {"y", data.ys(at)}}), ++at;
  });
}
inline void by_session_supervisor(const std::string& dir, std::int64_t steps, std::int64_t) {
  const points data;
  train_graph t;
  const value init = global_variables_initializer(t.g, seed);
  auto sv = make_supervisor(t.g, sessions_of(t.g, t.opt),
                            {.init_op = init,
                             .logdir = dir,
                             .summary_op = none,
                             .save_summaries_secs = 0,
                             .save_model_secs = 1e-9});  // behind every run
  auto sess = sv.managed_session();
  sess.within([&] {
    for (std::int64_t at = global_step(sess.raw_session(), t.step); !sv.should_stop() && at < steps; ++at)
      sess.run(t.train, {{"x", data.xs(at)}, {"y", data.ys(at)}});
  });
}

// An estimator's input begins where its newest checkpoint stands.
inline void by_estimator(std::int64_t steps, const run_config& config) {
  const points data;
  estimator model(
      [](const named_tensors& features, value y, gradus::mode m) -> estimator_spec {
        const value loss = loss_of(features["x"], y);
        optimizer opt{rule, rate, clip};
        return {.mode = m,
                .loss = loss,
                .train_op = opt.minimize(loss, {.global_step = get_global_step(*loss.g)}),
                .optimizers = {opt}};
      },
      {.config = config});
  const std::int64_t done =
      model.latest_checkpoint().empty() ? 0 : model.get_variable_value("global_step").as<std::int64_t>()[0];
  model.train([&] { return labelled(data.batches().skip(done), {"y"}); }, {.max_steps = steps});
}

inline void by_compiled_estimator(std::int64_t steps, const run_config& config) {
  const points data;
  auto e = make_estimator<model>(rule, rate, clip, config);
  e.train([&] { return data.batches(); }, {.max_steps = steps});
}

inline constexpr std::string_view ways[] = {"trainer",           "interpreted trainer", "supervisor",
                                            "monitored session", "session supervisor",  "estimator",
                                            "compiled estimator"};
inline void train(std::string_view way, const std::string& dir, std::int64_t steps, std::int64_t save_steps) {
  const run_config config = config_of(dir, save_steps);
  if (way == "trainer") return by_trainer(steps, make_trainer<model>(rule, rate, clip, config));
  if (way == "interpreted trainer") return by_trainer(steps, make_trainer(built_by_program, rule, rate, clip, config));
  if (way == "supervisor") return by_supervisor(dir, steps, save_steps);
  if (way == "monitored session") return by_monitored_session(dir, steps, save_steps);
  if (way == "estimator") return by_estimator(steps, config);
  if (way == "compiled estimator") return by_compiled_estimator(steps, config);
  by_session_supervisor(dir, steps, save_steps);
}

}  // namespace trained_by
