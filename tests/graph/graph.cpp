#include <gradus/graph/graph.hpp>

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <limits>
#include <string>

#include "refused_graph.hpp"

using namespace gradus;

namespace {
inline constexpr card double_card{.name = "Double", .operands = 1, .infer = [](inference& r) {
                                    r.type = r.in_type(0), r.dims = r.in(0);
                                    if (r.type == boolean) r.refuse("takes numbers, got ", r.type);
                                  }};
// Its result has the first extent of each operand.
inline constexpr card crossed_card{.name = "Crossed", .operands = 2, .infer = [](inference& r) {
                                     r.type = r.in_type(0), r.dims = {r.in(0)[0], r.in(1)[0]};
                                   }};
constexpr value twice(value x, std::string_view name = {}) { return x.g->add(double_card, {x}, name); }

constexpr bool builds_in_constant_evaluation() {
  graph g(mode::predict);
  const value x = g.placeholder("x", {batch, 3});
  const value y = twice(x, "y");
  return g.mode() == mode::predict && y.dims() == shape{batch, 3} && y.type() == float32 && g.name_of(y.id) == "y" &&
         g.find("x") == 0 && g.find("nothing") == -1 && g.refusal.empty();
}
static_assert(builds_in_constant_evaluation());
constexpr bool keeps_the_first_refusal() {
  graph g;
  twice(g.placeholder("flags", {2}, boolean));
  g.variable("w", {batch});
  return std::string_view(g.refusal.first, static_cast<std::size_t>(g.refusal.count)) ==
         "Double: takes numbers, got bool (flags[2])";
}
static_assert(keeps_the_first_refusal());
}  // namespace

TEST_CASE("names are unique as in TensorFlow") {
  graph g;
  const auto name = [&](value v) { return std::string(g.name_of(v.id)); };
  CHECK(name(g.variable("w", {})) == "w");
  CHECK(name(g.variable("w", {})) == "w_1");
  CHECK(name(g.variable("w_1", {})) == "w_1_1");
  CHECK(name(g.variable("w", {})) == "w_2");
  CHECK(name(g.placeholder("", {})) == "Placeholder");
  CHECK(name(g.placeholder("", {})) == "Placeholder_1");
  CHECK(name(g.variable("", {})) == "Variable");
  {
    const auto tower = g.name_scope("tower");
    CHECK(name(g.variable("w", {})) == "tower/w");
    const auto inner = g.name_scope("a");
    CHECK(name(g.variable("w", {})) == "tower/a/w");
  }
  const auto tower = g.name_scope("tower");
  CHECK(name(g.variable("w", {})) == "tower_1/w");
  for (int i = 0; i < 300; ++i) g.variable("many", {});  // the table of names grows
  CHECK(name(g.variable("many", {})) == "tower_1/many_300");
  CHECK(g.by_name("tower/a/w").g == &g);
  CHECK(refusal_of([](graph& h) { h.by_name("x"); }) == "no node is named \"x\"");
}

TEST_CASE("scopes, devices, collections and groups") {
  graph g;
  value a, b;
  {
    const auto cpu = g.device("/job:ps/task:0/device:CPU:0");
    a = g.variable("a", {}, {.trainable = false});
  }
  b = g.variable("b", {}, {.local = true});
  CHECK(g.text_at(g.nodes[a.id].device) == "/job:ps/task:0/device:CPU:0");
  CHECK(g.nodes[b.id].device == -1);
  const auto members = [&](std::string_view c) {
    std::string ids;
    g.for_each_in(c, [&](value v) { ids += text(v.id, " "); });
    return ids;
  };
  CHECK(members(collection::global_variables) == "0 ");
  CHECK(members(collection::trainable_variables) == "");
  CHECK(members(collection::local_variables) == "1 ");
  const value both = g.group({a, b}, "both");
  CHECK(g.nodes[both.id].controls == 2);
  CHECK(both.type() == dtype::none);
  CHECK(g.nodes[both.id].op->is(trait::control));
}

TEST_CASE("constants: one value everywhere, or as many as the shape") {
  graph g;
  CHECK(g.nodes[g.constant(0.5, float64, {batch, 2}).id].attrs == 2);
  CHECK(g.nodes[g.constant({1, 2, 3}, {3}).id].attrs == 6);
  CHECK(refusal_of([](graph& h) { h.constant({1, 2}, {3}); }) == "constant: 2 values do not fill [3]");
  CHECK(refusal_of([](graph& h) {
          h.constant({1}, {batch, batch});
        }) == "constant: 1 values do not fill [batch, batch]");
  CHECK(refusal_of([](graph& h) {
          h.constant({1, 2, 3, 4}, {2 * batch, 2 * batch});
        }) == "constant: 4 values do not fill [2*batch, 2*batch]");
  CHECK(refusal_of([](graph& h) {
          h.constant({1, 2}, {2}, int8);
        }) == "\"\": int8 stands in files only; use int32, uint8 or float32");
}

TEST_CASE("refusals say what and where") {
  CHECK(refusal_of([](graph& g) {
          g.placeholder("x", {batch, batch});
        }) == "\"x\": at most one extent may be batch, got [batch, batch]");
  CHECK(refusal_of([](graph& g) {
          const value x = g.placeholder("x", {batch, 3}), y = g.placeholder("y", {batch});
          g.add(crossed_card, {x, y});
        }) ==
        "Crossed: the result would be [batch, batch], and at most one extent may be batch; reshape an operand "
        "(x[batch, 3], y[batch])");
  CHECK(refusal_of([](graph& g) {
          g.variable("w", {2 * batch, 3});
        }) == "variable \"w\" cannot have a batch extent: [2*batch, 3]");
  for (int t = 0; t < 256; ++t)
    if (is_for_files(static_cast<dtype>(t)))
      CHECK(refusal_of([&](graph& g) { g.placeholder("x", {2}, static_cast<dtype>(t)); }) ==
            "\"x\": " + std::string(name_of(static_cast<dtype>(t))) +
                " stands in files only; use int32, uint8 or float32");
  CHECK(refusal_of([](graph& g) { g.summary_scalar("loss", g.constant(1, float32, {2})); }) ==
        "summary_scalar(\"loss\"): expected a scalar, got [2]");
  CHECK(refusal_of([](graph& g) {
          g.summary_image("i", g.constant(1, float32, {2, 3, 3, 2}));
        }) == "summary_image(\"i\"): expected [n, height, width, channels], channels 1, 3 or 4, got [2, 3, 3, 2]");
  CHECK(refusal_of([](graph& g) { g.summary_audio("a", g.constant(1, float32, {2}), 8000); }) ==
        "summary_audio(\"a\"): expected [n, frames] or [n, frames, channels], got [2]");
  CHECK(refusal_of([](graph& g) {
          const value a = g.constant(1);
          g.constant(2);
          g.depend(a, a);
        }) == "a control edge can only be added to the newest node, from an older one");
  CHECK(refusal_of([](graph& g) {
          const value newest = g.constant(1);
          g.depend(newest, newest);
        }) == "a control edge can only be added to the newest node, from an older one");
  CHECK(refusal_of([](graph& g) {
          graph other;
          const value x = other.constant(1);
          g.add(double_card, {x});
        }) == "Double: operand 0 belongs to another graph; give a tensor of this one");
  CHECK(refusal_of([](graph& g) { g.add(double_card, {value{}}); }) ==
        "Double: operand 0 is an empty value; give a tensor (labels are empty where none are named)");
  CHECK(refusal_of([](graph& g) {
          const value x = g.constant(1);
          g.add(double_card, {x, x});
        }) == "Double: takes 1 operands, got 2");
}

TEST_CASE("a whole number that a double would round is refused, and one that is a double is kept") {
  graph g;
  const auto held = [&](value v) {
    const node& n = g.nodes[v.id];
    return std::bit_cast<double>(std::array<int, 2>{g.ints[n.attr], g.ints[n.attr + 1]});
  };
  constexpr std::int64_t most = std::int64_t{1} << 53;
  using whole = std::numeric_limits<std::int64_t>;
  for (const std::int64_t n : {most, -most, most + 2, std::int64_t{1} << 60, whole::min()})
    CHECK(static_cast<std::int64_t>(held(g.constant(n, int64))) == n);
  CHECK(held(g.constant(std::uint64_t{1} << 62, int64)) == 0x1p62);
  CHECK(held(g.constant(most + 1, float64)) == 0x1p53);  // as everywhere, float64 is rounded to
  const char* const rounded = "constant: this whole number is beyond +-2^53 and would be rounded";
  for (const std::int64_t n : {most + 1, -most - 1, whole::max(), whole::max() - 1, whole::min() + 1})
    CHECK_THROWS_WITH_AS(g.constant(n, int64), doctest::Contains(rounded), invalid_argument);
  for (const std::uint64_t n : {std::uint64_t{most} + 1, std::numeric_limits<std::uint64_t>::max()})
    CHECK_THROWS_WITH_AS(g.constant(n, int64), doctest::Contains(rounded), invalid_argument);
  constexpr auto refused_by_the_compiler = [] {
    graph h;
    h.constant((std::int64_t{1} << 53) + 1, int64);
    return h.refusal.count > 0;
  };
  static_assert(refused_by_the_compiler());
}

TEST_CASE("a scope needs a name") {
  CHECK(refusal_of([](graph& g) { const auto scope = g.name_scope(""); }) ==
        "name_scope: the name is empty, and names in it would begin with \"/\"; give it a name");
  static_assert([] {
    graph g;
    const auto outer = g.name_scope("outer"), none = g.name_scope("");
    return g.name_of(g.variable("w", {}).id) == "outer/w" && g.refusal.count > 0;
  }());
}
