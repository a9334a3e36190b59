// The same model twice: as it is, and with what lies between its ops asked for, which keeps them apart. The results
// must be the same bits, compiled and interpreted.
#include <doctest/doctest.h>
#include <gradus/cpu/device.hpp>
#include <gradus/cpu/fused.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/run/model.hpp>
#include <gradus/run/stepper.hpp>
#include <gradus/update/composed.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

#include <cstring>
#include <vector>

namespace {
using namespace gradus;

template <bool Apart>
constexpr auto behind_product = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 7});
  const auto w = g.variable("w", {7, 21}, {.init = random_normal(0, 1)}),
             v = g.variable("v", {21, 21}, {.init = random_normal(0, 1)});
  const auto bias = g.variable("b", {21}, {.init = random_normal(0, 1)});
  model_spec spec{.loss = reduce_mean(w), .metrics = {}, .predictions = {}};
  const auto p = matmul(x, w);
  const auto a = tanh(p + bias);
  const auto q = matmul(a, v);
  const auto r = maximum(q * 0.5 + a, bias);
  const auto s = matmul(v, a, {.transpose_b = true});  // [21, batch]
  const auto t = matmul(x, w) - reduce_sum(x, {1}, true);
  const auto u = exp(matmul(reshape(a, {batch, 3, 7}), reshape(r, {batch, 7, 3})) * 0.125);
  spec.predictions = {{"r", r}, {"s", sigmoid(s)}, {"t", t}, {"u", u}};
  if (Apart) spec.predictions = {{"r", r}, {"s", sigmoid(s)}, {"t", t}, {"u", u}, {"p", p}, {"q", q}, {"s0", s}};
  return spec;
};
template <bool Apart>
constexpr auto before_sum = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 7, 43}), y = g.placeholder("y", {batch, 7, 43}),
             z = g.placeholder("z", {batch, 7, 6});
  const auto w = g.variable("w", {43}, {.init = random_normal(0, 1)});
  const auto a = square(x - y), b = exp(x * 0.125) * w, c = abs(y) + w, d = sqrt(abs(x)), e = square(z);
  model_spec spec{.loss = reduce_mean(w), .metrics = {}, .predictions = {}};
  const auto all = reduce_mean(a), rows = reduce_sum(b, {2}), columns = reduce_sum(c, {0, 1}),
             last = reduce_mean(d, {1, 2}), down = reduce_mean(tanh(y), {0}), few = reduce_mean(e, {0, 1});
  spec.predictions = {{"all", all}, {"rows", rows}, {"columns", columns}, {"last", last}, {"down", down}, {"few", few}};
  if (Apart)
    spec.predictions = {{"all", all},   {"rows", rows}, {"columns", columns},
                        {"last", last}, {"down", down}, {"few", few},
                        {"a", a},       {"b", b},       {"c", c},
                        {"d", d},       {"e", e}};
  return spec;
};
// Results in the memory of their operands: broadcast beside it along each of the loops, long and short runs, an operand
// twice, two that both end here, another shape of it in between.
template <bool Apart>
constexpr auto in_place = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 7, 43}), z = g.placeholder("z", {batch, 7, 6}),
             v = g.placeholder("v", {batch, 300});
  const auto w = g.variable("w", {43}, {.init = random_normal(0, 1)}),
             rows = g.variable("rows", {7, 1}, {.init = random_normal(0, 1)}),
             few = g.variable("few", {6}, {.init = random_normal(0, 1)});
  const auto a = softmax(x), b = softmax(a * w + a), c = softmax(b * reduce_max(b, {2}, true) - rows), d = softmax(c),
             e = softmax(reshape(d + exp(c), {batch, 301})), f = softmax(z), h = softmax(f * few - rows),
             i = softmax(v), j = softmax(i * i + 0.5), k = softmax(reshape(h, {7 * batch, 6}) * few);
  model_spec spec{.loss = reduce_mean(w), .metrics = {}, .predictions = {}};
  spec.predictions = {{"e", tanh(e)}, {"k", tanh(k)}, {"j", tanh(j)}};
  if (Apart)
    spec.predictions = {{"e", tanh(e)}, {"k", tanh(k)}, {"j", tanh(j)}, {"a", a},  {"b", b},  {"c", c}, {"d", d},
                        {"f", f},       {"h", h},       {"i", i},       {"e0", e}, {"j0", j}, {"k0", k}};
  return spec;
};

template <class Model>
std::vector<std::vector<float>> predictions(Model model, std::int64_t batch_size, int many) {
  stepper<Model, decltype(composed{gradient_descent{.rate = 1}}), cpu<fast>> s(std::move(model),
                                                                               composed{gradient_descent{.rate = 1}});
  s.template declare<mode::predict>();
  s.allocate();
  s.initialize(3);
  auto& m = s.template bound<mode::predict>(batch_size);
  std::uint32_t state = 5;
  s.template placeholders<mode::predict>([&](const placeholder_info& p) {
    auto* to = reinterpret_cast<float*>(m.address(p.node));
    for (std::int64_t i = 0; i < count(resolve(p.dims, batch_size)); ++i)
      state = state * 1664525u + 1013904223u, to[i] = static_cast<float>(state >> 8) / 8388608.0f - 1.0f;
  });
  s.template forward<mode::predict>();
  std::vector<std::vector<float>> all;
  for (int i = 0; i < many; ++i) {
    const tensor_view v = s.template output_of<mode::predict>(output::prediction, i);
    const auto* from = reinterpret_cast<const float*>(v.data);
    all.emplace_back(from, from + v.size());
  }
  return all;
}
template <auto Build>
using compiled = compiled_model<Build, cpu<fast>, gating::op, false, true>;
using interpreted = interpreted_model<cpu<fast>, ops<>, gating::op, false, true>;

bool same(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b) {
  bool equal = a.size() == b.size();
  for (std::size_t i = 0; equal && i < a.size(); ++i) {
    equal = a[i].size() == b[i].size() && (a[i].empty() || std::memcmp(a[i].data(), b[i].data(), a[i].size() * 4) == 0);
    CHECK_MESSAGE(equal, "output ", i);
  }
  return equal;
}
template <auto Together, auto Apart>
void check(std::int64_t batch_size, int many) {
  CAPTURE(batch_size);
  const auto want = predictions(compiled<Apart>{}, batch_size, many);
  CHECK(same(predictions(compiled<Together>{}, batch_size, many), want));
  CHECK(same(predictions(interpreted{Together}, batch_size, many), want));
  CHECK(same(predictions(interpreted{Apart}, batch_size, many), want));
}
}  // namespace

TEST_CASE("behind a product") {
  for (std::int64_t n : {1, 2, 5, 16, 33}) check<behind_product<false>, behind_product<true>>(n, 4);
}
TEST_CASE("in front of a reduction") {
  for (std::int64_t n : {1, 3, 14, 29, 41}) check<before_sum<false>, before_sum<true>>(n, 6);  // 41: 287 rows, a tree
}
TEST_CASE("in the memory of an operand") {
  for (std::int64_t n : {1, 2, 5, 19, 37}) check<in_place<false>, in_place<true>>(n, 3);
}

TEST_CASE("behind products of any width, interpreted: a row alone, rows together, parts of rows") {
  for (const int columns : {1, 5, 16, 17, 48, 63, 64, 65, 127, 128, 130, 200, 600})
    for (const std::int64_t n : {1, 2, 3, 16, 50}) {
      CAPTURE(columns);
      const auto model = [columns](bool apart) {
        return [=](graph& g) {
          const auto x = g.placeholder("x", {batch, 7}), along = g.placeholder("along", {batch, columns}),
                     down = g.placeholder("down", {batch, 1});
          const auto w = g.variable("w", {7, columns}, {.init = random_normal(0, 1)}),
                     bias = g.variable("b", {columns}, {.init = random_normal(0, 1)});
          const auto p = matmul(x, w);
          const auto y = tanh(p * down + bias) - along * bias;
          model_spec spec{.loss = reduce_mean(w), .metrics = {}, .predictions = {{"y", y}}};
          if (apart) spec.predictions = {{"y", y}, {"p", p}};
          return spec;
        };
      };
      const auto run = [&](bool apart) {
        auto build = model(apart);
        return predictions(interpreted_model<cpu<fast>, ops<>, gating::op, false, true>{build}, n, 1);
      };
      CAPTURE(n);
      CHECK(same(run(false), run(true)));
    }
}

TEST_CASE("a product whose columns are divided, with a formula behind it that is interpreted") {
  for (const int m : {1, 5}) {
    constexpr int k = 64, n = 600;
    detail::signature s;
    s.op = &cards::fused_matmul;
    const int dims[] = {1, m, k, n, 0, 0};
    std::copy(std::begin(dims), std::end(dims), s.dims);
    for (dtype& t : s.types) t = float32;
    expression& x = s.formula;  // the sums times one number for each row, and one for each column
    x.inputs = 3, x.steps = 2, x.loops = 2, x.extent[1] = n, x.type = x.result_type = float32;
    for (int i = 0; i < 3; ++i) x.operand_type[i] = float32;
    x.varies[0] = detail::along_rows | detail::along_columns, x.varies[1] = detail::along_rows,
    x.varies[2] = detail::along_columns;
    x.op[0] = &cards::mul, x.op[1] = &cards::add;
    x.arg[0][0] = 0, x.arg[0][1] = 1, x.arg[1][0] = 3, x.arg[1][1] = 2;
    const detail::chunk_function steps[] = {&detail::run_chunk<&cards::mul, float, fast>,
                                            &detail::run_chunk<&cards::add, float, fast>};
    const auto whole_numbers = [](int count, int first) {
      std::vector<float> v(static_cast<std::size_t>(count));
      for (float& f : v) f = static_cast<float>(first = (first * 7 + 3) % 11 - 5);
      return v;
    };
    auto a = whole_numbers(m * k, 1), b = whole_numbers(k * n, 2), down = whole_numbers(m, 3),
         along = whole_numbers(n, 4);
    std::vector<float> expected;
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        float sum = 0;
        for (int q = 0; q < k; ++q)
          sum += a[static_cast<std::size_t>(i * k + q)] * b[static_cast<std::size_t>(q * n + j)];
        expected.push_back(sum * down[static_cast<std::size_t>(i)] + along[static_cast<std::size_t>(j)]);
      }
    for (const int parts : {1, 2, 3, 7}) {
      CAPTURE(parts);
      std::vector<float> y(expected.size());
      std::byte* args[] = {reinterpret_cast<std::byte*>(y.data()), reinterpret_cast<std::byte*>(a.data()),
                           reinterpret_cast<std::byte*>(b.data()), reinterpret_cast<std::byte*>(down.data()),
                           reinterpret_cast<std::byte*>(along.data())};
      for (int part = 0; part < parts; ++part)
        op_kernel<&cards::fused_matmul>::run<fast>(detail::dynamic{m, 1, part, parts, s, steps}, args);
      CHECK(y == expected);
    }
  }
}
