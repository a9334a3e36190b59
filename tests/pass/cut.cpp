#include <gradus/ops/embedding.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/ops/metric.hpp>
#include <gradus/pass/clean.hpp>
#include <gradus/pass/cut.hpp>
#include <gradus/pass/minimize.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <string>

using namespace gradus;

namespace {
// The op that find_mixing names, or nothing.
std::string mixing(const std::function<value(graph&, value x, value y)>& build) {
  graph g;
  const value x = g.placeholder("x", {batch, 4}), y = g.placeholder("y", {batch, 4});
  g.add_output(output::loss, "loss", build(g, matmul(x, g.variable("w", {4, 4})), y));
  const int at = detail::find_mixing(parts_of(g));
  return at < 0 ? std::string() : std::string(g.nodes[at].op->name);
}
detail::uncut uncut_of(void (*build)(graph&)) {
  graph g;
  build(g);
  const graph m = minimize(parts_of(g), {}), d = remove_dead(parts_of(m));
  return detail::find_uncut(parts_of(d).view);
}
}  // namespace

TEST_CASE("a loss that is a mean over examples can be computed from its parts") {
  CHECK(mixing([](graph&, value x, value y) { return reduce_mean(squared_difference(x, y)); }) == "");
  CHECK(mixing([](graph&, value x, value y) { return reduce_mean(reduce_sum(x * y, {1})) * 2 - 1; }) == "");
  CHECK(mixing([](graph&, value x, value y) { return -reduce_mean(x) + 0.5 * reduce_mean(softmax(y)) / 3; }) == "");
  CHECK(mixing([](graph& g, value x, value y) {
          return reduce_mean(square(x - y)) + 1e-4 * reduce_sum(square(g.variable("v", {3})));
        }) == "");
  CHECK(mixing([](graph&, value x, value y) { return losses::mean_squared_error(y, x); }) == "");
  CHECK(mixing([](graph&, value x, value y) { return reduce_mean(reduce_mean(square(x - y), {0})); }) == "");
}

TEST_CASE("what mixes examples is found") {
  CHECK(mixing([](graph&, value x, value y) { return reduce_sum(square(x - y)); }) == "Sum");
  CHECK(mixing([](graph&, value x, value) { return reduce_max(x); }) == "Max");
  CHECK(mixing([](graph&, value x, value) { return reduce_mean(square(x - reduce_mean(x, {0}))); }) == "Sub");
  CHECK(mixing([](graph&, value x, value y) { return reduce_sum(x * y) / reduce_sum(y); }) == "RealDiv");
  CHECK(mixing([](graph&, value x, value y) { return reduce_mean(x) * reduce_mean(y); }) == "Mul");
  CHECK(mixing([](graph&, value x, value) { return square(reduce_mean(x)); }) == "Square");
  CHECK(mixing([](graph&, value x, value y) { return reduce_mean(x) + reduce_sum(y); }) == "Add");
  // along the batch, or against the order of the examples in memory
  CHECK(mixing([](graph&, value x, value) { return reduce_mean(softmax(transpose(x, {1, 0}))); }) == "Softmax");
  CHECK(mixing([](graph&, value x, value) { return reduce_mean(log_softmax(transpose(x, {1, 0}))); }) == "LogSoftmax");
  CHECK(mixing([](graph&, value x, value y) { return reduce_mean(square(concat({x, y}, 0))); }) == "ConcatV2");
  CHECK(mixing([](graph&, value x, value y) {
          return reduce_mean(reshape(x, {4, batch}) * transpose(y, {1, 0}));
        }) == "Reshape");
  CHECK(mixing([](graph& g, value x, value) { return reduce_mean(gather(x, g.placeholder("at", {batch}, int32))); }) ==
        "Gather");
  CHECK(mixing([](graph& g, value x, value) {
          return reduce_mean(x) + reduce_mean(g.placeholder("z", {4, batch}));
        }) == "Placeholder");
  CHECK(mixing([](graph&, value x, value y) {
          return reduce_mean(concat({x, y}, 1)) + reduce_mean(transpose(reshape(x, {2 * batch, 2}), {1, 0}));
        }) == "");
  // A sum is a mean if it is divided by the number of examples, or that times a constant, and by nothing else of it.
  CHECK(mixing([](graph&, value x, value y) { return reduce_sum(x * y) / size_of(x); }) == "");
  CHECK(mixing([](graph&, value x, value y) { return reduce_sum(x * y) / (-3 * size_of(y)); }) == "");
  CHECK(mixing([](graph&, value x, value y) { return reduce_sum(x * y) / (size_of(x) - 1); }) != "");
  CHECK(mixing([](graph&, value x, value y) { return reduce_sum(x * y) / square(size_of(x)); }) != "");
  CHECK(mixing([](graph&, value x, value y) { return reduce_sum(x * y) / sqrt(size_of(x)); }) != "");
  CHECK(mixing([](graph&, value x, value y) { return reduce_sum(x * y) / size_of(x, 1, float32); }) == "");
  CHECK(mixing([](graph&, value x, value y) { return reduce_sum(x * y) / size_of(x, 2, float32); }) != "");
  CHECK(mixing([](graph&, value x, value y) { return reduce_mean(x * y) / size_of(x, 2, float32); }) == "");
  CHECK(mixing([](graph&, value x, value) { return reduce_mean(x * size_of(x)); }) != "");
  CHECK(mixing([](graph&, value x, value) { return reduce_mean(x) * size_of(x); }) != "");
  CHECK(mixing([](graph& g, value x, value y) {
          const value n = size_of(x), mask = g.placeholder("mask", {4}, boolean);
          return reduce_mean(reduce_sum(x * y) / select(mask, broadcast_to(n, {4}), g.constant(1, float32, {4})));
        }) != "");
  CHECK(mixing([](graph& g, value x, value y) {  // no examples give no loss
          const value n = size_of(x);
          return select(not_equal(n, g.constant(0)), reduce_sum(x * y) / n, g.constant(0));
        }) == "");
  CHECK(mixing([](graph& g, value x, value y) {
          const value n = size_of(x);
          return select(greater(n, g.constant(0)), reduce_sum(x * y) / n, g.constant(0));
        }) == "");
  // Of the numbers that it may be compared with, those between none and one alone ask whether there are any.
  const auto guarded_by = [](auto compare) {
    return mixing([&](graph& g, value x, value y) {
      const value n = size_of(x);
      return select(compare(g, n), reduce_sum(x * y) / n, g.constant(0));
    });
  };
  for (const bool first : {true, false}) {
    using comparison = value (*)(value, value);
    const auto beside = [&](comparison op, comparison turned, double c) {
      return guarded_by([&](graph& g, value n) { return first ? op(n, g.constant(c)) : turned(g.constant(c), n); });
    };
    const comparison ops[] = {equal, not_equal, greater, less_equal, greater_equal, less};
    const comparison turned[] = {equal, not_equal, less, greater_equal, less_equal, greater};
    for (int k = 0; k < 6; ++k) {
      CHECK(beside(ops[k], turned[k], 0) == "");
      CHECK(beside(ops[k], turned[k], 0.5) == "");
      CHECK((beside(ops[k], turned[k], 1) == "") == (k > 3));
      CHECK(beside(ops[k], turned[k], 4) != "");
    }
  }
  CHECK(guarded_by([](graph&, value n) { return greater(n, n); }) != "");
  // A multiple of the number is another one.
  CHECK(guarded_by([](graph& g, value n) { return greater(n * 0.01, g.constant(0.5)); }) != "");
  CHECK(guarded_by([](graph& g, value n) { return less(neg(n), g.constant(-8)); }) != "");
  CHECK(guarded_by([](graph& g, value n) { return greater(cast(n, int32), g.constant(0, int32)); }) == "");
  CHECK(mixing([](graph&, value x, value y) { return reduce_sum(x * y) / maximum(size_of(x) / 64, 1.0); }) != "");
  CHECK(mixing([](graph& g, value x, value y) {
          const value n = size_of(x), any = broadcast_to(greater(n, g.constant(0)), {4});
          return reduce_mean(select(any, reduce_sum(x * y, {0}) / broadcast_to(n, {4}), g.constant(0, float32, {4})));
        }) == "");
  CHECK(mixing([](graph& g, value x, value y) {  // that is 1, not the number
          return reduce_sum(x * y) / cast(greater(size_of(x), g.constant(0)), float32);
        }) != "");
  CHECK(mixing([](graph&, value x, value y) { return reduce_sum(x * y) / maximum(size_of(x), 1.0); }) == "");
  CHECK(mixing([](graph&, value x, value y) { return reduce_sum(x * y) / maximum(size_of(x), 8.0); }) != "");
  CHECK(mixing([](graph&, value x, value y) {
          return reduce_mean(reduce_sum(x * y, {0}) / broadcast_to(size_of(x), {4}));
        }) == "");
  // A weighted mean divides by the number of weights that are not 0: each part has its own.
  CHECK(mixing([](graph&, value x, value y) {
          return losses::mean_squared_error(y, x, {.weights = cast(greater(y, y.g->constant(0, float32)), float32)});
        }) != "");
}

TEST_CASE("what parts would do again is found") {
  CHECK(uncut_of([](graph& g) {
          g.add_output(output::loss, "loss", reduce_mean(dense(g.placeholder("x", {batch, 2}), {.units = 1})));
        }).why == detail::uncut::none);
  CHECK(uncut_of([](graph& g) {
          const value x = g.placeholder("x", {batch, 2}), seen = g.variable("seen", {2}, {.trainable = false});
          g.outputs.push({output::update, -1, assign_add(seen, reduce_mean(x, {0})).id});
          g.add_output(output::loss, "loss", reduce_mean(dense(x, {.units = 3})));
        }).why == detail::uncut::writes);
  CHECK(uncut_of([](graph& g) {
          const value ids = g.placeholder("ids", {batch}, int32);
          g.add_output(output::loss, "loss", reduce_mean(square(embedding(ids, {.input_dim = 5, .output_dim = 2}))));
        }).why == detail::uncut::rows);
}
