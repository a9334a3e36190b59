// Graphs of every op that can be written for TensorFlow, and what is fed to them: for the tests that write them and run
// them elsewhere, and that read them back.
#pragma once
#include <cmath>
#include <gradus/ops/attention.hpp>
#include <gradus/ops/depthwise_conv.hpp>
#include <gradus/ops/embedding.hpp>
#include <gradus/ops/host.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/ops/precision.hpp>
#include <gradus/ops/random.hpp>
#include <string>
#include <vector>

namespace gradus::tensorflow_cases {

// What is fed: numbers of a small generator, by the placeholder's name: "positive...", "ids...", or around 0.
struct fed {
  std::string name;
  dtype type;
  std::vector<std::int64_t> dims;
  std::vector<std::byte> bytes;
};
template <class T>
void draw(std::vector<std::byte>& to, std::string_view name, std::int64_t count, std::uint32_t& state) {
  for (std::int64_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    const double u = static_cast<double>(state >> 8) / (1 << 24);
    const bool whole = std::is_integral_v<T>;
    const double v = name.starts_with("positive")      ? (whole ? 1 + std::floor(u * 6) : 0.2 + 2 * u)
                     : name.starts_with("ids")         ? std::floor(u * 4)
                     : std::is_same_v<T, std::uint8_t> ? std::floor(u * 256)
                     : whole                           ? std::floor(u * 19) - 9
                                                       : 3 * u - 1.5;
    const T x = static_cast<T>(v);
    const auto* p = reinterpret_cast<const std::byte*>(&x);
    to.insert(to.end(), p, p + sizeof x);
  }
}
inline fed feed_for(const graph& g, int id, std::int64_t batch_size, std::uint32_t& state) {
  const node& n = g.nodes[id];
  const extents e = resolve(n.dims, batch_size);
  fed f{std::string(g.name_of(id)), n.type, {e.dims, e.dims + e.rank}, {}};
  const std::int64_t many = count(e);
  switch (n.type) {
  case float32: draw<float>(f.bytes, f.name, many, state); break;
  case float64: draw<double>(f.bytes, f.name, many, state); break;
  case int32: draw<std::int32_t>(f.bytes, f.name, many, state); break;
  case int64: draw<std::int64_t>(f.bytes, f.name, many, state); break;
  case boolean:
    for (std::int64_t i = 0; i < many; ++i) f.bytes.push_back(static_cast<std::byte>(i * 5 % 3 == 0));
    break;
  default: draw<std::uint8_t>(f.bytes, f.name, many, state);
  }
  return f;
}

// Names outputs by their op, in the order in which they are made.
struct outputs {
  graph& g;
  int count = 0;
  void add(value v, std::string_view name = {}) {
    const std::string_view op = name.empty() ? g.nodes[v.id].op->name : name;
    g.add_output(output::prediction, text(op, "_", count++), v);
  }
};

// Every elementwise op of numbers that takes this type.
inline void elementwise(graph& g, dtype type) {
  outputs out{g};
  const value x = g.placeholder("x", {batch, 4}, type), y = g.placeholder("y", {batch, 4}, type);
  const value p = g.placeholder("positive", {4}, type), b = g.placeholder("b", {batch, 1}, boolean);
  for (const card* c :
       {&cards::add, &cards::sub, &cards::mul, &cards::maximum, &cards::minimum, &cards::squared_difference,
        &cards::greater, &cards::greater_equal, &cards::less, &cards::less_equal, &cards::equal, &cards::not_equal}) {
    out.add(g.add(*c, {x, y}));
    out.add(g.add(*c, {p, x}));
  }
  out.add(x / p);
  for (const card* c : {&cards::neg, &cards::square, &cards::abs, &cards::sign, &cards::relu}) out.add(g.add(*c, {x}));
  out.add(select(b, x, y)), out.add(g.add(cards::relu_grad, {x, y}));
  for (const dtype to : {float32, float64, int32, int64})
    if (to != type) out.add(cast(x, to));
  out.add(cast(x, boolean)), out.add(cast(b, type));
  out.add(logical_and(b, greater(x, y))), out.add(logical_or(b, greater(x, y))), out.add(logical_not(b));
  if (!is_float(type)) return;
  out.add(pow(p, x));
  for (const card* c :
       {&cards::exp, &cards::floor, &cards::tanh, &cards::sigmoid, &cards::elu, &cards::gelu, &cards::softplus,
        &cards::erf, &cards::reduce_precision_bfloat16, &cards::reduce_precision_float16})
    out.add(g.add(*c, {x}));
  for (const card* c : {&cards::log, &cards::log1p, &cards::sqrt, &cards::rsqrt}) out.add(g.add(*c, {p}));
  for (const card* c : {&cards::tanh_grad, &cards::sigmoid_grad, &cards::elu_grad, &cards::gelu_grad})
    out.add(g.add(*c, {x, y}));
  out.add(check_between(x, -100, 100)), out.add(leaky_relu(x));
}
// What moves elements and what adds them up.
inline void moved(graph& g, dtype type) {
  outputs out{g};
  const value x = g.placeholder("x", {batch, 2, 3, 4}, type), m = g.placeholder("m", {3, 5}, type);
  const value square = g.placeholder("square", {batch, 3, 3}, type), one = g.placeholder("one", {1, 5}, type);
  const value ids = g.placeholder("ids", {batch}, int32), more = g.placeholder("ids_too", {2, batch}, int64);
  const value rows = g.placeholder("rows", {batch, 5}, type), scalar = g.placeholder("scalar", {}, type);
  const value fill = g.constant(2, type);
  out.add(reshape(x, {batch, 24})), out.add(flatten(x)), out.add(reshape(x, {batch * 4, 6}));
  out.add(reshape(m, {5, 3, 1})), out.add(expand_dims(scalar, 0)), out.add(squeeze(one));
  out.add(broadcast_to(m, {2, 3, 5})), out.add(broadcast_to(one, {batch, 5})),
      out.add(broadcast_to(scalar, {batch, 2}));
  out.add(broadcast_to(one, {2 * batch, 5}));
  out.add(transpose(x, {0, 3, 1, 2})), out.add(transpose(x, {3, 1, 0, 2})), out.add(transpose(m, {1, 0}));
  out.add(slice(x, {0, 1, 0, 1}, {-1, 1, 2, -1})), out.add(slice(m, {1, 0}, {2, -1}));
  out.add(pad(x, {{0, 0}, {1, 0}, {0, 2}, {1, 1}}, 3)), out.add(pad(m, {{1, 0}, {0, 1}}));
  out.add(concat({x, x, x}, 2)), out.add(concat({rows, rows}, 0)), out.add(concat({m}, 0)), out.add(stack({m, m}, 1));
  out.add(g.add(cards::causal_mask, {square, fill}));
  out.add(gather(m, minimum(ids, g.constant(2, int32)))), out.add(gather(m, minimum(more, g.constant(2, int64))));
  out.add(one_hot(ids, 3, 5, 1, type)), out.add(one_hot(more, 4, 1, 0, type));
  out.add(identity(x)), out.add(stop_gradient(x)), out.add(prevent_gradient(x)), out.add(g.add(cards::copy, {x}));
  out.add(g.constant(3, type, {batch, 2})), out.add(g.constant(1, type, {2, 2}));
  out.add(g.constant({1, 2, 3, 1, 0, 1}, {2, 3}, type)), out.add(g.constant(1, type));
  if (type == boolean) return;
  out.add(range(g, 5, type));
  if (is_float(type)) out.add(rows_to_dense(rows, ids, {4, 5}));
  for (const bool keep : {false, true})
    for (const card* c : {&cards::sum, &cards::mean, &cards::max, &cards::min})
      for (const int mask : {1, 6, 8, 15, 0}) {
        if (c == &cards::mean && !is_float(type)) continue;
        out.add(detail::reduce(*c, x, mask, keep));
      }
  out.add(argmax(x)), out.add(argmax(m, 0)), out.add(argmax(x, 0));
  for (const int mask : {1, 6, 15}) out.add(size_of(x, mask, type == uint8 ? int32 : type));
}
// Products, windows and rows.
inline void computed(graph& g, dtype type) {
  outputs out{g};
  const auto in = [&](std::string_view name, const shape& s) { return g.placeholder(name, s, type); };
  const value a = in("a", {batch, 4}), b = in("b", {4, 5}), t = in("t", {5, 4}), c = in("c", {batch, 2, 4}),
              d = in("d", {batch, 4, 3}), e = in("e", {batch, 3, 4});
  out.add(matmul(a, b)), out.add(matmul(a, t, {.transpose_b = true}));
  out.add(matmul(a, a, {.transpose_a = true})), out.add(matmul(c, b)), out.add(matmul(c, t, {.transpose_b = true}));
  out.add(matmul(c, d)), out.add(matmul(c, e, {.transpose_b = true})),
      out.add(matmul(d, e, {.transpose_a = true, .transpose_b = true}));

  const value image = in("image", {batch, 6, 5, 2}), filters = in("filters", {3, 2, 2, 3});
  for (const padding p : {padding::valid, padding::same})
    for (const extent2 s : {extent2(1), extent2(2), extent2(2, 1), extent2(2, 3)}) {
      const value y = conv2d(image, filters, {.strides = s, .padding = p});
      const detail::window_attr w{3, 2, s.height, s.width, p == padding::same, 6, 5};
      out.add(y), out.add(g.add_with(cards::conv2d_input, {transpose(filters, {0, 3, 1, 2}), y}, w));
      out.add(g.add_with(cards::conv2d_filter, {image, y}, w));
      if (s.height == s.width) {
        const value each = in(text("each", s.height), {3, 2, 2, 1 + s.height});
        const value z = depthwise_conv2d(image, each, {.strides = s, .padding = p});
        out.add(z), out.add(g.add_with(cards::depthwise_conv2d_input, {each, z}, w));
        out.add(g.add_with(cards::depthwise_conv2d_filter, {image, z}, w));
      }
      const pool_options o{.pool_size = {3, 2}, .strides = s, .padding = p};
      const value most = max_pool(image, o), mean = avg_pool(image, o);
      out.add(most), out.add(mean), out.add(g.add_with(cards::max_pool_grad, {image, mean}, w));
      out.add(g.add_with(cards::avg_pool_grad, {most}, w));
    }

  const value labels = g.placeholder("ids", {batch, 2}, int64), dy = in("dy", {batch, 2});
  out.add(softmax(c)), out.add(log_softmax(c)), out.add(g.add(cards::softmax_grad, {c, softmax(c)}));
  const value other = c * 0.5;
  out.add(g.add(cards::log_softmax_grad, {other, log_softmax(c)}));
  out.add(softmax_cross_entropy_with_logits(c, softmax(other)));
  out.add(sparse_softmax_cross_entropy(c, labels)), out.add(g.add(cards::sparse_xent_grad, {c, labels, dy}));

  const value gamma = in("positive_gamma", {4}), beta = in("beta", {4});
  for (const bool scales : {false, true})
    for (const bool centers : {false, true})
      out.add(normalize_rows(c, 1e-3, scales ? &gamma : nullptr, centers ? &beta : nullptr));
  const auto words = [](int scales) {
    return detail::layer_norm_attr{scales, 1, std::bit_cast<std::array<int, 2>>(1e-3)};
  };
  out.add(g.add_with(cards::layer_norm_grad, {c, other}, words(0)));
  out.add(g.add_with(cards::layer_norm_grad, {c, other, gamma}, words(1)));
  out.add(g.add_with(cards::layer_norm_grads, {c, c + 1.0}, words(1)));

  const value packed = in("packed", {batch, 5, 12}), back = in("back", {batch, 5, 4});
  for (const bool causal : {false, true}) {
    const detail::attention_attr w{2, causal ? 1 : 0};
    const value weights = g.add_with(cards::attention_weights, {packed}, w);
    const value mix = g.add_with(cards::attention_mix, {weights, packed}, w);
    out.add(weights), out.add(mix), out.add(g.add_with(cards::attention_grad, {packed, weights, mix, back}, w));
  }
  out.add(detail::random(g, cards::random_uniform, {batch, 2}, type), "random_uniform");
  out.add(detail::random(g, cards::random_normal, {3}, type), "random_normal");
}
// Dropout stands in graphs of mode::train only; written as inference it passes numbers on.
inline void dropped(graph& g) {
  outputs out{g};
  const value x = g.placeholder("x", {batch, 3});
  const auto [seed, step, stream] = detail::draw(g);
  const value rate = g.constant(0, float32);
  out.add(g.add(cards::dropout, {x, rate, seed, step, stream}));
}
// The batch is known by a placeholder that holds it twice.
inline void doubled(graph& g) {
  outputs out{g};
  const value x = g.placeholder("x", {2 * batch, 3});
  out.add(broadcast_to(reduce_sum(x), {batch, 2})), out.add(g.constant(1, float32, {3 * batch}));
}
// Models as users write them.
inline void image_model(graph& g) {
  outputs out{g};
  value h = g.placeholder("image", {batch, 8, 8, 1});
  h = conv2d(h, {.filters = 4, .kernel_size = 3, .name = "first", .activation = relu});
  h = batch_norm(h, {.name = "norm"});
  h = max_pool(h);
  h = dense(flatten(h), {.units = 7, .name = "hidden", .activation = gelu});
  h = dropout(h, 0.5);
  const value logits = dense(h, {.units = 5, .name = "logits"});
  out.add(softmax(logits), "probabilities"), out.add(argmax(logits), "class");
  g.variable("random_uniform", {3, 2}, {.init = random_uniform(-1, 2)});
  g.variable("random_normal", {3, 2}, {.init = random_normal(1, 2)});
  g.variable("he", {3, 2}, {.init = he_normal}), g.variable("lecun", {3, 2}, {.init = lecun_uniform});
  g.variable("truncated", {4}, {.init = truncated_normal(0, 0.1f)});
  g.variable("wide", {2, 5}, {.init = orthogonal(2)}), g.variable("tall", {2, 3, 2}, {.init = orthogonal()});
  g.variable("eye", {3, 4}, {.init = identity_initializer(3)});
  g.variable("whole", {2}, {.init = constant_initializer(4), .type = int64});
}
inline void language_model(graph& g) {
  outputs out{g};
  const value ids = g.placeholder("ids", {batch, 6}, int32);
  value h = embedding(ids, {.input_dim = 11, .output_dim = 8, .name = "tokens"});
  h = h + self_attention(dense(layer_norm(h, {.name = "norm"}), {.units = 24, .name = "qkv"}), {.heads = 2});
  const value logits = dense(h, {.units = 11, .name = "logits"});
  out.add(log_softmax(logits), "scores"), out.add(argmax(logits), "next");
}
inline void sparse_model(graph& g) {
  outputs out{g};
  const value ids = g.placeholder("ids", {batch, 4}, int64);
  for (const combiner c : {combiner::mean, combiner::sqrtn, combiner::sum})
    out.add(sparse_embedding(ids - g.constant(1, int64),
                             {.name = name_of(c), .num_buckets = 5, .dimension = 3, .combiner = c, .max_norm = 0.5}),
            "embedded");
}

// All of them, in mode::predict: f(name, build).
template <class F>
void for_each_case(F f) {
  for (const dtype type : {float32, float64, int32, int64, uint8}) {
    f(text("elementwise_", name_of(type)), [type](graph& g) { elementwise(g, type); });
    f(text("moved_", name_of(type)), [type](graph& g) { moved(g, type); });
  }
  f("moved_bool", [](graph& g) { moved(g, boolean); });
  for (const dtype type : {float32, float64})
    f(text("computed_", name_of(type)), [type](graph& g) { computed(g, type); });
  f("dropped", dropped), f("doubled", doubled), f("image", image_model), f("language", language_model);
  f("sparse", sparse_model);
}

}  // namespace gradus::tensorflow_cases
