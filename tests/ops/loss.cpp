#include "refusal.hpp"

#include <gradus/ops/loss.hpp>

using namespace gradus;
using refusal_test::check;

static_assert([] {
  graph g;
  const value y = g.placeholder("y", {batch, 3}), p = g.placeholder("p", {batch, 3}),
              w = g.placeholder("w", {batch, 1});
  const value k = g.placeholder("k", {batch, 1}, int32);
  using namespace losses;
  const value none = mean_squared_error(y, p, {.weights = w, .reduction = reduction::none});
  const value row = cosine_distance(y, p, 1, {.reduction = reduction::none, .loss_collection = {}});
  const bool scalars =
      absolute_difference(y, p).dims().rank == 0 && huber_loss(y, p, 0.5, {.weights = 2.0}).dims().rank == 0 &&
      log_loss(y, p).dims().rank == 0 && hinge_loss(y, p).dims().rank == 0 &&
      mean_pairwise_squared_error(y, p, {.weights = w}).dims().rank == 0 &&
      softmax_cross_entropy(y, p, 0.1).dims().rank == 0 && sigmoid_cross_entropy(k, w, 0.1).dims().rank == 0 &&
      losses::sparse_softmax_cross_entropy(k, p).dims().rank == 0;
  int collected = 0;
  g.for_each_in(collection::losses, [&](value) { ++collected; });
  return scalars && none.dims() == shape{batch, 3} && row.dims() == shape{batch, 1} && collected == 9 &&
         get_total_loss(g, "others").dims().rank == 0 && l2_loss(p).dims().rank == 0 && g.refusal.empty();
}());
// Integers count as float32, float64 stays; the result has the losses' dtype.
static_assert([] {
  graph g;
  const value i = g.placeholder("i", {batch}, int32), d = g.placeholder("d", {batch}, float64);
  return losses::mean_squared_error(i, i).type() == float32 && losses::mean_squared_error(i, d).type() == float64;
}());

TEST_CASE("what losses refuse") {
  check<[](graph& g) {
    losses::mean_squared_error(g.placeholder("y", {batch, 3}), g.placeholder("p", {batch, 4}));
  }>("mean_squared_error: labels [batch, 3] and predictions [batch, 4] must have one shape");
  check<[](graph& g) {
    losses::log_loss(value{}, g.placeholder("p", {batch, 4}));
  }>("log_loss: labels and predictions must be tensors");
  check<[](graph& g) {
    losses::hinge_loss(g.placeholder("y", {batch, 4}), value{});
  }>("hinge_loss: labels and predictions must be tensors");
  check<[](graph& g) {
    const value p = g.placeholder("p", {batch, 4});
    losses::absolute_difference(p, p, {.weights = g.placeholder("w", {batch})});
  }>("losses: weights [batch] do not fit losses [batch, 4]: a scalar, or the same rank with extents 1 or equal");
  check<[](graph& g) {
    const value p = g.placeholder("p", {batch, 4});
    losses::absolute_difference(p, p, {.weights = value{}});
  }>("losses: the weights are no tensor of this graph");
  check<[](graph& g) {
    losses::sparse_softmax_cross_entropy(value{}, g.placeholder("p", {batch, 4}));
  }>("sparse_softmax_cross_entropy_loss: labels must be a tensor");
  check<[](graph& g) {
    losses::sparse_softmax_cross_entropy(g.placeholder("k", {batch}), g.placeholder("p", {batch, 4}));
  }>("SparseSoftmaxCrossEntropyWithLogits: labels must be int32 or int64, got float32 (p[batch, 4], k[batch])");
  check<[](graph& g) {
    const value p = g.placeholder("p", {batch, 4});
    losses::mean_pairwise_squared_error(p, p, {.weights = g.placeholder("w", {batch, 3})});
  }>("mean_pairwise_squared_error: weights [batch, 3] do not fit [batch, 4]");
}
