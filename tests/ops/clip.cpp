#include <gradus/ops/clip.hpp>
#include <gradus/pass/autodiff.hpp>
#include <gradus/testing/gradient_check.hpp>

#include <doctest/doctest.h>

#include "../golden/golden.hpp"
#include "compute.hpp"
#include "refusal.hpp"

using namespace gradus;
using golden::json;
using ops_test::compute;
using refusal_test::check;

// Built by the compiler as by the program; shapes, dtypes and None stay as they were.
static_assert([] {
  graph g;
  const value x = g.placeholder("x", {batch, 3}), k = g.placeholder("k", {batch}, int32),
              rows = g.placeholder("rows", {4, 2}), w = g.variable("w", {5, 3});
  const value parts[] = {clip::by_value(x, -1, 1), clip::by_norm(x, 2.0, {-1}), clip::by_average_norm(x, 0.5),
                         clip::by_value(k, 0, 5), clip::adaptive(w, w, 0.01)};
  const auto all = clip::by_global_norm(g, {x, {}, gradient_value{{}, rows, k}}, 5.0);
  const auto sparse = clip::by_norm(gradient_value{{}, rows, k}, 1.0);
  return parts[0].dims() == shape{batch, 3} && parts[1].dims() == shape{batch, 3} && parts[3].type() == int32 &&
         parts[4].dims() == shape{5, 3} && all.list.count == 3 && !all.list[1] && all.list[2].sparse() &&
         all.list[2].indices.id == k.id && all.list[2].values.dims() == shape{4, 2} && all.norm.dims().rank == 0 &&
         sparse.sparse() && clip::global_norm(g, {}).type() == float32 && !clip::by_value(gradient_value{}, 0, 1) &&
         g.refusal.empty();
}());

namespace {
constexpr double inf = std::numeric_limits<double>::infinity();

template <class T>
value constant(graph& g, const json& numbers, const json& dims = nullptr) {
  shape s;
  if (dims.is_null())
    s = {static_cast<int>(numbers.size())};
  else
    for (const auto& d : dims) s.push(d.get<int>());
  return g.constant(golden::numbers<double>(numbers), s, dtype_of<T>);
}
template <class T>
void check_numbers(const json& c, const std::vector<T>& got, const json& want) {
  const double least = sizeof(T) == 4 ? 1e-6 : 0;
  const double rtol = std::max(c["rtol"].get<double>(), least), atol = c["atol"].get<double>() + least * 1e-3;
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    CHECK(golden::near(static_cast<double>(got[i]), golden::number(want[i]), rtol, atol));
}
template <class T>
void run_golden(const json& c) {
  INFO(c["id"].get<std::string>());
  const auto fn = c["fn"].get<std::string>();
  const auto& args = c["args"];
  graph g;
  if (fn == "clip_by_global_norm") {
    std::vector<gradient_value> list;
    for (const auto& t : args["ts"]) list.push_back({t.is_null() ? value{} : constant<T>(g, t), {}, {}});
    value use_norm;
    if (args.contains("use_norm")) use_norm = g.constant(golden::number(args["use_norm"]), dtype_of<T>);
    const auto all = clip::by_global_norm(g, list, golden::number(args["clip_norm"]), use_norm);
    const value norm = cast(all.norm, dtype_of<T>);  // of None alone it is float32
    check_numbers<T>(c, compute<T>(g, norm), json::array({c["expect_norm"]}));
    if (!use_norm)
      check_numbers<T>(c, compute<T>(g, cast(clip::global_norm(g, list), dtype_of<T>)),
                       json::array({c["expect_norm"]}));
    REQUIRE(static_cast<std::size_t>(all.list.count) == list.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto& one = all.list[static_cast<int>(i)];
      CHECK(bool(one) == !c["expect"][i].is_null());
      if (one) check_numbers<T>(c, compute<T>(g, one.dense), c["expect"][i]);
    }
    return;
  }
  const value t = constant<T>(g, args["t"], args["shape"]);
  value y;
  if (fn == "clip_by_value") y = clip::by_value(t, golden::number(args["min"]), golden::number(args["max"]));
  if (fn == "clip_by_norm") {
    std::vector<int> axes;
    if (args.contains("axes") && !args["axes"].is_null()) axes = args["axes"].get<std::vector<int>>();
    y = clip::by_norm(t, golden::number(args["clip_norm"]), axes);
  }
  if (fn == "clip_by_average_norm") y = clip::by_average_norm(t, golden::number(args["clip_norm"]));
  REQUIRE(y);
  check_numbers<T>(c, compute<T>(g, y), c["expect"]);
}
std::vector<double> run(double a, double b, value (*build)(value)) {
  graph g;
  return compute<double>(g, build(g.constant({a, b}, {2}, float64)));
}
std::vector<double> slope(const std::vector<double>& at, value (*build)(value)) {
  graph g;
  const value x = g.constant(at, {static_cast<int>(at.size())}, float64), y = build(x);
  return compute<double>(g, gradients(g, std::span(&y, 1), std::span(&x, 1))[0].dense);
}
bool all_nan(const std::vector<double>& v) {
  for (double x : v)
    if (!std::isnan(x)) return false;
  return true;
}
}  // namespace

TEST_CASE("golden clips on graphs, float64 and float32") {
  const auto cases = golden::read("clip.json");
  REQUIRE(cases.size() == 44);
  for (const auto& c : cases) {
    run_golden<double>(c);
    run_golden<float>(c);
  }
}

TEST_CASE("the table of edges") {
  using list = std::vector<double>;
  const double not_a_number = std::numeric_limits<double>::quiet_NaN();
  const auto one = [](value x) { return clip::by_norm(x, 1.0); };
  CHECK(run(0, 0, one) == list{0, 0});
  CHECK(run(3, 4, [](value x) { return clip::by_norm(x, 0.0); }) == list{0, 0});
  CHECK(all_nan(run(0, 0, [](value x) { return clip::by_norm(x, 0.0); })));
  CHECK(run(3, 4, [](value x) { return clip::by_norm(x, -2); }) == list{-1.2, -1.6});
  CHECK(all_nan(run(0, 0, [](value x) { return clip::by_norm(x, -2); })));
  CHECK(all_nan(run(3, not_a_number, one)));
  const auto huge = run(3, inf, one);
  CHECK(huge[0] == 0);
  CHECK(std::isnan(huge[1]));
  const auto global = [](value x) { return clip::by_global_norm(*x.g, {x}, 1.0).list[0].dense; };
  CHECK(all_nan(run(3, -inf, global)));
  CHECK(all_nan(run(3, not_a_number, global)));
  CHECK(run(0, 0, global) == list{0, 0});
  CHECK(all_nan(run(1, not_a_number, [](value x) { return clip::by_average_norm(x, 1.0); })));
  CHECK(run(3, 4, [](value x) { return clip::by_average_norm(x, 0.0); }) == list{0, 0});
  CHECK(all_nan(run(0, 0, [](value x) { return clip::by_average_norm(x, 0.0); })));
  CHECK(run(0, 0, [](value x) { return clip::by_average_norm(x, 0.9); }) == list{0, 0});
}

TEST_CASE("gradients where a norm is 0, and at bounds") {
  using list = std::vector<double>;
  CHECK(slope({0, 0, 0}, [](value x) { return clip::by_norm(x, 1.0); }) == list{1, 1, 1});  // TensorFlow's own test
  CHECK(slope({0, 0}, [](value x) { return clip::by_average_norm(x, 1.0); }) == list{1, 1});
  CHECK(slope({0, 0}, [](value x) { return clip::by_global_norm(*x.g, {x}, 1.0).list[0].dense; }) == list{1, 1});
  CHECK(slope({0, 0}, [](value x) { return clip::global_norm(*x.g, {x}); }) == list{0, 0});
  CHECK(slope({-2, -1, 0, 1, 2}, [](value x) { return clip::by_value(x, -1, 1); }) == list{0, 1, 1, 1, 0});
}

TEST_CASE("gradients against differences") {
  using xs = std::span<const value>;
  const auto row = [](const std::vector<testing::gradient_input>& inputs, value (*build)(graph&, xs)) {
    const auto e = testing::check_gradients(inputs, build);
    CHECK(e.coarse < 1e-4);
    CHECK(e.fine < 1e-8);
  };
  row({{{batch, 4}}}, [](graph&, xs x) { return clip::by_value(x[0], -0.4, 0.3); });
  row({{{batch, 4}}, {{4}, -0.8, -0.4}, {{batch, 1}, 0.3, 0.7}},
      [](graph&, xs x) { return clip::by_value(x[0], x[1], x[2]); });
  row({{{batch, 4}}}, [](graph&, xs x) { return clip::by_norm(x[0], 0.7); });
  row({{{batch, 4}}}, [](graph&, xs x) { return clip::by_norm(x[0], 0.7, {1}); });
  row({{{batch, 4}}, {{1, 4}, 0.2, 0.4}}, [](graph&, xs x) { return clip::by_norm(x[0], x[1], {0}); });
  row({{{batch, 4}}}, [](graph&, xs x) { return clip::by_norm(x[0], 20.0); });
  row({{{batch, 4}}}, [](graph&, xs x) { return clip::by_average_norm(x[0], 0.05); });
  row({{{batch, 4}}, {{}, 0.02, 0.05}}, [](graph&, xs x) { return clip::by_average_norm(x[0], x[1]); });
  row({{{batch, 4}}, {{2, 2}}}, [](graph& g, xs x) { return clip::global_norm(g, {x[0], {}, x[1]}); });
  row({{{batch, 4}}, {{2, 2}}}, [](graph& g, xs x) {
    const auto all = clip::by_global_norm(g, {x[0], x[1]}, 0.9);
    const value total = reduce_sum(all.list[1].dense * all.list[1].dense);
    return all.list[0].dense * total;
  });
  row({{{batch, 4}}, {{}, 1, 2}},
      [](graph& g, xs x) { return clip::by_global_norm(g, {x[0]}, 0.9, x[1]).list[0].dense; });
  row({{{6, 4}}, {{6, 4}}}, [](graph&, xs x) { return clip::adaptive(x[0], x[1], 0.3); });
}

TEST_CASE("adaptive clipping, unit by unit") {
  ops_test::draw d;
  for (const shape& dims : {shape{5, 9}, shape{3, 2, 4}, shape{3, 3, 2, 6}, shape{11}, shape{1, 6}, shape{}}) {
    const auto n = static_cast<std::size_t>(count(dims));
    const auto g = d.between<double>(-1, 1, n), p = d.between<double>(-0.5, 0.5, n);
    const auto unit = [&](std::size_t i) {
      int wide = 0;
      for (int k = 0; k < dims.rank; ++k) wide += dims.dims[k] != 1;
      return wide <= 1        ? 0
             : dims.rank <= 3 ? i % (n / static_cast<std::size_t>(dims.dims[0]))
                              : i % static_cast<std::size_t>(dims.back());
    };
    std::vector<double> gn(n + 1), pn(n + 1);
    for (std::size_t i = 0; i < n; ++i) gn[unit(i)] += g[i] * g[i], pn[unit(i)] += p[i] * p[i];
    graph h;
    const auto got =
        compute<double>(h, clip::adaptive(h.constant(g, dims, float64), h.constant(p, dims, float64), 0.9));
    for (std::size_t i = 0; i < n; ++i) {
      const double most = 0.9 * std::max(std::sqrt(pn[unit(i)]), 1e-3), norm = std::sqrt(gn[unit(i)]);
      CHECK(got[i] == doctest::Approx(norm < most ? g[i] : g[i] * (most / norm)).epsilon(1e-12));
    }
  }
}

namespace {
// Every clip with its gradient, as one number: ops, edges, attributes and extents in order.
constexpr std::uint64_t every_clip() {
  graph g;
  const value x = g.variable("x", {4, 6}), y = g.variable("y", {4, 6}), c = g.variable("c", {});
  value sum = g.constant(0);
  const auto take = [&](value v) { sum = sum + reduce_sum(v); };
  take(clip::by_value(x, -1, c)), take(clip::by_norm(x, c, {0})), take(clip::by_average_norm(x, 0.5));
  take(clip::global_norm(g, {x, y})), take(clip::adaptive(x, y, 0.01));
  const auto all = clip::by_global_norm(g, {x, {}, y}, c), known = clip::by_global_norm(g, {x}, 1, c);
  take(all.list[0].dense), take(all.list[2].dense), take(known.list[0].dense);
  const value xs[] = {x, y, c};
  gradients(g, std::span(&sum, 1), xs);
  std::uint64_t h = 14695981039346656037u;
  const auto mix = [&](std::uint64_t n) { h = (h ^ n) * 1099511628211u, h ^= h >> 29; };
  for (const node& n : g.nodes) {
    for (char letter : n.op->name) mix(static_cast<unsigned char>(letter));
    for (int e = 0; e < n.inputs + n.controls; ++e) mix(static_cast<std::uint64_t>(g.edges[n.first + e]));
    for (int a = 0; a < n.attrs; ++a) mix(static_cast<std::uint64_t>(g.ints[n.attr + a]));
    for (int k = 0; k < n.dims.rank; ++k) mix(static_cast<std::uint64_t>(n.dims.dims[k]));
  }
  return h;
}
}  // namespace

TEST_CASE("the compiler and the program build one graph") {
  static constexpr auto compiled = every_clip();
  CHECK(every_clip() == compiled);
}

TEST_CASE("the ends of int64 are no bounds; others that a double would round are refused") {
  using whole = std::numeric_limits<std::int64_t>;
  const std::vector<std::int64_t> numbers{whole::min(), -7, 0, 9, whole::max()};
  const auto clipped = [&](clip::bound low, clip::bound high) {
    graph g;
    const value x = g.placeholder("x", {5}, int64);
    return compute<std::int64_t>(g, clip::by_value(x, low, high), {{x, numbers}});
  };
  using list = std::vector<std::int64_t>;
  CHECK(clipped(whole::min(), whole::max()) == numbers);
  CHECK(clipped(-5, whole::max()) == list{-5, -5, 0, 9, whole::max()});
  CHECK(clipped(whole::min(), 5) == list{whole::min(), -7, 0, 5, 5});
  CHECK(clipped(0, std::numeric_limits<std::uint64_t>::max()) == list{0, 0, 0, 9, whole::max()});
  CHECK(clipped(whole::min(), whole::min()) == list(5, whole::min()));
  check<[](graph& g) { clip::by_value(g.placeholder("x", {3}, int64), 0, (std::int64_t{1} << 53) + 1); }>(
      "constant: this whole number is beyond +-2^53 and would be rounded, since a graph keeps its numbers as double; "
      "feed "
      "it to a placeholder of int64, or cast it, static_cast<double>(n), where the nearest double will do");
  check<[](graph& g) { clip::by_value(g.placeholder("x", {3}, int64), whole::max(), whole::max()); }>(
      "constant: int64 cannot hold this number; cast the tensor that it stands beside, or give a whole number in the "
      "range of int64");
}

TEST_CASE("what clips refuse") {
  check<[](graph& g) {
    clip::by_value(g.placeholder("x", {3}), g.placeholder("lo", {2, 3}), 1.0);
  }>("clip_by_value: a bound [2, 3] would enlarge the tensor [3]");
  check<[](graph& g) {
    clip::by_norm(g.placeholder("x", {batch, 3}), g.placeholder("c", {4, 1, 3}));
  }>("clip_by_norm: a bound [4, 1, 3] would enlarge the tensor [batch, 3]");
  check<[](graph& g) { clip::by_value(g.placeholder("k", {3}, int32), 0, 1.5); }>(
      "clip_by_value: a tensor of int32 takes whole numbers as bounds, got a float");
  check<[](graph& g) { clip::by_value(g.placeholder("x", {3}), value{}, 1.5); }>(
      "clip_by_value: the bound is no tensor of this graph");
  check<[](graph& g) { clip::by_norm(g.placeholder("k", {3}, int32), 1); }>(
      "clip_by_norm: takes float32 or float64, got int32; use cast");
  check<[](graph& g) {
    clip::by_norm(g.placeholder("x", {batch, 3}), 1.0, {2});
  }>("clip_by_norm: axis 2 is outside [batch, 3]");
  check<[](graph& g) { clip::by_global_norm(g, {g.placeholder("x", {3})}, 1.0, g.placeholder("n", {1})); }>(
      "clip_by_global_norm: use_norm must be a scalar, got [1]");
  check<[](graph& g) {
    const value x = g.placeholder("x", {3});
    clip::by_global_norm(g, {x}, x);
  }>("clip_by_global_norm: a bound [3] would enlarge the tensor []");
  check<[](graph& g) {
    clip::adaptive(g.placeholder("x", {3}), g.placeholder("p", {3, 1}), 0.1);
  }>("clip_adaptive: the gradient [3] and its parameter [3, 1] must have one shape and dtype");
}
