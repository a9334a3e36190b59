// A model of one weight and a bias, y = w x + b, and data for it: what tests of the estimator train.
#pragma once
#include <gradus/cpu/device.hpp>
#include <gradus/estimator/estimator.hpp>
#include <gradus/input/dataset.hpp>
#include <gradus/ops/elementwise.hpp>
#include <gradus/ops/reduce.hpp>
#include <gradus/run/optimizer.hpp>
#include <gradus/session/global_step.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

#include <string>
#include <vector>

namespace line {
using namespace gradus;

struct numbers {
  std::vector<float> x{1, 2, 3, 4}, y{3, 5, 7, 9};  // y = 2x + 1
};
inline const numbers given;

// Batches of two, two of them in an epoch.
inline auto data() { return from_spans("x", given.x, extents{}, "y", given.y).batch(2); }
inline estimator_input once() { return labelled(data(), {"y"}); }
inline estimator_input endless() { return labelled(data().repeat(), {"y"}); }

inline estimator_spec model(const named_tensors& features, value labels, mode m) {
  graph& g = features.of();
  const value w = g.variable("w", {}, {.init = constant_initializer(0)}),
              b = g.variable("b", {}, {.init = constant_initializer(0)});
  const value y = features["x"] * w + b;
  estimator_spec spec{.mode = m, .predictions = {{"y", y}, {"twice", y + y}}};
  if (m == mode::predict) return spec;
  spec.loss = reduce_mean(square(y - labels));
  spec.eval_metric_ops = {{"mean_y", metrics::mean(y)}};
  optimizer opt{gradient_descent{.rate = 0.05}};
  if (m == mode::train)
    spec.train_op = opt.minimize(spec.loss, {.global_step = get_global_step(g)}), spec.optimizers = opt;
  return spec;
}

// A hook that notes its calls in order.
struct recorder {
  std::vector<std::string>* calls;
  std::string name;
  void begin() { calls->push_back(name + ".begin"); }
  void after_create_session(hooked_session&) { calls->push_back(name + ".session"); }
  void after_run(run_context&, const run_values&) { calls->push_back(name + ".run"); }
  void end(hooked_session&) { calls->push_back(name + ".end"); }
};

// The same line in double precision by hand: w, b after so many steps on the batches in order.
struct fitted {
  double w = 0, b = 0;
  explicit fitted(int steps) { train(steps); }
  // So many more, from the first batch on.
  fitted& train(int steps) {
    for (int s = 0; s < steps; ++s) {
      double dw = 0, db = 0;
      for (int i = 0; i < 2; ++i) {
        const auto at = static_cast<std::size_t>(2 * (s % 2) + i);
        const double x = given.x[at], e = w * x + b - given.y[at];
        dw += e * x, db += e;
      }
      w -= 0.05 * dw, b -= 0.05 * db;
    }
    return *this;
  }
  double loss(int batch_number) const {
    double sum = 0;
    for (int i = 0; i < 2; ++i) {
      const auto at = static_cast<std::size_t>(2 * batch_number + i);
      const double e = w * given.x[at] + b - given.y[at];
      sum += e * e / 2;
    }
    return sum;
  }
};
}  // namespace line
