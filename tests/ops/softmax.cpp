#include <gradus/ops/softmax.hpp>

#include "refusal.hpp"

#include "compute.hpp"

using namespace gradus;
using ops_test::compute;
using ops_test::near;
using refusal_test::check;

static_assert([] {
  graph g;
  const value x = g.placeholder("x", {batch, 4, 6}), label = g.placeholder("label", {batch, 4}, int32);
  return softmax(x).dims() == x.dims() && log_softmax(x).dims() == x.dims() &&
         softmax_cross_entropy_with_logits(x, x).dims() == shape{batch, 4} &&
         sparse_softmax_cross_entropy(x, label).dims() == shape{batch, 4} && g.refusal.empty();
}());
// Labels and logits are told apart by their types, whatever the order: the same node both times, by every name.
static_assert([] {
  graph g;
  const value x = g.placeholder("x", {batch, 6}), label = g.placeholder("label", {batch}, int64);
  for (const value v : {sparse_softmax_cross_entropy(x, label), sparse_softmax_cross_entropy(label, x),
                        sparse_softmax_cross_entropy_with_logits(x, label)}) {
    const node& n = g.nodes[v.id];
    if (n.op != &cards::sparse_xent || g.edges[n.first] != x.id || g.edges[n.first + 1] != label.id) return false;
  }
  return g.refusal.empty();
}());

namespace {
template <class T>
void check_rows(std::size_t classes, double scale, double tolerance) {
  ops_test::draw random{12};
  const std::size_t rows = 5;
  const auto x = random.between<T>(-scale, scale, rows * classes), y = random.between<T>(0, 1, rows * classes);
  std::vector<std::int64_t> label;
  for (std::size_t i = 0; i < rows; ++i)
    label.push_back(static_cast<std::int64_t>(random.below(static_cast<std::uint32_t>(classes))));
  graph g;
  const int c = static_cast<int>(classes);
  const value vx = g.placeholder("x", {batch, c}, dtype_of<T>), vy = g.placeholder("y", {batch, c}, dtype_of<T>);
  const value vl = g.placeholder("l", {batch}, int64);
  const auto soft = compute<T>(g, softmax(vx), {{vx, x}}), logs = compute<T>(g, log_softmax(vx), {{vx, x}});
  const auto dense = compute<T>(g, softmax_cross_entropy_with_logits(vx, vy), {{vx, x}, {vy, y}});
  const auto sparse = compute<T>(g, sparse_softmax_cross_entropy(vx, vl), {{vx, x}, {vl, label}});
  for (std::size_t i = 0; i < rows; ++i) {
    double most = -1e300, sum = 0, cross = 0;
    for (std::size_t k = 0; k < classes; ++k) most = std::fmax(most, static_cast<double>(x[i * classes + k]));
    for (std::size_t k = 0; k < classes; ++k) sum += std::exp(static_cast<double>(x[i * classes + k]) - most);
    for (std::size_t k = 0; k < classes; ++k) {
      const double log = static_cast<double>(x[i * classes + k]) - most - std::log(sum);
      cross -= static_cast<double>(y[i * classes + k]) * log;
      CHECK(near(static_cast<double>(soft[i * classes + k]), std::exp(log), tolerance));
      CHECK(near(static_cast<double>(logs[i * classes + k]), log, tolerance));
    }
    CHECK(near(static_cast<double>(dense[i]), cross, tolerance));
    CHECK(near(static_cast<double>(sparse[i]),
               -static_cast<double>(logs[i * classes + static_cast<std::size_t>(label[i])]), tolerance));
  }
}
}  // namespace

TEST_CASE("softmax and cross-entropies of narrow, wide and huge rows") {
  for (std::size_t classes : {1u, 3u, 10u, 37u})
    for (double scale : {1.0, 30.0, 900.0})
      check_rows<double>(classes, scale, 1e-13), check_rows<float>(classes, scale, 3e-6);
}

TEST_CASE("a label outside the classes is an error when the step runs") {
  graph g;
  const value x = g.placeholder("x", {batch, 3}), label = g.placeholder("label", {batch}, int32);
  const value y = sparse_softmax_cross_entropy(x, label);
  session s{g};
  const std::vector<float> logits(6, 1.0f);
  for (const std::int32_t bad : {-1, 3}) {
    const std::vector<std::int32_t> labels{0, bad};
    CHECK_THROWS_AS((void)s.run(y, {{x, logits}, {label, labels}}), invalid_argument);
  }
}

TEST_CASE("what cross-entropies refuse") {
  check<[](graph& g) {
    softmax(g.placeholder("x", {batch, 0}));
  }>("Softmax: the last axis has no element, expected the classes there (x[batch, 0])");
  check<[](graph& g) {
    sparse_softmax_cross_entropy(g.placeholder("x", {batch, 0}), g.placeholder("y", {batch}, int32));
  }>("SparseSoftmaxCrossEntropyWithLogits: logits need a class axis (x[batch, 0], y[batch])");
  check<[](graph& g) {
    softmax_cross_entropy_with_logits(g.placeholder("x", {batch, 3}), g.placeholder("y", {batch, 4}));
  }>("SoftmaxCrossEntropyWithLogits: operands must have one shape (x[batch, 3], y[batch, 4])");
  check<[](graph& g) {
    sparse_softmax_cross_entropy(g.placeholder("x", {batch, 3}), g.placeholder("y", {batch, 1}, int32));
  }>("SparseSoftmaxCrossEntropyWithLogits: labels must be [batch], one class per row of logits (x[batch, 3], y[batch, "
     "1])");
  check<[](graph& g) { softmax(g.placeholder("x", {3}, int32)); }>(
      "Softmax: operands must all be float32 or all float64, got int32 and int32; use cast (x[3])");
}
