// Activations in 16 bits: gradients beside those of plain loops that round where the policy does, and the same bits
// through every door.
#include <gradus/gradus.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/activations.hpp>
#include <gradus/train/fused_pooling.hpp>
#include <gradus/train/predictor.hpp>
#include <gradus/train/supervisor.hpp>

#include "../run/static_compare.hpp"

#include <functional>

using namespace static_test;

namespace {
constexpr int width = 48;
inline constexpr auto deep = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 8}), y = g.placeholder("y", {batch, 1});
  const auto a = relu(dense(x, {.units = width, .name = "a"})), b = tanh(dense(a, {.units = width, .name = "b"}));
  const auto c = relu(dense(b, {.units = width, .name = "c"})), out = dense(c, {.units = 1, .name = "out"});
  return model_spec{.loss = reduce_mean(squared_difference(out, y)), .metrics = {}, .predictions = {{"out", out}}};
};
// Convolutions, one of them before a pool.
inline constexpr auto pictures = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 8, 8, 1}), y = g.placeholder("y", {batch, 3});
  auto h = relu(conv2d(x, {.filters = 4, .kernel_size = 3, .padding = padding::same, .name = "one"}));
  h = relu(conv2d(h, {.filters = 4, .kernel_size = 3, .padding = padding::same, .name = "two"}));
  h = max_pool(relu(conv2d(h, {.filters = 5, .kernel_size = 3, .padding = padding::same, .name = "three"})),
               {.pool_size = 2, .strides = 2});
  h = relu(conv2d(h, {.filters = 4, .kernel_size = 3, .padding = padding::same, .name = "four"}));
  const auto out = dense(flatten(h), {.units = 3, .name = "out"});
  return model_spec{.loss = reduce_mean(squared_difference(out, y)), .metrics = {}, .predictions = {{"out", out}}};
};
// A convolution before a pool, of a picture that the model has computed; nothing needs the picture's gradient.
inline constexpr auto scaled_pictures = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 8, 8, 1}), y = g.placeholder("y", {batch, 3});
  const auto h = max_pool(relu(conv2d(tanh(x), {.filters = 5, .kernel_size = 3, .padding = padding::same})),
                          {.pool_size = 2, .strides = 2});
  const auto out = dense(relu(dense(flatten(h), {.units = 32})), {.units = 3});
  return model_spec{.loss = reduce_mean(squared_difference(out, y)), .metrics = {}, .predictions = {{"out", out}}};
};
constexpr activations<bfloat16> stored{};

// To nearest, ties to even: by the bits.
float rounded(float x) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  bits += 0x7fff + (bits >> 16 & 1);
  return std::bit_cast<float>(bits & 0xffff0000u);
}
using matrix = std::vector<double>;  // by rows
matrix product(const matrix& a, const matrix& b, int n, int k, int m, bool turn_a = false, bool turn_b = false) {
  matrix c(static_cast<std::size_t>(n * m));
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < m; ++j)
      for (int s = 0; s < k; ++s)
        c[static_cast<std::size_t>(i * m + j)] += a[static_cast<std::size_t>(turn_a ? s * n + i : i * k + s)] *
                                                  b[static_cast<std::size_t>(turn_b ? j * k + s : s * m + j)];
  return c;
}
template <class Trainer>
std::vector<std::byte> bytes_of(Trainer& t) {
  std::vector<std::byte> all;
  auto& v = t.steps().variables();
  for (std::size_t i = 0; i < v.size(); ++i)
    all.insert(all.end(), v.view(i).data, v.view(i).data + v.view(i).size_bytes());
  return all;
}
std::vector<float> numbers(std::size_t n, std::uint64_t seed) {
  std::vector<float> x(n);
  random_stream r{.seed = seed};
  for (float& v : x) v = uniform_float(r.word()) - 0.5f;
  return x;
}
}  // namespace

TEST_CASE("the gradients are those of plain loops on rounded activations; the loss is exact") {
  constexpr int n = 6;
  auto s = make_static_stepper<deep>(static_batch<n>{}, gradient_descent{.rate = 1}, portable{}, stored);
  auto exact = make_static_stepper<deep>(static_batch<n>{}, gradient_descent{.rate = 1}, portable{});
  s.initialize(3), exact.initialize(3);
  const auto values = numbers(n * 9, 8);
  for (auto* t : {&s}) std::ranges::copy(std::span(values).first(n * 8), t->input<"x">().begin());
  std::ranges::copy(std::span(values).last(n), s.input<"y">().begin());
  std::ranges::copy(s.input<"x">(), exact.input<"x">().begin());
  std::ranges::copy(s.input<"y">(), exact.input<"y">().begin());
  const auto of = [](auto span) { return matrix(span.begin(), span.end()); };
  const matrix wa = of(s.variable<"a/kernel">()), wb = of(s.variable<"b/kernel">()), wc = of(s.variable<"c/kernel">()),
               wo = of(s.variable<"out/kernel">()), x = of(s.input<"x">()), y = of(s.input<"y">());
  const auto each = [](matrix m, auto f) {
    for (double& v : m) v = f(v);
    return m;
  };
  const auto cut = [](double v) { return v > 0 ? v : 0.0; };
  const auto round = [](double v) { return static_cast<double>(rounded(static_cast<float>(v))); };
  const matrix a = each(product(x, wa, n, 8, width), cut),
               b = each(product(a, wb, n, width, width), [](double v) { return std::tanh(v); }),
               c = each(product(b, wc, n, width, width), cut), out = product(c, wo, n, width, 1);
  const auto gradients = [&](auto kept) {
    const matrix ra = each(a, kept), rb = each(b, kept), rc = each(c, kept);
    matrix d(n);
    for (std::size_t i = 0; i < n; ++i) d[i] = 2 * (out[i] - y[i]) / n;
    matrix dc = product(d, wo, n, 1, width, false, true);
    for (std::size_t i = 0; i < dc.size(); ++i) dc[i] = rc[i] > 0 ? dc[i] : 0;
    matrix db = product(dc, wc, n, width, width, false, true);
    for (std::size_t i = 0; i < db.size(); ++i) db[i] *= 1 - rb[i] * rb[i];
    matrix da = product(db, wb, n, width, width, false, true);
    for (std::size_t i = 0; i < da.size(); ++i) da[i] = ra[i] > 0 ? da[i] : 0;
    return std::array{product(x, da, 8, n, width, true), product(ra, db, width, n, width, true),
                      product(rb, dc, width, n, width, true), product(rc, d, width, n, 1, true)};
  };
  s.step(), exact.step();
  CHECK(s.loss() == exact.loss());
  const auto farthest = [&](const std::array<matrix, 4>& want, auto& t) {
    const std::array now{of(t.template variable<"a/kernel">()), of(t.template variable<"b/kernel">()),
                         of(t.template variable<"c/kernel">()), of(t.template variable<"out/kernel">())};
    const std::array before{wa, wb, wc, wo};
    double most = 0;
    for (std::size_t k = 0; k < 4; ++k)
      for (std::size_t i = 0; i < want[k].size(); ++i)
        most = std::max(most, std::abs(before[k][i] - now[k][i] - want[k][i]));
    return most;
  };
  CHECK(farthest(gradients(round), s) < 2e-6);
  CHECK(farthest(gradients([](double v) { return v; }), exact) < 2e-6);
  CHECK(farthest(gradients(round), exact) > 1e-4);
}

namespace {
// The layers of `deep` on every position of a sequence.
inline constexpr auto deep_sequence = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 4, 8}), y = g.placeholder("y", {batch, 4, 1});
  const auto a = relu(dense(x, {.units = width, .name = "a"})), b = tanh(dense(a, {.units = width, .name = "b"}));
  const auto c = relu(dense(b, {.units = width, .name = "c"})), out = dense(c, {.units = 1, .name = "out"});
  return model_spec{.loss = reduce_mean(squared_difference(out, y)), .metrics = {}, .predictions = {{"out", out}}};
};
}  // namespace

TEST_CASE("a sequence's positions are rounded as examples are") {
  auto rows = make_static_stepper<deep>(static_batch<12>{}, gradient_descent{.rate = 1}, portable{}, stored);
  auto exact = make_static_stepper<deep_sequence>(static_batch<3>{}, gradient_descent{.rate = 1}, portable{});
  auto s = make_static_stepper<deep_sequence>(static_batch<3>{}, gradient_descent{.rate = 1}, portable{}, stored);
  CHECK(s.memory_bytes < exact.memory_bytes);
  const auto values = numbers(12 * 9, 8);
  const auto trained = [&](auto& t) {
    t.initialize(3);
    std::ranges::copy(std::span(values).first(12 * 8), t.template input<"x">().begin());
    std::ranges::copy(std::span(values).last(12), t.template input<"y">().begin());
    t.step();
    std::vector<float> all;
    const auto add = [&](auto part) { all.insert(all.end(), part.begin(), part.end()); };
    add(t.template variable<"a/kernel">()), add(t.template variable<"b/kernel">());
    add(t.template variable<"c/kernel">()), add(t.template variable<"out/kernel">());
    return all;
  };
  const auto want = trained(rows);
  CHECK(trained(s) == want);
  CHECK(trained(exact) != want);
}

TEST_CASE("the same bits by threads, with recomputation, by the interpreter, and resumed") {
  const auto x = numbers(8 * 30, 4), y = numbers(30, 5);
  const gradus::testing::temp_dir dir;
  const auto data = [&] { return from_spans("x", x, extents{8}, "y", y, extents{1}).repeat().batch(6); };
  const auto go = [&](auto... policies) {
    auto t = make_trainer<deep>(adam{.rate = 0.01}, policies...);
    t.train(data(), {.steps = 9});
    return bytes_of(t);
  };
  const auto want = go(stored);
  CHECK(want != go());
  CHECK(go(stored, threads{2}) == want);
  CHECK(go(stored, recompute<2>{}) == want);
  CHECK(go(stored, gate_graph{}) == want);
  CHECK(go(stored, microbatch{3}, threads{2}) == go(stored, microbatch{3}));
  const std::function<model_spec(graph&)> f = deep;
  auto interpreted = make_trainer(f, adam{.rate = 0.01}, stored);
  interpreted.train(data(), {.steps = 9});
  CHECK(bytes_of(interpreted) == want);
  const auto in_folder = [&](std::int64_t steps) {
    auto t =
        make_trainer<deep>(adam{.rate = 0.01}, stored, run_config{.model_dir = dir.path(), .save_summary_steps = 0});
    t.train(data(), {.max_steps = steps});
    return bytes_of(t);
  };
  in_folder(4);
  CHECK(in_folder(9) == want);
  const gradus::testing::temp_dir other;
  auto sv = make_supervisor<deep>({.logdir = other.path(), .save_summaries_secs = 0}, adam{.rate = 0.01}, stored);
  {
    auto session = sv.managed_session("", data());
    for (int i = 0; i < 9; ++i) session.run();
  }
  auto read = make_trainer<deep>(adam{.rate = 0.01}, stored, run_config{.model_dir = other.path()});
  read.train(data(), {.max_steps = 9});  // which are done
  CHECK(bytes_of(read) == want);
  const predictor<deep, activations<bfloat16>> net({.model_dir = dir.path()}, stored);
  CHECK(net.seat().template input<float>("x").size() == 8);
}

TEST_CASE("static steppers: whole, one by one, released, with fused pools") {
  const adam rule{.rate = 0.01};
  const auto bits = [&]<auto Build>(auto... policies) {
    auto s = make_static_stepper<Build>(static_batch<4>{}, rule, portable{}, policies...);
    s.initialize(5);
    random_stream stream{.seed = 3};
    for (int i = 0; i < 8; ++i) draw(s.template input<"x">(), stream), draw(s.template input<"y">(), stream), s.step();
    return remember(s);
  };
  const auto images_bits = [&](auto... policies) { return bits.template operator()<pictures>(policies...); };
  const auto want = images_bits(stored);
  CHECK(want != images_bits());
  CHECK(images_bits(stored, release_gradients{}) == want);
  CHECK(images_bits(stored, fused_pooling{}) == want);
  CHECK(images_bits(stored, recompute<2>{}) == want);
  const auto scaled = bits.template operator()<scaled_pictures>(stored);
  CHECK(scaled != bits.template operator()<scaled_pictures>());
  CHECK(bits.template operator()<scaled_pictures>(stored, fused_pooling{}) == scaled);
  CHECK(bits.template operator()<deep>(stored, one_by_one{}) != bits.template operator()<deep>(one_by_one{}));
}

// Six layers of 64 at batch 256: 6 activations of 65,536 bytes, of which half goes, but for one that is widened.
inline constexpr auto tower = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 64}), y = g.placeholder("y", {batch, 1});
  auto h = x;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) h = relu(dense(h, {.units = 64, .name = name}));
  return model_spec{.loss = reduce_mean(squared_difference(dense(h, {.units = 1, .name = "out"}), y)),
                    .metrics = {},
                    .predictions = {}};
};
template <class... Policies>
inline constexpr std::size_t memory_of =
    decltype(make_static_stepper<tower>(static_batch<256>{}, std::declval<Policies>()...))::memory_bytes;
static_assert(memory_of<adam, activations<bfloat16>> + 4 * 256 * 64 * 2 <= memory_of<adam>);
