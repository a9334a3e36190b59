// A layer is an op with variables of its own, named as TensorFlow names them. A layer's name is a scope, so that the
// second "dense" of a graph is "dense_1". An empty name stands for the layer's default: "dense", "conv2d", ...
#pragma once
#include "cached_attention.hpp"
#include "depthwise_conv.hpp"
#include "layer_norm.hpp"
#include "matmul.hpp"
#include "random.hpp"
#include "softmax.hpp"
#include "state.hpp"

namespace gradus::inline GRADUS_BUILD {

using activation = value (*)(value);

namespace detail {
constexpr value activated(value x, activation f) { return f != nullptr ? f(x) : x; }
// Newton's method is used because std::sqrt is not for constant evaluation on every compiler.
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
  constraint kernel_constraint = {}, bias_constraint = {};  // after each update: max_norm(3)
};

namespace detail {
// The layer with these variables, which it makes if they are empty.
constexpr value dense_by(value x, const dense_options& o, value& kernel, value& bias) {
  graph& g = *x.g;
  const shape& s = x.dims();
  if (s.rank < 2 || s.back() <= 0 || o.units <= 0) {
    g.refuse("dense \"", o.name,
             "\": needs units > 0 and an operand of rank 2 or more whose last extent is known, got units ", o.units,
             ", operand ", s);
    return x;
  }
  const auto scope = g.name_scope(layer_name(o));
  const int in = s.back();
  if (!kernel)
    kernel = g.variable(
        "kernel", {in, o.units},
        {.init = o.kernel_initializer, .trainable = o.trainable, .type = x.type(), .constraint = o.kernel_constraint});
  value y = matmul(x, kernel);
  if (!o.use_bias) return activated(y, o.activation);
  if (!bias)
    bias = g.variable(
        "bias", {o.units},
        {.init = o.bias_initializer, .trainable = o.trainable, .type = x.type(), .constraint = o.bias_constraint});
  return activated(y + bias, o.activation);
}
}  // namespace detail

// Returns activation(x kernel + bias) on the last axis: x [..., in] to [..., units]; rank 2 or more, float32 or
// float64. The variables are "<name>/kernel" [in, units] and "<name>/bias" [units], of x's dtype. As tf.layers.dense.
constexpr value dense(value x, const dense_options& o) {
  value kernel, bias;
  return detail::dense_by(x, o, kernel, bias);
}

// A dense layer whose variables the first call makes and all later calls share, as those of a tf.layers.Dense or a
// torch.nn.Linear: for two towers, the steps of a recurrent cell, real and made images.
//
//   gradus::shared_dense tower({.units = 32, .name = "tower"});
//   const value a = tower(user), b = tower(item);
class shared_dense {
public:
  constexpr explicit shared_dense(const dense_options& o) : options_(o) {
    name_.append(o.name.data(), static_cast<int>(o.name.size()));
  }
  // Does what dense does. Refuses an operand of another graph, last extent or dtype than the first one.
  constexpr value operator()(value x) {
    dense_options o = options_;
    o.name = {name_.first, static_cast<std::size_t>(name_.count)};
    if (kernel_ && kernel_.g != x.g) {
      x.g->refuse("dense \"", o.name, "\": its variables are of another graph; make a layer for each graph");
      return x;
    }
    const shape& s = x.dims();
    if (kernel_ && (s.rank < 2 || s.back() != kernel_.dims().dims[0] || x.type() != kernel_.type())) {
      x.g->refuse("dense \"", o.name, "\": its kernel is ", kernel_.dims(), " of ", kernel_.type(),
                  ", and the operand ", s, " of ", x.type(), "; give operands of one last extent and dtype");
      return x;
    }
    return detail::dense_by(x, o, kernel_, bias_);
  }
  constexpr value kernel() const { return kernel_; }  // empty before the first call
  constexpr value bias() const { return bias_; }      // the same, and without a bias

private:
  dense_options options_;
  detail::seq<char> name_;  // its own, which the options may not have
  value kernel_, bias_;
};

struct conv2d_options {
  int filters = 0;  // channels of the result
  extent2 kernel_size = 3;
  extent2 strides = 1;
  gradus::padding padding = gradus::padding::valid;
  std::string_view name = "conv2d";
  bool use_bias = true;
  initializer kernel_initializer = glorot_uniform, bias_initializer = zeros;
  gradus::activation activation = nullptr;
  bool trainable = true;
  constraint kernel_constraint = {}, bias_constraint = {};  // max_norm(3, {0, 1, 2})
};
// Returns activation(images * kernel + bias): [n, h, w, in] to [n, oh, ow, filters]. The variables are "<name>/kernel"
// [kh, kw, in, filters] and "<name>/bias" [filters]. As tf.layers.conv2d.
GRADUS_RARE constexpr value conv2d(value images, const conv2d_options& o) {
  graph& g = *images.g;
  const shape& s = images.dims();
  if (s.rank != 4 || s.back() <= 0 || o.filters <= 0 || o.kernel_size.height <= 0 || o.kernel_size.width <= 0) {
    g.refuse("conv2d \"", o.name,
             "\": needs filters > 0, a kernel_size > 0 and images [n, height, width, channels], got ", o.filters,
             " filters, operand ", s);
    return images;
  }
  const auto scope = g.name_scope(detail::layer_name(o));
  const shape dims{o.kernel_size.height, o.kernel_size.width, s.back(), o.filters};
  const value kernel = g.variable("kernel", dims,
                                  {.init = o.kernel_initializer,
                                   .trainable = o.trainable,
                                   .type = images.type(),
                                   .constraint = o.kernel_constraint});
  value y = conv2d(GRADUS_WHEN_CALLED(images), kernel, {.strides = o.strides, .padding = o.padding});
  if (o.use_bias)
    y = y + g.variable("bias", {o.filters},
                       {.init = o.bias_initializer,
                        .trainable = o.trainable,
                        .type = images.type(),
                        .constraint = o.bias_constraint});
  return detail::activated(y, o.activation);
}

struct depthwise_conv2d_options {
  extent2 kernel_size = 3;
  extent2 strides = 1;
  gradus::padding padding = gradus::padding::valid;
  int depth_multiplier = 1;  // channels of the result for each channel of the images
  std::string_view name = "depthwise_conv2d";
  bool use_bias = true;
  initializer depthwise_initializer = glorot_uniform, bias_initializer = zeros;
  gradus::activation activation = nullptr;
  bool trainable = true;
  constraint depthwise_constraint = {}, bias_constraint = {};  // max_norm(3, {0, 1})
};
// Returns activation(images * kernel + bias), each channel with a kernel of its own: [n, h, w, in] to [n, oh, ow, in *
// depth_multiplier]. The variables are "<name>/depthwise_kernel" [kh, kw, in, depth_multiplier] and "<name>/bias" [in *
// depth_multiplier]. As tf.keras.layers.DepthwiseConv2D, which also takes kh * kw * in for the fan in, though a number
// of the result is a sum of kh * kw; PyTorch (Conv2d with groups = in) takes kh * kw, so its kernels begin larger.
GRADUS_RARE constexpr value depthwise_conv2d(value images, const depthwise_conv2d_options& o = {}) {
  graph& g = *images.g;
  const shape& s = images.dims();
  if (s.rank != 4 || s.back() <= 0 || o.depth_multiplier <= 0 || o.kernel_size.height <= 0 ||
      o.kernel_size.width <= 0) {
    g.refuse("depthwise_conv2d \"", o.name,
             "\": needs depth_multiplier > 0, a kernel_size > 0 and images [n, height, width, channels], got "
             "depth_multiplier ",
             o.depth_multiplier, ", kernel_size ", o.kernel_size.height, " x ", o.kernel_size.width, ", operand ", s);
    return images;
  }
  const auto scope = g.name_scope(detail::layer_name(o));
  const shape dims{o.kernel_size.height, o.kernel_size.width, s.back(), o.depth_multiplier};
  const value kernel = g.variable("depthwise_kernel", dims,
                                  {.init = o.depthwise_initializer,
                                   .trainable = o.trainable,
                                   .type = images.type(),
                                   .constraint = o.depthwise_constraint});
  value y = depthwise_conv2d(GRADUS_WHEN_CALLED(images), kernel, {.strides = o.strides, .padding = o.padding});
  if (o.use_bias)
    y = y + g.variable("bias", {y.dims().back()},
                       {.init = o.bias_initializer,
                        .trainable = o.trainable,
                        .type = images.type(),
                        .constraint = o.bias_constraint});
  return detail::activated(y, o.activation);
}

struct embedding_options {
  int input_dim = 0;   // rows of the table: the number of different ids
  int output_dim = 0;  // numbers per id
  std::string_view name = "embedding";
  initializer embeddings_initializer = random_uniform(-0.05f, 0.05f);
  dtype type = float32;
};
// Returns row ids[...] of the variable "<name>/embeddings" [input_dim, output_dim]: [...] to [..., output_dim]. Ids are
// int32 or int64; one outside [0, input_dim) is an error when the step runs. The gradient touches only the rows that
// were read.
constexpr value embedding(value ids, const embedding_options& o) {
  graph& g = *ids.g;
  if (o.input_dim <= 0 || o.output_dim <= 0) {
    g.refuse("embedding \"", o.name, "\": needs input_dim > 0 and output_dim > 0, got ", o.input_dim, ", ",
             o.output_dim);
    return ids;
  }
  const auto scope = g.name_scope(detail::layer_name(o));
  return gather(
      g.variable("embeddings", {o.input_dim, o.output_dim}, {.init = o.embeddings_initializer, .type = o.type}), ids);
}

// Mean and variance (divided by n) over the axes. The variance's gradient takes the mean as fixed, as TensorFlow's
// does: that is exact, since the derivative of a sum of squared distances by their mean is 0, but a second derivative
// is not.
struct moments_result {
  value mean, variance;
};
// Returns mean and variance over the axes; the variance is the mean square distance from the mean, as tf.nn.moments has
// it.
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
// Returns (x - mean) / sqrt(variance + epsilon) over the last axis, times "<name>/gamma", plus "<name>/beta" (Ba,
// Kiros, Hinton 2016, arXiv:1607.06450).
GRADUS_RARE constexpr value layer_norm(value x, const layer_norm_options& o = {}) {
  graph& g = *x.g;
  const shape& s = x.dims();
  if (s.rank == 0 || s.back() <= 0) {
    g.refuse("layer_norm \"", o.name, "\": needs a last axis of known extent, got ", s);
    return x;
  }
  const auto scope = g.name_scope(detail::layer_name(o));
  const int width = s.back();
  value gamma, beta;
  if (o.scale) gamma = g.variable("gamma", {width}, {.init = ones, .type = x.type()});
  if (o.center) beta = g.variable("beta", {width}, {.init = zeros, .type = x.type()});
  return normalize_rows(GRADUS_WHEN_CALLED(x), o.epsilon, o.scale ? &gamma : nullptr, o.center ? &beta : nullptr);
}

struct batch_norm_options {
  std::string_view name = "batch_normalization";
  double momentum = 0.99;  // of the moving statistics
  double epsilon = 1e-3;
  bool center = true, scale = true;
};
// Returns (x - mean) / sqrt(variance + epsilon) per channel, the last axis (Ioffe, Szegedy 2015, arXiv:1502.03167). In
// mode train the statistics are the batch's, and the moving ones follow by ops in collection "update_ops": moving -=
// (moving - batch's) (1 - momentum). A trainer makes them in each step; in a session's graph, or a model_fn, the train
// op has to be grouped with them (docs/estimator.md). In other modes the moving statistics are used. As
// tf.layers.batch_normalization(fused=False): the moving variance is the one divided by n; TensorFlow's fused kernel
// and PyTorch keep the one divided by n - 1.
constexpr value batch_norm(value x, const batch_norm_options& o = {}) {
  graph& g = *x.g;
  const shape s = x.dims();
  if (s.rank < 2 || s.back() <= 0) {
    g.refuse("batch_norm \"", o.name, "\": needs rank 2 or more and a known number of channels (the last axis), got ",
             s);
    return x;
  }
  if (!(o.momentum >= 0 && o.momentum <= 1)) {
    g.refuse("batch_norm \"", o.name, "\": the momentum of the moving statistics must be in [0, 1]; 0.99 is common");
    return x;
  }
  const auto scope = g.name_scope(detail::layer_name(o));
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

struct attention_options {
  int heads = 1;  // must divide the width
  std::string_view name = "multi_head_attention";
  bool causal = true;       // position i sees 0 ... i
  double dropout_rate = 0;  // of the attention weights
  initializer kernel_initializer = glorot_uniform;
  // A model that generates sets these and has no sequence: x is [sequences, 1, width], the one position whose number is
  // in `position`, and the positions before it are kept in a cache (ops/cached_attention.hpp).
  value position = {};
  int time = 0;  // how many positions the cache has room for
  int sequences = 1;
};
// Returns the self-attention of x (Vaswani et al. 2017, arXiv:1706.03762): x [n, time, width] to the same shape. For
// each head it computes softmax(q k^T / sqrt(width / heads)) v; the heads side by side pass through a last dense layer.
// The variables are "<name>/qkv/..." [width, 3 width] and "<name>/projection/..." [width, width].
GRADUS_RARE constexpr value multi_head_attention(value x, const attention_options& o) {
  graph& g = *x.g;
  const shape s = x.dims();
  if (s.rank != 3 || s[1] <= 0 || s[2] <= 0 || o.heads <= 0 || s[2] % o.heads != 0 ||
      s[2] > detail::most_counted / 3) {  // the width of queries, keys and values side by side is an int as well
    g.refuse("multi_head_attention \"", o.name, "\": needs [n, time, width] with a width that ", o.heads,
             " heads divide, got ", s);
    return x;
  }
  const auto scope = g.name_scope(detail::layer_name(o));
  const int n = s[0], time = s[1], width = s[2], each = width / o.heads;
  const auto by_head = [&](value part) { return transpose(reshape(part, {n, time, o.heads, each}), {0, 2, 1, 3}); };
  const value packed = dense(x, {.units = 3 * width, .name = "qkv", .kernel_initializer = o.kernel_initializer});
  const auto project = [&](value joined) {
    return dense(joined, {.units = width, .name = "projection", .kernel_initializer = o.kernel_initializer});
  };
  if (o.position) {
    if (!o.causal)
      g.refuse("multi_head_attention \"", o.name, "\": a position sees those before it; leave .causal true");
    return project(cached_attention(GRADUS_WHEN_CALLED(packed), o.position,
                                    {.heads = o.heads, .time = o.time, .sequences = o.sequences, .name = "cache"}));
  }
  if (o.dropout_rate == 0 && each <= detail::max_head_width)
    return project(self_attention(GRADUS_WHEN_CALLED(packed), {.heads = o.heads, .causal = o.causal}));
  const auto [q, k, v] = split<3>(packed, -1);
  const value queries = by_head(q), keys = by_head(k), values = by_head(v);
  value scores = matmul(queries, keys, {.transpose_b = true}) * (1 / detail::root(each));
  if (o.causal) scores = causal_mask(scores, -1e9);
  const value seen = matmul(dropout(softmax(scores), o.dropout_rate), values);
  return project(reshape(transpose(seen, {0, 2, 1, 3}), s));
}

}  // namespace gradus
