#include "../golden/golden.hpp"
#include "refusal.hpp"

#include <gradus/cpu/device.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/pass/autodiff.hpp>
#include <gradus/pass/optimize.hpp>
#include <gradus/run/session.hpp>
#include <gradus/testing/gradient_check.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

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

// .name is the scope of each, TensorFlow's name if it is empty; a loss that is weighted within another opens none.
static_assert([] {
  graph g;
  const value y = g.placeholder("y", {batch, 3}), p = g.placeholder("p", {batch, 3});
  const value given = losses::compute_weighted_loss(p, {.weights = 2.0, .name = "mine"}),
              own = losses::compute_weighted_loss(p), within = losses::mean_squared_error(y, p, {.name = "fit"});
  const auto scope_of = [&](value v) { return g.text_at(g.nodes[v.id].scope); };
  return scope_of(given) == "mine/" && scope_of(own) == "weighted_loss/" && scope_of(within) == "fit/" &&
         g.refusal.empty();
}());

TEST_CASE("what losses refuse") {
  check<[](graph& g) {
    losses::softmax_cross_entropy(g.placeholder("y", {batch, 3}), g.placeholder("x", {batch, 3}), 10);
  }>("softmax_cross_entropy_loss: label_smoothing is a share of the labels, and must be in [0, 1]; 10 % are 0.1");
  check<[](graph& g) {
    losses::sigmoid_cross_entropy(g.placeholder("y", {batch, 3}), g.placeholder("x", {batch, 3}), -0.1);
  }>("sigmoid_cross_entropy_loss: label_smoothing is a share of the labels, and must be in [0, 1]; 10 % are 0.1");
  check<[](graph& g) {
    losses::softmax_cross_entropy(g.placeholder("y", {4, batch}), g.placeholder("x", {4, batch}), 0.1);
  }>("softmax_cross_entropy_loss: label_smoothing divides by the number of classes, the last extent of the logits, "
     "which is not known in [4, batch]");
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
    const value p = g.placeholder("p", {batch, 4});
    losses::absolute_difference(p, p, {.reduction = static_cast<losses::reduction>(7)});
  }>("losses: there is no reduction 7");
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

TEST_CASE("labels and logits that are swapped: types and shapes that show it are refused") {
  // in losses:: labels come first, and whole numbers can only be labels
  check<[](graph& g) {
    losses::sigmoid_cross_entropy(g.placeholder("x", {batch, 3}), g.placeholder("y", {batch, 3}, int32));
  }>("sigmoid_cross_entropy_loss: labels come first, then logits; found labels of float32 and logits of int32: swap "
     "them");
  check<[](graph& g) {
    losses::softmax_cross_entropy(g.placeholder("x", {batch, 3}, float64), g.placeholder("y", {batch, 3}, int64));
  }>("softmax_cross_entropy_loss: labels come first, then logits; found labels of float64 and logits of int64: swap "
     "them");
  check<[](graph& g) {
    losses::hinge_loss(g.placeholder("x", {batch, 3}), g.placeholder("y", {batch}, int32));
  }>("hinge_loss: labels come first, then logits; found labels of float32 and logits of int32: swap them");
  check<[](graph& g) {
    losses::log_loss(g.placeholder("p", {batch, 3}), g.placeholder("y", {batch, 3}, int32));
  }>("log_loss: labels come first, then predictions; found labels of float32 and predictions of int32: swap them");
  // what ends in _with_logits takes logits first
  check<[](graph& g) {
    sparse_softmax_cross_entropy_with_logits(g.placeholder("y", {batch}, int32), g.placeholder("x", {batch, 3}));
  }>("SparseSoftmaxCrossEntropyWithLogits: logits must be float32 or float64, got int32 (y[batch], x[batch, 3])");
  check<[](graph& g) {
    sigmoid_cross_entropy_with_logits(g.placeholder("y", {batch, 3}, int32), g.placeholder("x", {batch, 3}));
  }>("Mul: operands must have one dtype, got int32 and float32; use cast (y[batch, 3], x[batch, 3])");
  check<[](graph& g) {
    weighted_cross_entropy_with_logits(g.placeholder("y", {batch, 3}, int32), g.placeholder("x", {batch, 3}), 2);
  }>("Exp: takes float32 or float64, got int32; use cast ([batch, 3])");
  CHECK(refusal_test::thrown<[](graph& g) {
          softmax_cross_entropy_with_logits(g.placeholder("y", {batch, 3}, int32), g.placeholder("x", {batch, 3}));
        }>()
            .find("SoftmaxCrossEntropyWithLogits: operands must all be float32 or all float64") == 0);
  // class numbers and logits by sparse_softmax_cross_entropy, in any order: one of each, of ranks that fit
  for (const bool swapped : {false, true}) {
    graph g;
    const value x = g.constant({1, 2, 3, 1, 1, 1}, {2, 3}, float64), y = g.constant({2, 0}, {2}, int32);
    const value in_losses = swapped ? losses::sparse_softmax_cross_entropy(x, y, {.reduction = losses::reduction::sum})
                                    : losses::sparse_softmax_cross_entropy(y, x, {.reduction = losses::reduction::sum});
    const value op = reduce_sum(swapped ? sparse_softmax_cross_entropy(y, x) : sparse_softmax_cross_entropy(x, y));
    session s{g};
    const double expected = std::log(std::exp(-2) + std::exp(-1) + 1) + std::log(3.0);
    CHECK(s.run(in_losses).as<double>()[0] == doctest::Approx(expected).epsilon(1e-12));
    CHECK(s.run(op).as<double>()[0] == doctest::Approx(expected).epsilon(1e-12));
  }
  check<[](graph& g) {
    losses::sparse_softmax_cross_entropy(g.placeholder("x", {batch, 3}), g.placeholder("y", {batch, 3}, int32));
  }>("SparseSoftmaxCrossEntropyWithLogits: labels must be [batch], one class per row of logits (x[batch, 3], "
     "y[batch, 3])");
  check<[](graph& g) {
    losses::sparse_softmax_cross_entropy(g.placeholder("y", {batch}, int32), g.placeholder("x", {batch, 3}, int32));
  }>("SparseSoftmaxCrossEntropyWithLogits: logits must be float32 or float64, got int32 (x[batch, 3], y[batch])");
  check<[](graph& g) { losses::sparse_softmax_cross_entropy(g.placeholder("y", {batch}, int32), value{}); }>(
      "sparse_softmax_cross_entropy_loss: logits must be a tensor");
}
TEST_CASE("labels and logits that are swapped: labels that come from variables, and logits that do not") {
  using loss_of = value (*)(value, value);
  struct trial {
    const char *name, *order;
    loss_of loss;  // of what comes first and second
  };
  const trial trials[] = {
      {"sigmoid_cross_entropy_with_logits", "logits come first, then labels",
       [](value a, value b) { return sigmoid_cross_entropy_with_logits(a, b); }},
      {"weighted_cross_entropy_with_logits", "logits come first, then labels",
       [](value a, value b) { return weighted_cross_entropy_with_logits(a, b, 2); }},
      {"softmax_cross_entropy_with_logits", "logits come first, then labels",
       [](value a, value b) { return softmax_cross_entropy_with_logits(a, b); }},
      {"sigmoid_cross_entropy_loss", "labels come first, then logits",
       [](value a, value b) { return losses::sigmoid_cross_entropy(a, b); }},
      {"softmax_cross_entropy_loss", "labels come first, then logits",
       [](value a, value b) { return losses::softmax_cross_entropy(a, b); }},
      {"hinge_loss", "labels come first, then logits", [](value a, value b) { return losses::hinge_loss(a, b); }},
      {"log_loss", "labels come first, then predictions", [](value a, value b) { return losses::log_loss(a, b); }}};
  for (const trial& t : trials) {
    graph g;
    const value x = g.placeholder("x", {batch, 3}), y = g.placeholder("y", {batch, 3});
    const value h = tanh(g.variable("w", {3}) * x), other = g.variable("v", {3}) * x;
    const bool labels_first = std::string_view(t.order).starts_with("labels");
    const auto loss = [&](value labels, value logits) {
      return labels_first ? t.loss(labels, logits) : t.loss(logits, labels);
    };
    loss(y, h), loss(other, h), loss(stop_gradient(h), other);  // also of what a second network says
    loss(y, x), loss(ones_like(h), h);
    CHECK_THROWS_WITH_AS(
        loss(h, y),
        text(t.name, ": ", t.order, "; the labels here come from variables, and the others from none: swap them")
            .c_str(),
        invalid_argument);
    CHECK_THROWS_AS(loss(h, ones_like(h)), invalid_argument);
  }
}
static_assert([] {  // when the compiler builds the graph, too
  graph g;
  const value x = g.placeholder("x", {batch, 3});
  sigmoid_cross_entropy_with_logits(x, g.variable("w", {3}) * x);
  return !g.refusal.empty();
}());
TEST_CASE("labels and predictions that are swapped: the losses in which it makes no difference") {
  using losses::options;
  const auto same = [](auto loss) {
    graph g;
    const value a = g.constant({0.5, -1, 2, 0.25, 3, -0.125}, {2, 3}, float64),
                b = g.constant({1, 2, -3, 0.75, 0, 1.5}, {2, 3}, float64);
    const value ab = loss(a, b), ba = loss(b, a);
    session s{g};
    const double first = s.run(ab).as<double>()[0];
    CHECK(first == s.run(ba).as<double>()[0]);
    CHECK(first != 0);
  };
  same([](value y, value p) { return losses::mean_squared_error(y, p); });
  same([](value y, value p) { return losses::absolute_difference(y, p); });
  same([](value y, value p) { return losses::huber_loss(y, p, 0.5); });
  same([](value y, value p) { return losses::cosine_distance(y, p, 1); });
  same([](value y, value p) { return losses::mean_pairwise_squared_error(y, p); });
}

namespace {
// The cases of one kind.
std::vector<golden::json> cases_of(const char* kind) {
  std::vector<golden::json> out;
  for (const auto& c : golden::read("losses.json"))
    if (c["kind"] == kind) out.push_back(c);
  return out;
}
// A column of golden numbers as a constant of the graph.
value numbers(graph& g, const golden::json& j, dtype type, shape dims = {}) {
  if (dims.rank == 0) dims = {static_cast<int>(j.size())};
  return g.constant(golden::numbers<double>(j), dims, type);
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
// float64 to the case's own tolerance; float32 to 4e-6 of the largest number that the formula meets, which the case's
// `scale` says: cross-entropies subtract logits that may be large.
void check_numbers(const golden::json& c, value y, const std::vector<double>& got, const char* want, double scale = 1) {
  const auto expected =
      c[want].is_array() ? golden::numbers<double>(c[want]) : std::vector<double>{golden::number(c[want])};
  INFO(c["id"].get<std::string>());
  REQUIRE(got.size() == expected.size());
  const bool single = y.type() == float32;
  const double rtol = std::max(c["rtol"].get<double>(), single ? 4e-6 : 0);
  const double atol = std::max(c["atol"].get<double>(), single ? 4e-6 * scale : 0);
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(golden::near(got[i], expected[i], rtol, atol));
}
double largest(const golden::json& j) {
  double most = 1;
  for (double x : golden::numbers<double>(j)) most = std::max(most, std::abs(x));
  return most;
}
losses::options options_of(graph& g, const golden::json& args, dtype type) {
  losses::options o;
  if (args.contains("weights")) {
    if (args["weights"].is_array())
      o.weights = numbers(g, args["weights"], type);
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

TEST_CASE("golden losses: every function, weighting and reduction, float64 and float32") {
  const auto cases = cases_of("loss");
  REQUIRE(cases.size() == 54);
  for (const auto& c : cases)
    for (const dtype type : {float64, float32}) {
      graph g;
      const auto fn = c["fn"].get<std::string>();
      const auto& args = c["args"];
      const auto o = options_of(g, args, type);
      const char* second = args.contains("logits") ? "logits" : "predictions";
      shape dims;
      if (args.contains("num_classes"))
        dims = {static_cast<int>(args["labels"].size()) / args["num_classes"].get<int>(),
                args["num_classes"].get<int>()};
      const value y = numbers(g, args["labels"], type, dims), p = numbers(g, args[second], type, dims);
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
        loss = losses::compute_weighted_loss(weighted_cross_entropy_with_logits(p, y, args["pos_weight"].get<double>()),
                                             o);
      INFO(fn);
      REQUIRE(loss);
      check_numbers(c, loss, compute(g, loss), "expect");
    }
}

TEST_CASE("golden cross-entropies and l2_loss, with their gradients, float64 and float32") {
  const auto gradient = [](graph& g, value y, value x) {
    return gradients(g, std::span(&y, 1), std::span(&x, 1))[0].dense;
  };
  const auto check_both = [&](const golden::json& c, graph& g, value y, value x, const char* loss, const char* slope,
                              double scale) {
    check_numbers(c, y, compute(g, y), loss, scale);
    check_numbers(c, y, compute(g, gradient(g, y, x)), slope, scale);
  };
  const auto softmax = cases_of("softmax_xent"), sigmoid = cases_of("sigmoid_xent"), l2 = cases_of("l2_loss");
  REQUIRE(softmax.size() == 10);
  REQUIRE(sigmoid.size() == 5);
  REQUIRE(l2.size() == 5);
  for (const dtype type : {float64, float32}) {
    for (const auto& c : softmax) {
      graph g;
      const shape dims{c["shape"][0].get<int>(), c["shape"][1].get<int>()};
      const value x = numbers(g, c["logits"], type, dims);
      const value y = c.contains("class_ids")
                          ? sparse_softmax_cross_entropy(x, numbers(g, c["class_ids"], int64))
                          : softmax_cross_entropy_with_logits(x, numbers(g, c["labels"], type, dims));
      check_both(c, g, y, x, "expect_loss", "expect_dlogits", largest(c["logits"]));
    }
    for (const auto& c : sigmoid) {
      graph g;
      const value x = numbers(g, c["logits"], type),
                  y = sigmoid_cross_entropy_with_logits(x, numbers(g, c["labels"], type));
      check_both(c, g, y, x, "expect_loss", "expect_dlogits", 1);
    }
    for (const auto& c : l2) {
      graph g;
      const value x = numbers(g, c["t"], type), y = l2_loss(x);
      check_both(c, g, y, x, "expect", "expect_grad", 1);
    }
  }
}

TEST_CASE("gradients against differences, weights and reductions included") {
  using xs = std::span<const value>;
  using namespace losses;
  const auto row = [](const std::vector<testing::gradient_input>& inputs, value (*build)(graph&, xs)) {
    const auto e = testing::check_gradients(inputs, build);
    CHECK(e.coarse < 1e-4);
    CHECK(e.fine < 1e-8);
  };
  const testing::gradient_input any{{batch, 4}}, label{{batch, 4}, 1.1, 3}, share{{batch, 4}, 0.2, 0.8},
      weight{{batch, 1}, 0.5, 2};
  row({any, any, weight}, [](graph&, xs x) { return losses::mean_squared_error(x[0], x[1], {.weights = x[2]}); });
  row({label, any, weight},
      [](graph&, xs x) { return absolute_difference(x[0], x[1], {.weights = x[2], .reduction = reduction::mean}); });
  row({label, any},
      [](graph&, xs x) { return huber_loss(x[0], x[1], 0.05, {.weights = 2, .reduction = reduction::none}); });
  row({any, any}, [](graph&, xs x) { return huber_loss(x[0], x[1], 10, {.reduction = reduction::sum}); });
  row({share, share, weight}, [](graph&, xs x) {
    return log_loss(x[0], x[1], 1e-7, {.weights = x[2], .reduction = reduction::sum_over_batch_size});
  });
  row({{{batch, 4}, 0, 0.1}, {{batch, 4}, -0.9, 0.9}}, [](graph&, xs x) { return hinge_loss(x[0], x[1]); });
  row({share, any}, [](graph&, xs x) { return cosine_distance(x[0], x[1], -1); });
  row({any, any, weight}, [](graph&, xs x) { return mean_pairwise_squared_error(x[0], x[1], {.weights = x[2]}); });
  row({any}, [](graph& g, xs x) {  // normalized labels: the gradient is softmax - labels only then
    const value y = g.constant({0.1, 0.2, 0.3, 0.4}, {1, 4}, float64), all = broadcast_to(y, {batch, 4});
    return losses::softmax_cross_entropy(all, x[0], 0.1);
  });
  row({share, any}, [](graph&, xs x) { return losses::sigmoid_cross_entropy(x[0], x[1], 0.1); });
  row({share, any}, [](graph&, xs x) { return weighted_cross_entropy_with_logits(x[1], x[0], 3.5); });
  row({any}, [](graph&, xs x) { return l2_loss(x[0]); });
}

TEST_CASE("reductions by their words: weights of 0 are not counted, nothing is divided by 0") {
  using losses::reduction;
  const auto of = [](reduction r, std::initializer_list<double> weights, const shape& dims) {
    graph g;
    const value y = g.constant({0, 0, 0, 0}, {2, 2}, float64), p = g.constant({1, 2, 3, 4}, {2, 2}, float64);
    return compute(g,
                   losses::absolute_difference(y, p, {.weights = g.constant(weights, dims, float64), .reduction = r}));
  };
  using list = std::vector<double>;
  // a weight for each row: 2 and 0
  CHECK(of(reduction::none, {2, 0}, {2, 1}) == list{2, 4, 0, 0});
  CHECK(of(reduction::sum, {2, 0}, {2, 1}) == list{6});
  CHECK(of(reduction::sum_by_nonzero_weights, {2, 0}, {2, 1}) == list{3});  // by 2 elements, not by 4, not by 4.0
  CHECK(of(reduction::mean, {2, 0}, {2, 1}) == list{1.5});                  // by 2 + 2
  CHECK(of(reduction::sum_over_batch_size, {2, 0}, {2, 1}) == list{1.5});
  CHECK(of(reduction::sum_by_nonzero_weights, {0}, {}) == list{0});
  CHECK(of(reduction::mean, {0}, {}) == list{0});
  CHECK(of(reduction::mean, {1, -1}, {2, 1}) == list{0});  // their sum is 0
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
  // nothing weighs: 0, even of what is not finite
  const value broken = g.constant({1, std::numeric_limits<double>::infinity()}, {1, 2}, float64);
  CHECK(compute(g, losses::mean_pairwise_squared_error(broken, broken, {.weights = 0.0}))[0] == 0);
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
