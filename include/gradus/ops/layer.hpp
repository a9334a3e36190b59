// Layers: ops with variables of their own, named as TensorFlow names them. A layer's name is a scope, so that the
// second "dense" of a graph is "dense_1". A name that is empty stands for the layer's own: "dense", "conv2d", ...
#pragma once
#include "matmul.hpp"
#include "state.hpp"

namespace gradus {

using activation = value (*)(value);

namespace detail {
constexpr value activated(value x, activation f) { return f != nullptr ? f(x) : x; }
// Newton's: std::sqrt is not for constant evaluation on every compiler.
constexpr double root(double x) {
  double r = x > 1 ? x : 1;
  for (int i = 0; i < 64; ++i) {
    const double next = 0.5 * (r + x / r);
    if (next >= r) break;
    r = next;
  }
  return r;
}
}  // namespace detail

struct dense_options {
  int units = 0;  // width of the result
  std::string_view name = "dense";
  bool use_bias = true;
  initializer kernel_initializer = glorot_uniform, bias_initializer = zeros;
  gradus::activation activation = nullptr;  // of the result: relu, tanh, ...
  bool trainable = true;
};

// activation(x kernel + bias) on the last axis: x [..., in] to [..., units]; rank 2 or more, float32 or float64.
// Variables "<name>/kernel" [in, units] and "<name>/bias" [units], of x's dtype. As tf.layers.dense.
constexpr value dense(value x, const dense_options& o) {
  graph& g = *x.g;
  const shape& s = x.dims();
  if (s.rank < 2 || s.back() <= 0 || o.units <= 0) {
    g.refuse("dense \"", o.name,
             "\": needs units > 0 and an operand of rank 2 or more whose last extent is known, got units ", o.units,
             ", operand ", s);
    return x;
  }
  const auto scope = g.name_scope(o.name);
  const int in = s.back();
  const value kernel =
      g.variable("kernel", {in, o.units}, {.init = o.kernel_initializer, .trainable = o.trainable, .type = x.type()});
  value y = matmul(x, kernel);
  if (o.use_bias)
    y = y + g.variable("bias", {o.units}, {.init = o.bias_initializer, .trainable = o.trainable, .type = x.type()});
  return detail::activated(y, o.activation);
}

// Mean and variance (divided by n) over the axes. The variance's gradient takes the mean as fixed, which is exact:
// the derivative of a sum of squared distances by their mean is 0.
struct moments_result {
  value mean, variance;
};
constexpr moments_result moments(value x, std::initializer_list<int> axes, bool keep_dims = false) {
  const int mask = detail::axis_mask(x, axes);
  const value mean = detail::reduce(cards::mean, x, mask, true);
  const value variance = detail::reduce(cards::mean, squared_difference(x, stop_gradient(mean)), mask, keep_dims);
  return {keep_dims ? mean : reshape(mean, variance.dims()), variance};
}

struct layer_norm_options {
  std::string_view name = "layer_norm";
  double epsilon = 1e-5;  // as PyTorch; Keras has 1e-3, tf.contrib.layers 1e-12
  bool center = true, scale = true;
};
// (x - mean) / sqrt(variance + epsilon) over the last axis, times "<name>/gamma", plus "<name>/beta" (Ba, Kiros, Hinton
// 2016, arXiv:1607.06450).
constexpr value layer_norm(value x, const layer_norm_options& o = {}) {
  graph& g = *x.g;
  const shape& s = x.dims();
  if (s.rank == 0 || s.back() <= 0) {
    g.refuse("layer_norm \"", o.name, "\": needs a last axis of known extent, got ", s);
    return x;
  }
  const auto scope = g.name_scope(o.name);
  const int width = s.back();
  const auto [mean, variance] = moments(x, {-1}, true);
  value y = (x - mean) * rsqrt(variance + o.epsilon);
  if (o.scale) y = y * g.variable("gamma", {width}, {.init = ones, .type = x.type()});
  if (o.center) y = y + g.variable("beta", {width}, {.init = zeros, .type = x.type()});
  return y;
}

struct batch_norm_options {
  std::string_view name = "batch_normalization";
  double momentum = 0.99;  // of the moving statistics
  double epsilon = 1e-3;
  bool center = true, scale = true;
};
// (x - mean) / sqrt(variance + epsilon) per channel, the last axis (Ioffe, Szegedy 2015, arXiv:1502.03167). In mode
// train the statistics are the batch's, and the moving ones follow by ops in collection "update_ops": moving -= (moving
// - batch's) (1 - momentum). In other modes they are the moving ones. As tf.layers.batch_normalization(fused=False):
// the moving variance is the one divided by n; TensorFlow's fused kernel and PyTorch keep the one divided by n - 1.
constexpr value batch_norm(value x, const batch_norm_options& o = {}) {
  graph& g = *x.g;
  const shape s = x.dims();
  if (s.rank < 2 || s.back() <= 0) {
    g.refuse("batch_norm \"", o.name, "\": needs rank 2 or more and a known number of channels (the last axis), got ",
             s);
    return x;
  }
  const auto scope = g.name_scope(o.name);
  const shape channels{s.back()};
  value gamma, beta;
  if (o.scale) gamma = g.variable("gamma", channels, {.init = ones, .type = x.type()});
  if (o.center) beta = g.variable("beta", channels, {.init = zeros, .type = x.type()});
  value mean = g.variable("moving_mean", channels, {.init = zeros, .trainable = false, .type = x.type()});
  value variance = g.variable("moving_variance", channels, {.init = ones, .trainable = false, .type = x.type()});
  if (g.mode() == mode::train) {
    const int mask = (1 << (s.rank - 1)) - 1;
    const value m = detail::reduce(cards::mean, x, mask, false);
    const value v = detail::reduce(cards::mean, squared_difference(x, stop_gradient(m)), mask, false);
    g.add_to(collection::update_ops, assign_sub(mean, (mean - stop_gradient(m)) * (1 - o.momentum)));
    g.add_to(collection::update_ops, assign_sub(variance, (variance - stop_gradient(v)) * (1 - o.momentum)));
    mean = m, variance = v;
  }
  value factor = rsqrt(variance + o.epsilon);
  if (o.scale) factor = factor * gamma;
  const value y = (x - mean) * factor;
  return o.center ? y + beta : y;
}

}  // namespace gradus
