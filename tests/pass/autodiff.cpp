// Facts about tf.gradients (1.15): values that its own tests state, and its rules for what has no gradient.
#include "../golden/golden.hpp"
#include "../message.hpp"
#include "../ops/refusal.hpp"

#include <gradus/cpu/device.hpp>
#include <gradus/graph/law.hpp>
#include <gradus/ops/attention.hpp>
#include <gradus/ops/conv.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/layer_norm.hpp>
#include <gradus/ops/precision.hpp>
#include <gradus/pass/autodiff.hpp>
#include <gradus/run/session.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

using namespace gradus;

namespace {
detail::seq<gradient_value> grads(graph& g, std::initializer_list<value> ys, std::initializer_list<value> xs,
                                  const gradients_options& o = {}) {
  return gradients(g, std::span(ys.begin(), ys.size()), std::span(xs.begin(), xs.size()), o);
}
std::vector<double> numbers(graph& g, value v) {
  session s(g);
  s.initialize();
  const auto r = s.run(v);
  std::vector<double> out;
  if (r.type == float64)
    for (double x : r.as<double>()) out.push_back(x);
  else
    for (float x : r.as<float>()) out.push_back(static_cast<double>(x));
  return out;
}
double scalar_of(graph& g, const gradient_value& v) { return numbers(g, v.dense).at(0); }
}  // namespace

TEST_CASE("TensorFlow's own numbers") {
  {  // testBoundaryContinue: x = 1, y = 2 x, z = 3 y
    graph g;
    const value x = g.constant(1), y = x * 2.0, z = y * 3.0;
    const auto d = grads(g, {z}, {x, y});
    CHECK(scalar_of(g, d[0]) == 6);
    CHECK(scalar_of(g, d[1]) == 3);
  }
  {  // testDependentYs: x = 3, y = x^2, y1 = y^2, y2 = y1^2, ys = {y, y2}
    graph g;
    const value x = g.constant(3, float64), y = square(x), y2 = square(square(y));
    CHECK(scalar_of(g, grads(g, {y, y2}, {x})[0]) == 17502);
  }
  {  // testPartialDerivatives: x = 1, y = 2 x, z = x + y: total derivatives, then x and y held apart
    graph g;
    const value x = g.constant(1), y = x * 2.0, z = x + y;
    const auto total = grads(g, {z}, {x, y});
    CHECK(scalar_of(g, total[0]) == 3);
    CHECK(scalar_of(g, total[1]) == 1);
    const std::array stops{x, y};
    const auto partial = grads(g, {z}, {x, y}, {.stop_gradients = stops});
    CHECK(scalar_of(g, partial[0]) == 1);
    CHECK(scalar_of(g, partial[1]) == 1);
  }
  {  // testStopGradient
    graph g;
    const value x = g.constant(1);
    CHECK(!grads(g, {stop_gradient(x)}, {x})[0]);
  }
  {  // the docstring of unconnected_gradients: a is not in b
    graph g;
    const value a = g.constant(1, float32, {1, 2}), b = g.constant(1, float32, {3, 1});
    CHECK(!grads(g, {b}, {a})[0]);
    const auto zero = grads(g, {b}, {a}, {.unconnected_gradients = unconnected::zero});
    CHECK(zero[0].dense.dims() == shape{1, 2});
    CHECK(numbers(g, zero[0].dense) == std::vector<double>{0, 0});
  }
  {  // testComputeGradientsWithTensors: a plain tensor is an x
    graph g;
    const value x = g.constant(1);
    CHECK(scalar_of(g, grads(g, {x * x}, {x})[0]) == 2);
  }
  {  // StopGradientFunctionTest, a chain: a = 0, b = 2 a with b stopped: c = a + b
    graph g;
    const value a = g.constant(0), b = a * 2.0, c = a + b;
    const std::array stop{b};
    CHECK(scalar_of(g, grads(g, {c}, {a}, {.stop_gradients = stop})[0]) == 1);
    CHECK(scalar_of(g, grads(g, {c}, {b}, {.stop_gradients = stop})[0]) == 1);
  }
}

TEST_CASE("grad_ys: ones unless given; an x that is a y has its grad_y") {
  graph g;
  const value x = g.constant({1, 2, 3}, {3}), y = square(x);
  const std::array upstream{g.constant({1, 10, 100}, {3})};
  CHECK(numbers(g, grads(g, {y}, {x}, {.grad_ys = upstream})[0].dense) == std::vector<double>{2, 40, 600});
  CHECK(numbers(g, grads(g, {y}, {y}, {.grad_ys = upstream})[0].dense) == std::vector<double>{1, 10, 100});
  CHECK(numbers(g, grads(g, {y}, {y})[0].dense) == std::vector<double>{1, 1, 1});
  CHECK(numbers(g, grads(g, {y, y}, {x})[0].dense) == std::vector<double>{4, 8, 12});            // a sum over ys
  CHECK(numbers(g, grads(g, {y}, {x}, {.name = {}})[0].dense) == std::vector<double>{2, 4, 6});  // the default's name
  const std::array<value, 2> one_of_two{upstream[0], value{}};  // an empty entry is ones
  CHECK(numbers(g, grads(g, {y, y}, {x}, {.grad_ys = one_of_two})[0].dense) == std::vector<double>{4, 44, 606});
}

// Each fact's graph is told in words; `built` says what they mean.
TEST_CASE("golden facts") {
  struct built {
    std::vector<value> ys, xs;
    unconnected none = unconnected::none;
  };
  int known = 0;
  for (const auto& c : golden::read("gradients.json")) {
    if (c["kind"] != "gradients_tf") continue;
    const auto words = c["graph"].get<std::string>();
    INFO(words);
    graph g;
    const auto number = [&](double d) { return g.constant(d, float64); };
    const auto build = [&]() -> built {
      if (words == "x=1; y=2*x; z=3*y; ys=z") {
        const value x = number(1), y = x * 2.0, z = y * 3.0;
        return {{z}, {x, y}};
      }
      if (words == "x=3; y=x^2; y1=y^2; y2=y1^2; ys=[y,y2]") {
        const value x = number(3), y = square(x), y2 = square(square(y));
        return {{y, y2}, {x}};
      }
      if (words == "x=1; y=2*x; z=x+y; ys=z") {
        const value x = number(1), y = x * 2.0;
        return {{x + y}, {x, y}};
      }
      if (words == "out=stop_gradient(in); ys=out") {
        const value in = g.placeholder("in", {}, float64);
        return {{stop_gradient(in)}, {in}};
      }
      if (words == "a=ones[1,2]; b=ones[3,1]; ys=b; unconnected_gradients=zero") {
        const value a = g.constant(1, float64, {1, 2}), b = g.constant(1, float64, {3, 1});
        return {{b}, {a}, unconnected::zero};
      }
      if (words == "x=zeros[3]; y=clip_by_norm(x,1); ys=y") {
        const value x = g.constant(0, float64, {3});
        const value ss = reduce_sum(square(x)), some = greater(ss, 0.0);
        const value norm = select(some, sqrt(select(some, ss, number(1))), ss);
        return {{x / maximum(norm, number(1))}, {x}};
      }
      if (words == "x=1; ys=x*x") {
        const value x = number(1);
        return {{x * x}, {x}};
      }
      return {};
    };
    const built b = build();
    REQUIRE(!b.xs.empty());
    const auto d = gradients(g, b.ys, b.xs, {.unconnected_gradients = b.none});
    REQUIRE(d.size() == static_cast<int>(c["expect"].size()));
    for (std::size_t i = 0; i < c["expect"].size(); ++i) {
      const auto& expected = c["expect"][i];
      const gradient_value& got = d[static_cast<int>(i)];
      if (expected.is_null()) {
        CHECK(!got);
        continue;
      }
      REQUIRE(got.dense);
      const auto want = expected.is_array() ? golden::numbers<double>(expected) : std::vector{golden::number(expected)};
      const auto have = numbers(g, got.dense);
      REQUIRE(have.size() == want.size());
      for (std::size_t k = 0; k < want.size(); ++k)
        CHECK(golden::near(have[k], want[k], c["rtol"].get<double>(), c["atol"].get<double>()));
    }
    ++known;
  }
  CHECK(known == 7);
}

TEST_CASE("None: integers, bools, ops without a gradient, no path") {
  graph g;
  const value x = g.constant({1, 2}, {2}), n = g.constant({1, 2}, {2}, int32);
  CHECK(!grads(g, {cast(n, float32)}, {n})[0]);
  CHECK(!grads(g, {cast(greater(x, 0.0), float32)}, {x})[0]);
  CHECK(!grads(g, {cast(cast(x, int32), float32)}, {x})[0]);  // integers let nothing through
  CHECK(!grads(g, {cast(x, int32)}, {x})[0]);                 // a y of integers is allowed, and gives nothing
  CHECK(!grads(g, {n + n}, {n})[0]);
  const auto itself = grads(g, {n}, {n});  // but to itself, as any y
  REQUIRE(itself[0].dense);
  CHECK(itself[0].dense.type() == int32);
  CHECK(!grads(g, {select(greater(x, 0.0), x * 0.0, x * 1.0) * cast(n, float32)}, {n})[0]);
  CHECK(!grads(g, {sign(x)}, {x})[0]);
  CHECK(!grads(g, {x}, {g.constant(1)})[0]);
  CHECK(grads(g, {x}, {g.constant(1)}, {.unconnected_gradients = unconnected::zero})[0].dense);
  CHECK(!grads(g, {floor(x) + sign(x)}, {x})[0]);
  CHECK(numbers(g, grads(g, {floor(x) + x}, {x})[0].dense) == std::vector<double>{1, 1});
}

TEST_CASE("contributions add up in order of arrival; rows stay rows until something dense joins them") {
  graph g;
  const value table = g.constant({1, 2, 3, 4, 5, 6}, {3, 2}), ids = g.constant({2, 0, 2}, {3}, int32);
  const value rows = gather(table, ids);
  const auto sparse = grads(g, {rows}, {table});
  REQUIRE(sparse[0].sparse());
  CHECK(sparse[0].values.dims() == shape{3, 2});
  CHECK(sparse[0].indices.dims() == shape{3});
  const auto joined = grads(g, {rows, gather(table, g.constant({1}, {1}, int32)) * 5.0}, {table});
  REQUIRE(joined[0].sparse());
  CHECK(joined[0].values.dims() == shape{4, 2});
  const auto wide = grads(g, {rows, gather(table, g.constant({1}, {1}, int64))}, {table});
  REQUIRE(wide[0].sparse());  // int32 rows and int64 rows: int64
  CHECK(wide[0].indices.type() == int64);
  CHECK(wide[0].indices.dims() == shape{4});
  const auto mixed = grads(g, {rows, square(table)}, {table});
  REQUIRE(!mixed[0].sparse());
  CHECK(numbers(g, mixed[0].dense) == std::vector<double>{3, 5, 6, 8, 12, 14});
  const value ids_of_batch = g.placeholder("ids", {batch}, int32);
  const auto sized = grads(g, {rows, gather(table, ids_of_batch)}, {table});
  REQUIRE(!sized[0].sparse());  // rows of a batch and three rows: neither can hold the other
  session two(g);
  two.initialize();
  const auto summed = two.run(sized[0].dense, {{ids_of_batch, std::vector<std::int32_t>{1, 1, 0, 2}}});
  CHECK(std::ranges::equal(summed.as<float>(), std::array{2.f, 2.f, 2.f, 2.f, 3.f, 3.f}));
  const value x = g.constant(2);
  value sum = x;
  for (int i = 0; i < 9; ++i) sum = sum + x * static_cast<double>(i);
  CHECK(scalar_of(g, grads(g, {sum}, {x})[0]) == 37);
  for (auto method : {aggregation::add_n, aggregation::experimental_tree, aggregation::experimental_accumulate_n})
    CHECK(scalar_of(g, grads(g, {sum}, {x}, {.aggregation_method = method})[0]) == 37);
}

TEST_CASE("gates: the gradients of an op that has more than one") {
  graph g;
  const value a = g.variable("a", {2, 2}), b = g.variable("b", {2, 2});
  const value y = tanh(matmul(a, b));
  grads(g, {y}, {a, b});
  CHECK(g.gates.empty());
  grads(g, {y}, {a, b}, {.gate_gradients = true});
  REQUIRE(g.gates.count == 3);
  CHECK(g.gates[0] == 2);
  CHECK(g.nodes[g.gates[1]].op == &cards::matmul);
  CHECK(g.nodes[g.gates[2]].op == &cards::matmul);
  CHECK(broken_law(parts_of(g)) == nullptr);
}

TEST_CASE("gradients stand in a scope; colocated ones on their op's device") {
  graph g;
  value x, y;
  {
    const auto device = g.device("/device:CPU:0");
    x = g.placeholder("x", {2}), y = exp(x);
  }
  const int before = g.nodes.count;
  grads(g, {y}, {x}, {.name = "mine", .colocate_gradients_with_ops = true});
  int there = 0;
  for (int i = before; i < g.nodes.count; ++i) {
    CHECK(g.text_at(g.nodes[i].scope) == "mine/");
    there += g.nodes[i].device == g.nodes[y.id].device;
  }
  CHECK(there == 1);  // the product; what seeds the gradients belongs to no op
  graph h;            // sums of contributions are placed too, at an x and on the way
  value a, b;
  {
    const auto device = h.device("/device:CPU:1");
    a = h.placeholder("a", {2}), b = exp(a);
  }
  const value sum = b + square(b) + square(a);
  grads(h, {sum}, {a}, {.colocate_gradients_with_ops = true});
  int adds = 0;
  for (int i = sum.id + 1; i < h.nodes.count; ++i)
    if (h.nodes[i].op == &cards::add) adds += h.nodes[i].device == h.nodes[a.id].device;
  CHECK(adds == 2);
}
TEST_CASE("sparse gradients' row numbers do not depend on the table") {
  graph g;
  const value table = g.constant({1, 2, 3}, {3}), at = argmax(reshape(table, {1, 3}));  // float to int and back to rows
  const auto d = grads(g, {gather(table, at)}, {table});
  REQUIRE(d[0].sparse());
  CHECK(numbers(g, d[0].values) == std::vector<double>{1});
}

TEST_CASE("second derivatives: gradients of gradients") {
  graph g;
  const value x = g.constant(2, float64), y = x * x * x;
  const auto first = grads(g, {y}, {x});
  const auto second = grads(g, {first[0].dense}, {x});
  const auto third = grads(g, {second[0].dense}, {x});
  CHECK(scalar_of(g, first[0]) == 12);
  CHECK(scalar_of(g, second[0]) == 12);
  CHECK(scalar_of(g, third[0]) == 6);
}

TEST_CASE("a second derivative that is not defined: the error names op and remedy, and the page of ops the function") {
  struct function {
    const char *name, *op;
    value (*of)(value);
  };
  const function all[] = {
      {"elu", "EluGrad", [](value x) { return elu(x); }},
      {"gelu", "GeluGrad", [](value x) { return gelu(x); }},
      {"log_softmax", "LogSoftmaxGrad", [](value x) { return log_softmax(x) * x; }},
      {"max_pool", "MaxPoolGrad",
       [](value x) {
         return max_pool(reshape(x, {1, 6, 2, 1}), {.pool_size = 2});
       }},
      {"sparse_softmax_cross_entropy", "SparseSoftmaxCrossEntropyGrad",
       [](value x) {
         return sparse_softmax_cross_entropy(x, x.g->constant({1, 2}, {2}, int32));
       }},
      {"normalize_rows", "LayerNormGrad", [](value x) { return normalize_rows(x, 1e-3); }},
      {"self_attention", "AttentionGrad",
       [](value x) {
         return self_attention(reshape(x, {1, 2, 6}), {});
       }},
      {"tanh", nullptr, [](value x) { return tanh(x); }},
      {"softplus", nullptr, [](value x) { return softplus(x); }},
      {"softmax", nullptr, [](value x) { return softmax(x); }},
  };
  std::ostringstream page_text;
  page_text << std::ifstream(GRADUS_SOURCE_DIR "/docs/ops.md").rdbuf();
  const std::string page = page_text.str();
  const auto begin = page.find("**Second derivatives.**");
  REQUIRE(begin != std::string::npos);
  const std::string said = page.substr(begin, page.find("\n\n", begin) - begin);
  for (const function& f : all) {
    CAPTURE(f.name);
    graph g;
    const value x = g.placeholder("x", {2, 6});
    const auto first = grads(g, {square(f.of(x))}, {x});
    CHECK((said.find(text('`', f.name, '`')) != std::string::npos) == (f.op != nullptr));
    if (f.op == nullptr)
      CHECK(grads(g, {first[0].dense}, {x})[0]);
    else
      CHECK(message_of(status::invalid_argument, [&] { grads(g, {first[0].dense}, {x}); }) ==
            text("gradients: no gradient is defined for ", f.op,
                 ", a second derivative; compute it from ops that have one, or hold it constant by stop_gradient"));
  }
}

namespace {
template <auto F>
constexpr void differentiate(graph& g) {
  F(g);
}
constexpr void go(graph& g, value y, value x, const gradients_options& o = {}) {
  gradients(g, std::span(&y, 1), std::span(&x, 1), o);
}
}  // namespace
TEST_CASE("refusals") {
  refusal_test::check<[](graph& g) {
    const value x = g.placeholder("x", {2});
    go(g, prevent_gradient(x), x);
  }>("gradients: no gradient is defined for PreventGradient; compute it from ops that have one, or hold it constant by "
     "stop_gradient");
  refusal_test::check<[](graph& g) {
    const value n = g.placeholder("n", {2}, int32), x = g.placeholder("x", {2});
    go(g, n, n, {.grad_ys = std::span(&x, 1)});
  }>("gradients: grad_y must be like its y: int32 [2], got float32 [2]");
  refusal_test::check<[](graph& g) {  // also where no x needs it
    const value x = g.placeholder("x", {2}), z = g.placeholder("z", {2}), dy = g.placeholder("dy", {3});
    go(g, z, x, {.grad_ys = std::span(&dy, 1)});
  }>("gradients: grad_y must be like its y: float32 [2], got float32 [3]");
  refusal_test::check<[](graph& g) {
    const value x = g.placeholder("x", {2});
    go(g, x, x, {.aggregation_method = static_cast<aggregation>(3)});
  }>("gradients: invalid aggregation_method 3; expected add_n, experimental_tree or experimental_accumulate_n");
  refusal_test::check<[](graph& g) {
    const value x = g.placeholder("x", {2});
    go(g, x, x, {.unconnected_gradients = static_cast<unconnected>(2)});
  }>("gradients: invalid unconnected_gradients 2; expected none or zero");
  refusal_test::check<[](graph& g) {
    const value x = g.placeholder("x", {2});
    go(g, x, value{});
  }>("gradients: x 0 is no tensor of this graph");
  refusal_test::check<[](graph& g) {
    const value x = g.placeholder("x", {2}), dy = g.placeholder("dy", {3});
    go(g, x, x, {.grad_ys = std::span(&dy, 1)});
  }>("gradients: grad_y must be like its y: float32 [2], got float32 [3]");
  refusal_test::check<[](graph& g) {
    const value x = g.placeholder("x", {2}), two[2] = {x, x};
    go(g, x, x, {.grad_ys = std::span(two)});
  }>("gradients: 2 grad_ys for 1 ys");
}

TEST_CASE("a gradient that a cast to 16 bits would end is refused, and reduce_precision has one") {
  refusal_test::check<[](graph& g) {
    const value x = g.placeholder("x", {2}), y = square(cast(cast(x, float16), float32));
    gradients(g, std::span(&y, 1), std::span(&x, 1));
  }>("gradients: none passes a cast to float16, and what is in front of it would not be trained; use reduce_precision, "
     "which rounds and has a gradient, or stop_gradient around the result");
  for (const dtype half : {bfloat16, float16}) {
    graph g;
    const value z = g.placeholder("z", {2}), cut = cast(cast(z, half), float32);
    CHECK_THROWS_AS(grads(g, {z + square(cut)}, {z}), invalid_argument);
    graph h;
    const value x = h.placeholder("x", {2}), low = cast(x, half);
    CHECK(grads(h, {square(reduce_precision(x, half))}, {x})[0]);
    for (const value stopped : {stop_gradient(cast(low, float32)), cast(stop_gradient(low), float32),
                                cast(cast(stop_gradient(x), half), float32), size_of(low) * 2.0}) {
      CHECK(!grads(h, {square(stopped)}, {x})[0]);
      CHECK(grads(h, {x * stopped}, {x})[0]);
    }
    const value kept[] = {low};
    CHECK(!grads(h, {square(cast(low, float32))}, {x}, {.stop_gradients = kept})[0]);
    CHECK(!grads(h, {square(cast(low, float32))}, {low})[0]);  // 16 bits are not trained
    const value table = h.variable("table", {2}, {.init = zeros, .type = half}), w = h.variable("w", {2});
    const auto d = grads(h, {w * cast(table, float32)}, {w, table});
    CHECK(d[0]);
    CHECK(!d[1]);
  }
}
