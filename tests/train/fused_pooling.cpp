// A policy that changes no bit: trainers and static steppers with it and without, over drawn networks and beside the
// policies that it meets in a step.
#include <gradus/gradus.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/fused_pooling.hpp>
#include <gradus/train/predictor.hpp>

#include "../run/static_compare.hpp"

#include <functional>

using namespace static_test;

namespace {
// A network as numbers: convolutions with something behind each, then a dense layer.
struct block {
  int filters, kernel, stride, pool, pool_stride;
  bool same, pool_same, relu, bias, watched;
};
struct network {
  int height, width, channels;
  std::vector<block> blocks;
  dtype type;
};
std::uint32_t pick(random_stream& r, int n) { return r.below(static_cast<std::uint32_t>(n)); }
network draw_network(random_stream& r) {
  const auto one_to = [&](int n) { return 1 + static_cast<int>(pick(r, n)); };
  network n{10 + one_to(8), 10 + one_to(8), one_to(3), {}, pick(r, 4) == 0 ? float64 : float32};
  for (int i = one_to(2); i > 0; --i) {
    const int pool = one_to(3);
    n.blocks.push_back({one_to(9), one_to(3), pick(r, 5) == 0 ? 2 : 1, pool, pick(r, 6) == 0 ? pool + 1 : pool,
                        pick(r, 2) == 0, pick(r, 6) == 0, pick(r, 5) != 0, pick(r, 5) != 0, pick(r, 8) == 0});
  }
  return n;
}
// Whether every window fits into what is left of the image.
bool fits(const network& n) {
  int h = n.height, w = n.width;
  for (const block& b : n.blocks)
    for (int* const x : {&h, &w}) {
      *x = b.same ? (*x + b.stride - 1) / b.stride : *x < b.kernel ? 0 : (*x - b.kernel) / b.stride + 1;
      *x = b.pool_same ? (*x + b.pool_stride - 1) / b.pool_stride : *x < b.pool ? 0 : (*x - b.pool) / b.pool_stride + 1;
      if (*x < 1) return false;
    }
  return true;
}
model_spec build(graph& g, const network& n) {
  const auto x = g.placeholder("x", {batch, n.height, n.width, n.channels}, n.type);
  const auto y = g.placeholder("y", {batch, 2}, n.type);
  auto h = x;
  value watched = reduce_mean(x);
  int made = 0;
  for (const block& b : n.blocks) {
    const int in = h.dims()[3];
    const auto filters = g.variable(text("filters", ++made), {b.kernel, b.kernel, in, b.filters}, {.type = n.type});
    auto c = conv2d(h, filters, {.strides = b.stride, .padding = b.same ? padding::same : padding::valid});
    if (b.bias) c = c + g.variable(text("bias", made), {b.filters}, {.type = n.type});
    if (b.relu) c = relu(c);
    if (b.watched) watched = watched + reduce_mean(square(c));
    h = max_pool(
        c, {.pool_size = b.pool, .strides = b.pool_stride, .padding = b.pool_same ? padding::same : padding::valid});
  }
  const auto rest = flatten(h);
  const auto out = matmul(rest, g.variable("out", {rest.dims()[1], 2}, {.type = n.type}));
  return {.loss = reduce_mean(squared_difference(out, y)) + 0.001 * watched, .metrics = {}, .predictions = {}};
}
template <class Trainer>
std::vector<std::byte> trained(Trainer& t) {
  std::vector<std::byte> all;
  auto& v = t.steps().variables();
  for (std::size_t i = 0; i < v.size(); ++i)
    all.insert(all.end(), v.view(i).data, v.view(i).data + v.view(i).size_bytes());
  return all;
}
}  // namespace

TEST_CASE("drawn networks: the same bits, and never more memory") {
  random_stream r{.seed = 20261126};
  int smaller = 0;
  for (int i = 0; i < 40; ++i) {
    CAPTURE(i);
    network n = draw_network(r);
    while (!fits(n)) n = draw_network(r);
    const auto model = [n](graph& g) { return build(g, n); };
    const std::function<model_spec(graph&)> f = model;
    const auto go = [&](auto& t) {
      random_stream values{.seed = static_cast<std::uint64_t>(i)};
      const std::size_t each = static_cast<std::size_t>(n.height * n.width * n.channels);
      const auto feed = [&]<class T>(T) {
        std::vector<T> x(6 * each), y(12);
        for (T& v : x) v = static_cast<T>(values.below(64)) / 32 - 1;  // with ties
        for (T& v : y) v = static_cast<T>(values.below(64)) / 32 - 1;
        const extents image{n.height, n.width, n.channels};
        t.train(from_spans("x", x, image, "y", y, extents{2}).repeat().batch(3), {.steps = 4});
      };
      n.type == float64 ? feed(0.0) : feed(0.0f);
      return trained(t);
    };
    auto plain = make_trainer(f, momentum{.rate = 0.05});
    auto fused = make_trainer(f, momentum{.rate = 0.05}, fused_pooling{});
    auto shared = make_trainer(f, momentum{.rate = 0.05}, fused_pooling{}, threads{2});
    const auto expected = go(plain);
    CHECK(go(fused) == expected);
    CHECK(go(shared) == expected);
    CHECK(fused.memory().activations <= plain.memory().activations);
    smaller += fused.memory().activations < plain.memory().activations ? 1 : 0;
  }
  CHECK(smaller >= 15);
}

TEST_CASE("beside the policies of a step, compiled") {
  const std::vector<float> x(64 * 12, 0.25f), y(3 * 12, 0.5f);
  const auto go = [&](auto... policies) {
    auto t = make_trainer<images>(adam{.rate = 0.01}, policies...);
    std::vector<float> values = x;
    random_stream r{.seed = 4};
    for (float& v : values) v = uniform_float(r.word()) - 0.5f;
    t.train(from_spans("x", values, extents{8, 8, 1}, "y", y, extents{3}).repeat().batch(4), {.steps = 5});
    return trained(t);
  };
  CHECK(go() == go(fused_pooling{}));
  CHECK(go(microbatch{2}) == go(microbatch{2}, fused_pooling{}));
  CHECK(go() == go(recompute<2>{}, fused_pooling{}));
  CHECK(go(mixed_precision<bfloat16>{}) == go(mixed_precision<bfloat16>{}, fused_pooling{}));
  CHECK(go(clip_by_global_norm{0.01}, gate_graph{}) == go(clip_by_global_norm{0.01}, gate_graph{}, fused_pooling{}));
}

TEST_CASE("a run that begins without it goes on with it; a predictor takes it") {
  const gradus::testing::temp_dir dir;
  std::vector<float> x(64 * 12), y(3 * 12, 0.5f);
  random_stream r{.seed = 4};
  for (float& v : x) v = uniform_float(r.word()) - 0.5f;
  const auto data = [&] { return from_spans("x", x, extents{8, 8, 1}, "y", y, extents{3}).repeat().batch(4); };
  const auto run = [&](const char* name, std::int64_t steps, auto... policies) {
    auto t = make_trainer<images>(adam{.rate = 0.01}, policies...,
                                  run_config{.model_dir = dir.path() + "/" + name, .save_summary_steps = 0});
    t.train(data(), {.max_steps = steps});
    return trained(t);
  };
  const auto undisturbed = run("a", 9);
  run("b", 4);
  CHECK(run("b", 9, fused_pooling{}) == undisturbed);
  run("c", 4, fused_pooling{});
  CHECK(run("c", 9) == undisturbed);

  const auto answers = [&](const auto& net) {
    auto seat = net.seat();
    std::ranges::copy(std::span(x).first(64), seat.template input<float>("x").begin());
    seat.run();
    const auto out = seat.template prediction<float>("out");
    return std::vector<float>(out.begin(), out.end());
  };
  const predictor<images> plain({.model_dir = dir.path() + "/a"});
  const predictor<images, fused_pooling> fused({.model_dir = dir.path() + "/a"}, fused_pooling{});
  CHECK(answers(fused) == answers(plain));
}

TEST_CASE("static steppers: whole, one by one, released; predictions of both") {
  const adam rule{.rate = 0.01};
  {
    auto s = make_static_stepper<images>(static_batch<4>{}, rule, fused_pooling{});
    same_bits<images, fast>(s, 8, microbatch{1}, rule);
  }
  {
    auto s = make_static_stepper<images>(static_batch<4>{}, rule, fused_pooling{}, one_by_one{}, portable{});
    same_bits<images, portable>(s, 8, microbatch{4, in_order}, rule);
  }
  {
    auto s = make_static_stepper<images>(static_batch<3>{}, rule, fused_pooling{}, release_gradients{});
    same_bits<images, fast>(s, 8, microbatch{1}, rule);
  }
  auto s = make_static_stepper<images>(static_batch<3>{}, rule, fused_pooling{});
  auto plain = make_static_stepper<images>(static_batch<3>{}, rule);
  s.initialize(5), plain.initialize(5);
  random_stream stream{.seed = 3};
  draw(s.input<"x">(), stream);
  std::ranges::copy(s.input<"x">(), plain.input<"x">().begin());
  const auto a = s.predict<"out">();
  const auto b = plain.predict<"out">();
  CHECK(std::ranges::equal(a, b));
}

// One image in a step: nothing of the convolution's size, 8 x 8 x 4, is left.
template <class... Policies>
inline constexpr std::size_t memory_of =
    decltype(make_static_stepper<images>(static_batch<16>{}, std::declval<Policies>()...))::memory_bytes;
static_assert(memory_of<adam, fused_pooling> + 3 * 16 * 8 * 8 * 4 * sizeof(float) / 2 < memory_of<adam>);
