// one thread: nothing here runs at the same time
// The gradient of every op that has one, against central differences in float64 at two steps. A row builds y from its
// inputs. An elementwise op without a row is tried on operands between 0.3 and 2; another op without one is an error.
#include "../golden/golden.hpp"

#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/ops/metric.hpp>
#include <gradus/testing/gradient_check.hpp>

#include <doctest/doctest.h>

#include <map>
#include <string>

using namespace gradus;
using testing::gradient_input;

namespace {
using xs = std::span<const value>;
struct row {
  const char* name;
  std::vector<gradient_input> inputs;
  value (*build)(graph&, xs);
};

// Values that stay away from the kinks of relu, abs, max: no two nearer than 0.1, none nearer to 0 than 0.1.
std::vector<double> apart(int n) {
  std::vector<double> v;
  for (int i = 0; i < n; ++i) v.push_back(((i * 7) % n - n / 2 + 0.5) * 0.2);
  return v;
}
const gradient_input any{{batch, 4}}, positive{{batch, 4}, 0.3, 2}, kinked{{batch, 4}, 0, 0, apart(12)};

// Gradients of the ops that gradients are made of: y = the gradient of f by x, contracted with the last input.
value differentiated(graph& g, value x, value f, value dy) {
  return gradients(g, std::span(&f, 1), std::span(&x, 1), {.grad_ys = std::span<const value>(&dy, 1)})[0].dense;
}

std::vector<row> elementwise_rows() {
  return {
      {"add", {any, {{4}}}, [](graph&, xs x) { return x[0] + x[1]; }},
      {"add, both broadcast", {{{batch, 1}}, {{1, 4}}}, [](graph&, xs x) { return x[0] + x[1]; }},
      {"sub", {any, {{}}}, [](graph&, xs x) { return x[0] - x[1]; }},
      {"mul", {any, {{1, 4}}}, [](graph&, xs x) { return x[0] * x[1]; }},
      {"mul by itself", {any}, [](graph&, xs x) { return x[0] * x[0]; }},
      {"div", {any, positive}, [](graph&, xs x) { return x[0] / x[1]; }},
      {"div by a column", {any, {{batch, 1}, 0.5, 2}}, [](graph&, xs x) { return x[0] / x[1]; }},
      {"pow", {positive, {{4}}}, [](graph&, xs x) { return pow(x[0], x[1]); }},
      {"pow of a negative", {{{batch, 4}, -2, -0.5}}, [](graph&, xs x) { return pow(x[0], 3); }},
      {"maximum", {kinked, {{4}, 0, 0, {0, 0.03, 0.5, -0.5}}}, [](graph&, xs x) { return maximum(x[0], x[1]); }},
      {"minimum", {kinked, {{4}, 0, 0, {0, 0.03, 0.5, -0.5}}}, [](graph&, xs x) { return minimum(x[0], x[1]); }},
      {"squared_difference", {any, {{4}}}, [](graph&, xs x) { return squared_difference(x[0], x[1]); }},
      {"neg", {any}, [](graph&, xs x) { return neg(x[0]); }},
      {"exp", {any}, [](graph&, xs x) { return exp(x[0]); }},
      {"log", {positive}, [](graph&, xs x) { return log(x[0]); }},
      {"log1p", {positive}, [](graph&, xs x) { return log1p(x[0]); }},
      {"sqrt", {positive}, [](graph&, xs x) { return sqrt(x[0]); }},
      {"rsqrt", {positive}, [](graph&, xs x) { return rsqrt(x[0]); }},
      {"square", {any}, [](graph&, xs x) { return square(x[0]); }},
      {"abs", {kinked}, [](graph&, xs x) { return abs(x[0]); }},
      {"tanh", {any}, [](graph&, xs x) { return tanh(x[0]); }},
      {"sigmoid", {any}, [](graph&, xs x) { return sigmoid(x[0]); }},
      {"relu", {kinked}, [](graph&, xs x) { return relu(x[0]); }},
      {"leaky_relu", {kinked}, [](graph&, xs x) { return leaky_relu(x[0]); }},
      {"elu", {kinked}, [](graph&, xs x) { return elu(x[0]); }},
      {"gelu", {{{batch, 4}, -3, 3}}, [](graph&, xs x) { return gelu(x[0]); }},
      {"softplus", {{{batch, 4}, -3, 3}}, [](graph&, xs x) { return softplus(x[0]); }},
      {"erf", {{{batch, 4}, -2, 2}}, [](graph&, xs x) { return erf(x[0]); }},
      {"select",
       {any, {{4}}},
       [](graph& g, xs x) {
         const value c = g.constant({1, 0, 0, 1}, {4}, boolean);
         return select(c, x[0], x[1]);
       }},
      {"cast to itself and back",
       {any},
       [](graph&, xs x) {
         return x[0].g->add_with(cards::cast, {x[0]}, detail::type_attr{static_cast<int>(float64)});
       }},
      {"broadcast_to",
       {{{4}}},
       [](graph&, xs x) {
         return broadcast_to(x[0], {batch, 4});
       }},
      {"tanh twice", {any, any}, [](graph& g, xs x) { return differentiated(g, x[0], tanh(x[0]), x[1]); }},
      {"sigmoid twice", {any, any}, [](graph& g, xs x) { return differentiated(g, x[0], sigmoid(x[0]), x[1]); }},
      {"relu twice", {kinked, any}, [](graph& g, xs x) { return differentiated(g, x[0], relu(square(x[0])), x[1]); }},
      {"softplus twice", {any, any}, [](graph& g, xs x) { return differentiated(g, x[0], softplus(x[0]), x[1]); }},
      {"erf twice", {any, any}, [](graph& g, xs x) { return differentiated(g, x[0], erf(x[0]), x[1]); }},
      {"rsqrt twice", {positive, any}, [](graph& g, xs x) { return differentiated(g, x[0], rsqrt(x[0]), x[1]); }},
      {"div twice",
       {positive, positive, any},
       [](graph& g, xs x) { return differentiated(g, x[1], x[0] / x[1], x[2]); }},
      {"a chain",
       {any, {{4}, 0.5, 1}},
       [](graph&, xs x) {
         return tanh(x[0] * x[1] + 0.3) * sigmoid(x[0]) - log(square(x[0]) + 1.0) / (exp(x[1]) + 1.0);
       }},
  };
}

std::vector<row> reduction_rows() {
  const gradient_input cube{{batch, 2, 4}}, steps{{batch, 2, 4}, 0, 0, apart(24)};
  return {
      {"sum", {cube}, [](graph&, xs x) { return reduce_sum(square(x[0])); }},
      {"sum of an axis", {cube}, [](graph&, xs x) { return reduce_sum(square(x[0]), {1}); }},
      {"sum of outer axes, kept",
       {cube},
       [](graph&, xs x) {
         return reduce_sum(square(x[0]), {0, 2}, true);
       }},
      {"mean", {cube}, [](graph&, xs x) { return reduce_mean(square(x[0])); }},
      {"mean of the batch", {cube}, [](graph&, xs x) { return reduce_mean(square(x[0]), {0}); }},
      {"mean of the last", {cube}, [](graph&, xs x) { return reduce_mean(square(x[0]), {-1}, true); }},
      {"max", {steps}, [](graph&, xs x) { return reduce_max(x[0], {1}); }},
      {"max of all", {steps}, [](graph&, xs x) { return reduce_max(x[0]); }},
      {"min",
       {steps},
       [](graph&, xs x) {
         return reduce_min(x[0], {0, 2});
       }},
      {"reshape",
       {cube},
       [](graph&, xs x) {
         return square(reshape(x[0], {4 * batch, 2}));
       }},
      {"identity", {cube}, [](graph&, xs x) { return square(identity(x[0])); }},
      {"copy", {cube}, [](graph& g, xs x) { return square(g.add(cards::copy, {x[0]})); }},
      {"stop_gradient of the other factor",
       {cube},
       [](graph& g, xs x) { return x[0] * stop_gradient(g.constant(2, float64)); }},
      {"moments",
       {cube},
       [](graph&, xs x) {
         const auto [mean, variance] = moments(x[0], {0, 1});
         return mean * variance + mean;
       }},
      {"matmul", {{{batch, 3}}, {{3, 2}}}, [](graph&, xs x) { return matmul(x[0], x[1]); }},
      {"matmul, a transposed",
       {{{3, 2}}, {{3, 4}}},
       [](graph&, xs x) { return matmul(x[0], x[1], {.transpose_a = true}); }},
      {"matmul, b transposed",
       {{{batch, 3}}, {{2, 3}}},
       [](graph&, xs x) { return matmul(x[0], x[1], {.transpose_b = true}); }},
      {"matmul, both transposed",
       {{{3, 2}}, {{4, 3}}},
       [](graph&, xs x) { return matmul(x[0], x[1], {.transpose_a = true, .transpose_b = true}); }},
      {"matmul of matrices", {{{batch, 2, 3}}, {{batch, 3, 2}}}, [](graph&, xs x) { return matmul(x[0], x[1]); }},
      {"matmul of matrices, transposed",
       {{{batch, 3, 2}}, {{batch, 2, 3}}},
       [](graph&, xs x) { return matmul(x[0], x[1], {.transpose_a = true, .transpose_b = true}); }},
      {"matmul of matrices, b transposed",
       {{{batch, 2, 3}}, {{batch, 2, 3}}},
       [](graph&, xs x) { return matmul(x[0], x[1], {.transpose_b = true}); }},
      {"matmul of matrices by one", {{{batch, 2, 3}}, {{3, 2}}}, [](graph&, xs x) { return matmul(x[0], x[1]); }},
      {"softmax", {any}, [](graph&, xs x) { return softmax(x[0]); }},
      {"softmax twice", {any, any}, [](graph& g, xs x) { return differentiated(g, x[0], softmax(x[0]), x[1]); }},
      {"log_softmax", {any}, [](graph&, xs x) { return log_softmax(x[0]); }},
      {"softmax cross-entropy",
       {any},
       [](graph& g, xs x) {
         return softmax_cross_entropy_with_logits(
             x[0], broadcast_to(g.constant({0.2, 0.3, 0.1, 0.4}, {4}, float64), {batch, 4}));
       }},
      {"sparse cross-entropy",
       {{{3, 4}}},
       [](graph& g, xs x) {
         return sparse_softmax_cross_entropy(x[0], g.constant({3, 0, 2}, {3}, int32));
       }},
  };
}

std::vector<row> arrange_rows() {
  const gradient_input cube{{batch, 2, 3}}, image{{batch, 5, 4, 2}};
  return {
      {"transpose",
       {cube},
       [](graph&, xs x) {
         return square(transpose(x[0], {2, 0, 1}));
       }},
      {"slice",
       {cube},
       [](graph&, xs x) {
         return square(slice(x[0], {0, 1, 0}, {-1, 1, 2}));
       }},
      {"pad",
       {cube},
       [](graph&, xs x) {
         return square(pad(x[0], {{0, 0}, {1, 0}, {2, 1}}, 0.7));
       }},
      {"pad, its fill",
       {cube, {{}}},
       [](graph& g, xs x) {
         return square(g.add_with(cards::pad, {x[0], x[1]}, detail::box_attr{{0, 1, 0}, {0, 2, 1}}));
       }},
      {"slice of a pad of a slice",
       {cube},
       [](graph&, xs x) {
         return square(
             slice(pad(slice(x[0], {0, 0, 1}, {-1, -1, 2}), {{0, 0}, {1, 1}, {0, 1}}, 1), {0, 1, 1}, {-1, 2, 2}));
       }},
      {"concat",
       {cube, {{batch, 1, 3}}},
       [](graph&, xs x) {
         return square(concat({x[0], x[1], x[0]}, 1));
       }},
      {"stack",
       {any, any},
       [](graph&, xs x) {
         return square(stack({x[0], x[1]}, 1));
       }},
      {"split",
       {any},
       [](graph&, xs x) {
         const auto [a, b] = split<2>(x[0], -1);
         return a * b;
       }},
      {"gather",
       {{{4, 2}}},
       [](graph& g, xs x) {
         return gather(x[0], g.constant({3, 1, 3, 3}, {2, 2}, int32));
       }},
      {"gather, then more",
       {{{4, 2}}},
       [](graph& g, xs x) {
         return square(gather(x[0] * 2.0, g.constant({3, 1, 3}, {3}, int64))) * reduce_sum(x[0]);
       }},
      {"gather twice from one table",
       {{{4, 2}}},
       [](graph& g, xs x) {
         return gather(x[0], g.constant({3, 1}, {2}, int32)) * gather(x[0], g.constant({1, 1}, {2}, int32));
       }},
      {"rows_to_dense",
       {{{3, 2}}},
       [](graph& g, xs x) {
         return square(rows_to_dense(x[0], g.constant({3, 1, 3}, {3}, int32), {4, 2}));
       }},
      {"causal_mask", {{{batch, 3, 3}}}, [](graph&, xs x) { return square(causal_mask(x[0], 2)); }},
      {"causal_mask, its fill",
       {{{batch, 3, 3}}, {{}}},
       [](graph& g, xs x) {
         return square(g.add(cards::causal_mask, {x[0], x[1]}));
       }},
      {"conv2d, valid", {image, {{2, 3, 2, 3}}}, [](graph&, xs x) { return conv2d(x[0], x[1]); }},
      {"conv2d, same, strides",
       {image, {{3, 2, 2, 3}}},
       [](graph&, xs x) {
         return conv2d(x[0], x[1], {.strides = {2, 3}, .padding = padding::same});
       }},
      {"conv2d by its image, twice",
       {image, {{2, 2, 2, 3}}, {{batch, 2, 2, 3}}},
       [](graph& g, xs x) { return differentiated(g, x[0], conv2d(square(x[0]), x[1], {.strides = 2}), x[2]); }},
      {"conv2d by its filters, twice",
       {image, {{2, 2, 2, 3}}, {{batch, 3, 2, 3}}},
       [](graph& g, xs x) {
         return differentiated(g, x[1], conv2d(x[0], square(x[1]), {.strides = 2, .padding = padding::same}), x[2]);
       }},
      {"depthwise_conv2d, valid", {image, {{2, 3, 2, 3}}}, [](graph&, xs x) { return depthwise_conv2d(x[0], x[1]); }},
      {"depthwise_conv2d, same, strides",
       {image, {{3, 2, 2, 1}}},
       [](graph&, xs x) {
         return depthwise_conv2d(x[0], x[1], {.strides = {2, 3}, .padding = padding::same});
       }},
      {"depthwise_conv2d by its image, twice",
       {image, {{2, 2, 2, 2}}, {{batch, 2, 2, 4}}},
       [](graph& g, xs x) {
         return differentiated(g, x[0], depthwise_conv2d(square(x[0]), x[1], {.strides = 2}), x[2]);
       }},
      {"depthwise_conv2d by its filters, twice",
       {image, {{2, 2, 2, 2}}, {{batch, 3, 2, 4}}},
       [](graph& g, xs x) {
         const value y = depthwise_conv2d(x[0], square(x[1]), {.strides = 2, .padding = padding::same});
         return differentiated(g, x[1], y, x[2]);
       }},
      {"max_pool",
       {{{batch, 4, 4, 2}, 0, 0, apart(96)}},
       [](graph&, xs x) { return max_pool(x[0], {.pool_size = 3, .strides = 2, .padding = padding::same}); }},
      {"avg_pool",
       {image},
       [](graph&, xs x) { return square(avg_pool(x[0], {.pool_size = 3, .strides = 2, .padding = padding::same})); }},
      {"avg_pool twice",
       {image, {{batch, 2, 2, 2}}},
       [](graph& g, xs x) { return differentiated(g, x[0], square(avg_pool(x[0])), x[1]); }},
      {"dropout", {any}, [](graph&, xs x) { return dropout(x[0], 0.4); }},
      {"dropout of dropout's gradient",
       {any, any},
       [](graph& g, xs x) { return differentiated(g, x[0], square(dropout(x[0], 0.4)), x[1]); }},
      {"random numbers as a factor",
       {any},
       [](graph& g, xs x) {
         return x[0] * random_normal(g, {batch, 4}, 1, 0.5, float64) + random_uniform(g, {4}, -1, 1, float64);
       }},
      {"check_between", {any}, [](graph&, xs x) { return square(check_between(x[0], -2, 2)); }},
  };
}

std::vector<row> loss_rows() {
  const gradient_input square_input{{batch, 3}}, weight{{batch, 1}, 0.5, 2}, logits{{batch, 3}, -4, 4},
      chance{{batch, 3}, 0.1, 0.9};
  return {
      {"mean_squared_error",
       {square_input, square_input, weight},
       [](graph&, xs x) { return losses::mean_squared_error(x[0], x[1], {.weights = x[2]}); }},
      {"huber_loss",
       {square_input, {{batch, 3}, 2, 4}},
       [](graph&, xs x) { return losses::huber_loss(x[0], x[1], 0.5); }},
      {"log_loss", {chance, chance}, [](graph&, xs x) { return losses::log_loss(x[0], x[1]); }},
      {"hinge_loss",
       {{{batch, 3}, 0, 0.2}, {{batch, 3}, 2, 4}},
       [](graph&, xs x) { return losses::hinge_loss(x[0], x[1]); }},
      {"cosine_distance",
       {square_input, square_input},
       [](graph&, xs x) { return losses::cosine_distance(x[0], x[1], 1); }},
      {"mean_pairwise_squared_error",
       {square_input, square_input, weight},
       [](graph&, xs x) { return losses::mean_pairwise_squared_error(x[0], x[1], {.weights = x[2]}); }},
      {"softmax_cross_entropy, smoothed",
       {logits},
       [](graph& g, xs x) {
         return losses::softmax_cross_entropy(broadcast_to(g.constant({0, 1, 0}, {3}), {batch, 3}), x[0], 0.1);
       }},
      {"sigmoid_cross_entropy",
       {chance, logits},
       [](graph&, xs x) {
         return losses::sigmoid_cross_entropy(x[0], x[1], 0.1, {.reduction = losses::reduction::none});
       }},
      {"weighted_cross_entropy",
       {logits, chance},
       [](graph&, xs x) { return weighted_cross_entropy_with_logits(x[0], x[1], 2.5); }},
      {"MEAN by weights",
       {square_input, weight},
       [](graph&, xs x) {
         return losses::compute_weighted_loss(square(x[0]), {.weights = x[1], .reduction = losses::reduction::mean});
       }},
      {"l2_loss", {square_input}, [](graph&, xs x) { return l2_loss(x[0]); }},
      {"layer_norm", {{{batch, 5}}}, [](graph&, xs x) { return layer_norm(x[0]); }},
      {"batch_norm", {{{batch, 2, 2, 3}}}, [](graph&, xs x) { return batch_norm(x[0]); }},
      {"attention", {{{batch, 3, 4}}}, [](graph&, xs x) { return multi_head_attention(x[0], {.heads = 2}); }},
      {"dense layers",
       {{{batch, 3}}},
       [](graph&, xs x) { return dense(dense(x[0], {.units = 5, .activation = tanh}), {.units = 2}); }},
  };
}

void check(const std::vector<row>& rows) {
  for (const row& r : rows) {
    INFO(std::string(r.name));
    const auto e = testing::check_gradients(r.inputs, r.build);
    CHECK(e.coarse < 2e-5);
    CHECK(e.fine < 2e-8);
  }
}
}  // namespace

TEST_CASE("elementwise") { check(elementwise_rows()); }
TEST_CASE("reductions, products, softmax") { check(reduction_rows()); }
TEST_CASE("arranging, convolving, drawing") { check(arrange_rows()); }
TEST_CASE("losses and layers") { check(loss_rows()); }

namespace {
template <const card*... Ops>
void note(op_list<Ops...>, std::map<std::string, const card*>& ops) {
  for (const card* op : {Ops...})
    if (op->gradient != nullptr) ops.emplace(op->name, op);
}
// An op of numbers, element by element, that has no row. True if it is one.
bool check_by_its_card(const card& op) {
  if (!op.is(trait::elementwise) || op.operands < 1 || op.operands > 3) return false;
  INFO(std::string(op.name), " by its card");
  const auto e =
      testing::check_gradients(std::vector<gradient_input>(static_cast<std::size_t>(op.operands), positive),
                               [&](graph& g, xs x) { return g.add(op, x.data(), static_cast<int>(x.size())); });
  CHECK(e.coarse < 2e-5);
  CHECK(e.fine < 2e-8);
  return true;
}
}  // namespace

TEST_CASE("every op with a gradient has a row, or is checked by its card") {
  CHECK(check_by_its_card(cards::softplus));
  CHECK(check_by_its_card(cards::div));
  std::map<std::string, const card*> missing;
  note(elementwise_ops{}, missing), note(matmul_ops{}, missing), note(reduce_ops{}, missing),
      note(softmax_ops{}, missing);
  note(state_ops{}, missing), note(arrange_ops{}, missing), note(gather_ops{}, missing), note(conv_ops{}, missing);
  note(depthwise_conv_ops{}, missing);
  note(random_ops{}, missing), note(host_ops{}, missing);
  CHECK(missing.size() > 50);
  for (const auto& rows : {elementwise_rows(), reduction_rows(), arrange_rows(), loss_rows()})
    for (const row& r : rows) {
      graph g(mode::train);
      std::vector<value> inputs;
      for (const auto& i : r.inputs) inputs.push_back(g.placeholder(text("x", inputs.size()), i.dims, float64));
      r.build(g, inputs);
      for (const node& n : g.nodes) missing.erase(std::string(n.op->name));
    }
  std::string names;
  for (const auto& [name, op] : missing)
    if (!check_by_its_card(*op)) names += name + " ";
  CHECK(names == "");
}

TEST_CASE("gradients that TensorFlow's own tests demand") {
  const auto facts = golden::read("ops.json")["gradients_tf"];
  REQUIRE(facts.size() == 6);
  for (const auto& c : facts) {
    const auto id = c["id"].get<std::string>();
    INFO(id, ": ", c["graph"].get<std::string>());
    graph g;
    std::vector<value> ys, wrt;
    gradients_options o;
    const auto x = [&](double v) { return g.constant(v, float64); };
    if (id == "tf-052") {
      const value a = x(1), y = a * 2.0, z = y * 3.0;
      ys = {z}, wrt = {a, y};
    } else if (id == "tf-054") {
      const value a = x(3), y = square(a), y1 = square(y), y2 = square(y1);
      ys = {y, y2}, wrt = {a};
    } else if (id == "tf-055") {
      const value a = x(1), y = a * 2.0, z = a + y;
      ys = {z}, wrt = {a, y};
    } else if (id == "tf-057") {
      const value a = x(1);
      ys = {stop_gradient(a)}, wrt = {a};
    } else if (id == "tf-059") {
      const value a = g.constant(1, float64, {1, 2});
      ys = {g.constant(1, float64, {3, 1})}, wrt = {a};
      o.unconnected_gradients = unconnected::zero;
    } else if (id == "tf-062") {
      const value a = x(1);
      ys = {a * a}, wrt = {a};
    }
    const auto found = gradients(g, ys, wrt, o);
    REQUIRE(found.size() == static_cast<int>(c["expect"].size()));
    session s{g};
    for (int i = 0; i < found.size(); ++i) {
      const auto& want = c["expect"][static_cast<std::size_t>(i)];
      CHECK(bool(found[i]) == !want.is_null());
      if (want.is_null()) continue;
      const auto got = s.run(found[i].dense).as<double>();
      const auto numbers = want.is_array() ? golden::numbers<double>(want) : std::vector<double>{golden::number(want)};
      CHECK(std::vector<double>(got.begin(), got.end()) == numbers);
    }
  }
}
