#include "../golden/golden.hpp"
#include "refusal.hpp"

#include <gradus/cpu/device.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/pass/autodiff.hpp>
#include <gradus/run/session.hpp>

#include <cmath>

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

namespace {
// A column of golden numbers as a constant of the graph.
value numbers(graph& g, const golden::json& j, shape dims = {}) {
  const auto v = golden::numbers<double>(j);
  if (dims.rank == 0) dims = {static_cast<int>(v.size())};
  std::vector<int> words;
  for (double d : v) {
    const auto bits = std::bit_cast<std::array<int, 2>>(d);
    words.insert(words.end(), bits.begin(), bits.end());
  }
  const value c = g.add(constant_card, nullptr, 0, words.data(), static_cast<int>(words.size()));
  g.nodes[c.id].dims = dims, g.nodes[c.id].type = float64;
  return c;
}
std::vector<double> compute(graph& g, value y) {
  session s{g};
  const auto view = s.run(y);
  std::vector<double> out;
  if (view.type == float32)
    for (float f : view.as<float>()) out.push_back(static_cast<double>(f));
  else
    for (double d : view.as<double>()) out.push_back(d);
  return out;
}
void check_numbers(const golden::json& c, const std::vector<double>& got, const char* want) {
  const auto expected =
      c[want].is_array() ? golden::numbers<double>(c[want]) : std::vector<double>{golden::number(c[want])};
  INFO(c["id"].get<std::string>());
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    CHECK(golden::near(got[i], expected[i], c["rtol"].get<double>() + 1e-13, c["atol"].get<double>()));
}
losses::options options_of(graph& g, const golden::json& args) {
  losses::options o;
  if (args.contains("weights")) {
    if (args["weights"].is_array())
      o.weights = numbers(g, args["weights"]);
    else
      o.weights = args["weights"].get<double>();
  }
  const auto r = args.value("reduction", std::string("sum_by_nonzero_weights"));
  using losses::reduction;
  o.reduction = r == "none"                  ? reduction::none
                : r == "sum"                 ? reduction::sum
                : r == "mean"                ? reduction::mean
                : r == "sum_over_batch_size" ? reduction::sum_over_batch_size
                                             : reduction::sum_by_nonzero_weights;
  CHECK((o.reduction != reduction::sum_by_nonzero_weights || r == "sum_by_nonzero_weights"));
  return o;
}
}  // namespace

TEST_CASE("golden losses: every function, weighting and reduction") {
  const auto cases = golden::read("ops.json")["loss"];
  REQUIRE(cases.size() > 50);
  for (const auto& c : cases) {
    graph g;
    const auto fn = c["fn"].get<std::string>();
    const auto& args = c["args"];
    const auto o = options_of(g, args);
    const char* second = args.contains("logits") ? "logits" : "predictions";
    shape dims;
    if (args.contains("num_classes"))
      dims = {static_cast<int>(args["labels"].size()) / args["num_classes"].get<int>(), args["num_classes"].get<int>()};
    const value y = numbers(g, args["labels"], dims), p = numbers(g, args[second], dims);
    value loss;
    if (fn == "mean_squared_error") loss = losses::mean_squared_error(y, p, o);
    if (fn == "absolute_difference") loss = losses::absolute_difference(y, p, o);
    if (fn == "huber_loss") loss = losses::huber_loss(y, p, args.value("delta", 1.0), o);
    if (fn == "log_loss") loss = losses::log_loss(y, p, args.value("epsilon", 1e-7), o);
    if (fn == "hinge_loss") loss = losses::hinge_loss(y, p, o);
    if (fn == "sigmoid_cross_entropy")
      loss = losses::sigmoid_cross_entropy(y, p, args.value("label_smoothing", 0.0), o);
    if (fn == "softmax_cross_entropy")
      loss = losses::softmax_cross_entropy(y, p, args.value("label_smoothing", 0.0), o);
    if (fn == "weighted_cross_entropy")
      loss =
          losses::compute_weighted_loss(weighted_cross_entropy_with_logits(p, y, args["pos_weight"].get<double>()), o);
    INFO(fn);
    REQUIRE(loss);
    check_numbers(c, compute(g, loss), "expect");
  }
}

TEST_CASE("golden cross-entropies and l2_loss, with their gradients") {
  const auto all = golden::read("ops.json");
  const auto gradient = [](graph& g, value y, value x) {
    return gradients(g, std::span(&y, 1), std::span(&x, 1))[0].dense;
  };
  for (const auto& c : all["softmax_xent"]) {
    graph g;
    const shape dims{c["shape"][0].get<int>(), c["shape"][1].get<int>()};
    const value x = numbers(g, c["logits"], dims);
    const value y = c.contains("class_ids") ? sparse_softmax_cross_entropy(x, cast(numbers(g, c["class_ids"]), int64))
                                            : softmax_cross_entropy_with_logits(x, numbers(g, c["labels"], dims));
    check_numbers(c, compute(g, y), "expect_loss");
    check_numbers(c, compute(g, gradient(g, y, x)), "expect_dlogits");
  }
  for (const auto& c : all["sigmoid_xent"]) {
    graph g;
    const value x = numbers(g, c["logits"]), y = sigmoid_cross_entropy_with_logits(x, numbers(g, c["labels"]));
    check_numbers(c, compute(g, y), "expect_loss");
    check_numbers(c, compute(g, gradient(g, y, x)), "expect_dlogits");
  }
  for (const auto& c : all["l2_loss"]) {
    graph g;
    const value x = numbers(g, c["t"]), y = l2_loss(x);
    check_numbers(c, compute(g, y), "expect");
    check_numbers(c, compute(g, gradient(g, y, x)), "expect_grad");
  }
}

TEST_CASE("mean_pairwise_squared_error is the mean of squared differences of differences") {
  // 2 samples of 3: over the 6 ordered pairs of one sample, mean ((p_i - p_j) - (y_i - y_j))^2
  const double y[2][3] = {{4, 8, 12}, {1, 9, 2}}, p[2][3] = {{4, 8.5, 10}, {8, 2, 1}}, weight[2] = {1, 3};
  double expected = 0;
  for (int s = 0; s < 2; ++s) {
    double sum = 0;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j)
        if (i != j) sum += std::pow((p[s][i] - p[s][j]) - (y[s][i] - y[s][j]), 2);
    expected += weight[s] * sum / 6;
  }
  graph g;
  const value vy = g.constant({4, 8, 12, 1, 9, 2}, {2, 3}, float64),
              vp = g.constant({4, 8.5, 10, 8, 2, 1}, {2, 3}, float64);
  const value loss = losses::mean_pairwise_squared_error(vy, vp, {.weights = g.constant({1, 3}, {2, 1}, float64)});
  CHECK(compute(g, loss)[0] == doctest::Approx(expected).epsilon(1e-12));
  // one element a sample has no pairs
  const value one = g.constant({1, 2}, {2, 1}, float64), other = g.constant({5, 9}, {2, 1}, float64);
  CHECK(compute(g, losses::mean_pairwise_squared_error(one, other))[0] == 0);
}

TEST_CASE("cosine_distance, sparse labels, sums of losses, gradients at the edges") {
  graph g;
  const value a = g.constant({1, 0, 0.6, 0.8}, {2, 2}, float64), b = g.constant({1, 0, 0.8, 0.6}, {2, 2}, float64);
  const auto distance = compute(g, losses::cosine_distance(a, b, 1, {.reduction = losses::reduction::none}));
  REQUIRE(distance.size() == 2);
  CHECK(distance[0] == 0);
  CHECK(distance[1] == doctest::Approx(0.04).epsilon(1e-12));
  const value logits = g.constant({1, 2, 3, 1, 1, 1}, {2, 3}, float64), labels = g.constant({2, 0}, {2, 1}, int32);
  const double first = std::log(std::exp(-2) + std::exp(-1) + 1), second = std::log(3.0);
  const value sparse = losses::sparse_softmax_cross_entropy(labels, logits);
  CHECK(compute(g, sparse)[0] == doctest::Approx((first + second) / 2).epsilon(1e-12));
  graph h;
  const value x = h.constant(3, float64);
  losses::mean_squared_error(h.constant(1, float64), x);
  losses::absolute_difference(h.constant(1, float64), x);
  CHECK(compute(h, losses::get_total_loss(h))[0] == 6);
  CHECK(compute(h, losses::get_total_loss(h, "none"))[0] == 0);
  // sigmoid cross-entropy at 0, and the linear branch of huber at the corner
  const value zero = h.constant(0, float64), s = sigmoid_cross_entropy_with_logits(zero, h.constant(0.25, float64));
  CHECK(compute(h, gradients(h, std::span(&s, 1), std::span(&zero, 1))[0].dense)[0] == 0.25);
  const value corner = h.constant(1, float64), u = losses::huber_loss(h.constant(0, float64), corner);
  CHECK(compute(h, gradients(h, std::span(&u, 1), std::span(&corner, 1))[0].dense)[0] == 1);
}
