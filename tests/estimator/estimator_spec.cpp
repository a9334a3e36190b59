#include <gradus/estimator/estimator_spec.hpp>

#include <gradus/cpu/device.hpp>
#include <gradus/ops/elementwise.hpp>
#include <gradus/ops/reduce.hpp>
#include <gradus/run/optimizer.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace gradus;

namespace {
struct parts {
  graph g, other;
  value x = g.placeholder("x", {batch, 2}), w = g.variable("w", {2}), rows = square(x * w), loss = reduce_mean(rows);
  optimizer<default_device, gradient_descent> opt{gradient_descent{.rate = 0.1}};
  value train = opt.minimize(loss);

  std::string said(const estimator_spec& s, mode m) const {
    try {
      validate(s, m, g);
    } catch (const invalid_argument& e) {
      return e.what();
    }
    return {};
  }
};
}  // namespace

TEST_CASE("E21 spec: a loss that is not scalar, no train_op, no predictions; the mode is fixed") {
  parts p;
  CHECK(p.said({.mode = mode::train, .loss = p.rows, .train_op = p.train}, mode::train)
            .find("Loss must be scalar, given") != std::string::npos);
  CHECK(p.said({.mode = mode::train, .loss = p.loss}, mode::train).find("Missing train_op") != std::string::npos);
  CHECK(p.said({.mode = mode::predict, .loss = p.loss}, mode::predict).find("Missing predictions") !=
        std::string::npos);
  CHECK(p.said({.mode = mode::train, .loss = p.loss, .train_op = p.train}, mode::evaluate)
            .find("mode of a spec cannot be changed") != std::string::npos);
}

TEST_CASE("what each mode needs, and no more") {
  parts p;
  CHECK(p.said({.mode = mode::train, .loss = p.loss, .train_op = p.train}, mode::train).empty());
  CHECK(p.said({.mode = mode::evaluate, .loss = p.loss}, mode::evaluate).empty());
  CHECK(p.said({.mode = mode::predict, .predictions = p.rows}, mode::predict).empty());
  CHECK(p.said({.mode = mode::train, .train_op = p.train}, mode::train).find("Missing loss: mode train") !=
        std::string::npos);
  CHECK(p.said({.mode = mode::evaluate, .predictions = p.rows}, mode::evaluate).find("Missing loss: mode evaluate") !=
        std::string::npos);
}

TEST_CASE("a loss of one element in a vector will do; one per example, of two elements, of integers will not") {
  parts p;
  const value one = p.g.constant(1, float32, {1}), two = p.g.constant(1, float32, {2}), whole = p.g.constant(1, int32);
  CHECK(p.said({.mode = mode::evaluate, .loss = one}, mode::evaluate).empty());
  CHECK(p.said({.mode = mode::evaluate, .loss = two}, mode::evaluate).find("[2]") != std::string::npos);
  CHECK(p.said({.mode = mode::evaluate, .loss = whole}, mode::evaluate).find("int32") != std::string::npos);
}

TEST_CASE("tensors of another graph, and metrics that are none or have names of the evaluation's own") {
  parts p;
  const value alien = p.other.constant(1);
  CHECK(p.said({.mode = mode::evaluate, .loss = alien}, mode::evaluate).find("of the graph") != std::string::npos);
  CHECK(p.said({.mode = mode::train, .loss = p.loss, .train_op = alien}, mode::train).find("the train_op") !=
        std::string::npos);
  CHECK(p.said({.mode = mode::predict, .predictions = {{"far", alien}}}, mode::predict).find("\"far\"") !=
        std::string::npos);
  CHECK(
      p.said({.mode = mode::evaluate, .loss = p.loss, .eval_metric_ops = {{"half", {p.loss, {}, {}}}}}, mode::evaluate)
          .find("\"half\" must have a result and an update") != std::string::npos);
  for (const char* name : {"loss", "global_step"})
    CHECK(p.said({.mode = mode::evaluate, .loss = p.loss, .eval_metric_ops = {{name, metrics::mean(p.rows)}}},
                 mode::evaluate)
              .find(text("cannot be called \"", name)) != std::string::npos);
  CHECK(p.said({.mode = mode::predict,
                .predictions = p.rows,
                .export_outputs = {{"serving_default", {.method_name = "m", .outputs = alien}}}},
               mode::predict)
            .find("serving_default") != std::string::npos);
}
