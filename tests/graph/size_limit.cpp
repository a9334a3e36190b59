#include <gradus/graph/law.hpp>
#include <gradus/graph/size_limit.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/metric.hpp>
#include <gradus/pass/fuse.hpp>
#include <gradus/pass/minimize.hpp>
#include <gradus/pass/plan.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "refused_graph.hpp"

using namespace gradus;

namespace {
constexpr int most = detail::most_counted, side = 1 << 16,
              under = 46340;  // under * under is the last square below 2^31

static_assert(detail::is_counted({}) && detail::is_counted({most}) && detail::is_counted({1, most, 1}));
static_assert(detail::is_counted({under, under}) && !detail::is_counted({under + 1, under + 1}));
static_assert(detail::is_counted({batch, most}) && !detail::is_counted({2 * batch, most}));
static_assert(detail::is_counted({-most}) && !detail::is_counted({-most - 1}));
// An extent of 0 does not hide the others: a kernel may multiply these alone.
static_assert(detail::is_counted({0, under, under}) && !detail::is_counted({0, side, side}));
static_assert(!detail::is_counted({most, most, most, most, most, most}) &&
              detail::product_of_extents({most, most, most, most, most, most}, 0) > most);

static_assert(detail::is_table({side, side}) && detail::is_table({1 << 13, most}));

static_assert(detail::is_table({8192, most}) && !detail::is_table({8193 * 2, most}));
static_assert(!detail::is_table({1, side, side}) && !detail::is_table({side, side, side}));
static_assert(!detail::is_table({side * batch, side}) && !detail::is_table({-most - 1}) &&
              !detail::is_table({0, side, side}));

const std::string in_32_bits =
    " has more than 2147483647 elements, which this op counts in 32 bits; choose smaller extents, or compute it in "
    "parts";
const std::string as_table =
    " has more than 2147483647 elements behind its first axis, or more than 2^44 in all; choose smaller extents, or "
    "make several tensors of it";
const std::string of_an_example =
    " has more than 2147483647 elements for an example; choose smaller extents, or give the model an example in parts";

// The program of a graph as a session without a compiler has it.
detail::program planned(const graph& g) {
  const graph fused = fuse(parts_of(g));
  CHECK(broken_law(parts_of(fused)) == nullptr);
  return detail::plan(parts_of(fused));
}
const int* extents_of(const detail::program& p, const card& op) {
  for (const detail::signature& s : p.signatures)
    if (s.op == &op) return s.dims;
  return nullptr;
}
}  // namespace

TEST_CASE("leaves: a table may have more elements than an int counts, an example and a row may not") {
  CHECK(refusal_of([](graph& g) { g.variable("table", {side, side}); }) == "");
  CHECK(refusal_of([](graph& g) { g.placeholder("x", {batch, most}); }) == "");
  CHECK(refusal_of([](graph& g) {
          g.variable("w", {2, side, side});
        }) == "VariableV2 \"w\": [2, 65536, 65536]" + as_table);
  CHECK(refusal_of([](graph& g) {
          g.variable("w", {most, most});
        }) == "VariableV2 \"w\": [2147483647, 2147483647]" + as_table);
  CHECK(refusal_of([](graph& g) {
          g.placeholder("x", {batch, side, side});
        }) == "Placeholder \"x\": [batch, 65536, 65536]" + of_an_example);
  CHECK(refusal_of([](graph& g) { g.placeholder("x", {-most - 1}); }) ==
        "Placeholder \"x\": [2147483648*batch]" + of_an_example);
  CHECK(refusal_of([](graph& g) { g.constant(0, float32, {1, side, side}); }) == "Const: [1, 65536, 65536]" + as_table);
  CHECK(refusal_of([](graph& g) {
          g.constant(std::initializer_list<double>{}, {0, side, side});
        }) == "Const: [0, 65536, 65536]" + as_table);
  // The count of these would not even fit into 64 bits.
  CHECK(refusal_of([](graph& g) { g.constant({1}, {most, most, most, most}); }).find("Const: [") == 0);
  const double one = 1;
  CHECK(refusal_of([&](graph& g) {
          g.constant(std::span(&one, std::size_t{1} << 29), {1 << 29});  // refused before it is read
        }) == "constant: more than 2^28 values; feed them, or let a variable hold them");
}

TEST_CASE("an op whose kernel joins axes takes and gives what an int counts") {
  const auto dots = [](int m, int n) {
    return refusal_of([=](graph& g) { matmul(g.placeholder("a", {m, 2}), g.placeholder("b", {2, n})); });
  };
  CHECK(dots(under, under) == "");
  CHECK(dots(side, side) == "MatMul: the result [65536, 65536]" + in_32_bits + " (a[65536, 2], b[2, 65536])");
  CHECK(refusal_of([](graph& g) {
          const value a = g.placeholder("a", {side, side}), b = g.placeholder("b", {side, 1});
          matmul(a, b);
        }) == "MatMul: an operand [65536, 65536]" + in_32_bits + " (a[65536, 65536], b[65536, 1])");
  CHECK(refusal_of([](graph& g) {
          reduce_sum(g.placeholder("a", {side, side}));
        }) == "Sum: an operand [65536, 65536]" + in_32_bits + " (a[65536, 65536])");
  CHECK(refusal_of([](graph& g) { size_of(g.placeholder("a", {side, side})); }).find("Size: an operand") == 0);
  CHECK(refusal_of([](graph& g) {
          const value x = g.placeholder("x", {batch, side, 1}), y = g.placeholder("y", {1, side});
          g.add(cards::mul, {x, y}, "all_pairs");
        }) ==
        "Mul: \"all_pairs\": the result [batch, 65536, 65536]" + of_an_example + " (x[batch, 65536, 1], y[1, 65536])");
  CHECK(refusal_of([](graph& g) { one_hot(g.placeholder("i", {side}, int32), side); }).find("OneHot: the result") == 0);
  CHECK(refusal_of([](graph& g) { broadcast_to(g.placeholder("x", {1, 1}), {0, most, most}); }) != "");
  CHECK(refusal_of([](graph& g) {
          reshape(g.placeholder("x", {0}), {most, most, most, most, most, 0});
        }).find("Reshape: cannot see [0] as ") == 0);
  CHECK(refusal_of([](graph& g) { flatten(g.placeholder("x", {batch, 3, under, under / 3})); }) == "");
  CHECK(refusal_of([](graph& g) {
          reshape(g.placeholder("x", {side, side}), {1, detail::product({side, side}, 0)});
        }).find("Reshape: cannot see [65536, 65536] as [1, 2147483647]") == 0);
}

TEST_CASE("sums of extents are ints as well") {
  const int large = 1 << 30;
  const auto joined = [](shape a, shape b, int axis) {
    return refusal_of([&](graph& g) { concat({g.placeholder("a", a), g.placeholder("b", b)}, axis); });
  };
  CHECK(joined({large}, {large - 1}, 0) == "");
  CHECK(joined({large}, {large}, 0) ==
        "ConcatV2: axis 0 would have more than 2147483647 elements; join fewer, or work in parts (a[1073741824], "
        "b[1073741824])");
  CHECK(joined({-large}, {-large}, 0).find("ConcatV2: axis 0 would have more") == 0);
  CHECK(joined({side, side / 4}, {side, side / 4}, 1) ==
        "ConcatV2: the result [65536, 32768]" + in_32_bits + " (a[65536, 16384], b[65536, 16384])");
  const auto padded = [](shape a, std::initializer_list<padding_of_axis> by) {
    return refusal_of([&](graph& g) { pad(g.placeholder("a", a), by); });
  };
  CHECK(padded({1}, {{most - 1, 0}}) == "");
  CHECK(padded({1}, {{most, most}}).find("PadV2: axis 0 would have more than 2147483647 elements; pad it less") == 0);
  CHECK(padded({1, side, 2}, {{most - 2, 0}, {0, 0}, {0, 0}}).find("PadV2: the result [2147483646, 65536, 2]") == 0);
  CHECK(refusal_of([](graph& g) { slice(g.placeholder("a", {batch, 2}), {most, 0}, {-1, -1}); }).find("Slice: ") == 0);
  CHECK(refusal_of([](graph& g) { slice(g.placeholder("a", {3, 2}), {-most - 1, 0}, {-1, -1}); }).find("Slice: ") == 0);
  CHECK(refusal_of([](graph& g) {
          avg_pool(g.placeholder("a", {batch, 3, 3, 1}),
                   {.pool_size = {most, 1}, .strides = 1, .padding = padding::same});
        }) == "");
  CHECK(refusal_of([](graph& g) { multi_head_attention(g.placeholder("a", {batch, 1, most}), {}); }) != "");
  CHECK(refusal_of([](graph& g) {
          self_attention(g.placeholder("a", {batch, 1, 6}), {.heads = most});
        }).find("AttentionWeights: needs") == 0);
}

TEST_CASE("the largest sizes are lowered to the extents that they are") {
  graph g;
  const value a = g.placeholder("a", {1 << 15, 1 << 15, 1}), b = g.placeholder("b", {1, 1});
  g.add_output(output::fetch, "product", matmul(a, b));
  g.add_output(output::fetch, "sum", reduce_sum(g.placeholder("c", {2, 1 << 15, (1 << 15) - 1}), {1, 2}));
  g.add_output(output::fetch, "size", size_of(g.placeholder("d", {batch, most})));
  const detail::program p = planned(g);
  CHECK(extents_of(p, cards::matmul)[1] == 1 << 30);
  CHECK(extents_of(p, cards::sum)[3] == (1 << 15) * ((1 << 15) - 1));
  CHECK(extents_of(p, cards::size)[0] == -most);
}

TEST_CASE("a table of more than 2^31 numbers is read, written and computed with by element") {
  graph g;
  const value table = g.variable("table", {side, 2 * side}), ids = g.placeholder("ids", {batch, 3}, int32);
  const value scaled = table * 0.5, shifted = scaled + g.placeholder("row", {2 * side});
  g.add_output(output::fetch, "rows", reduce_sum(gather(table, ids)));
  g.add_output(output::fetch, "scaled", scaled);
  g.add_output(output::fetch, "shifted", shifted);
  g.add_output(output::fetch, "drawn", random_uniform(g, {side, side, 2}));
  const detail::program p = planned(g);
  CHECK(extents_of(p, cards::gather)[1] == 2 * side);
  std::vector<std::int64_t> rows, bytes;
  for (const detail::call& c : p.calls)
    if (p.signatures[c.signature].op == &cards::fused) rows.push_back(c.rows);
  CHECK(rows == std::vector<std::int64_t>{std::int64_t{1} << 33, side});
  for (std::int64_t slot : p.slots)
    if (slot > most) bytes.push_back(slot);
  CHECK(bytes == std::vector<std::int64_t>(3, std::int64_t{1} << 35));
  // But no op that would join its rows and columns takes it, not as a gradient either.
  CHECK(refusal_of([](graph& h) {
          l2_loss(h.variable("t", {side, side}));
        }).find("Sum: an operand [65536, 65536]") == 0);
  CHECK(refusal_of([](graph& h) {
          gather(h.variable("t", {4, 2}), h.placeholder("i", {side, side}, int32));
        }) == "Gather: takes at most 2147483647 indices; gather them in parts (t[4, 2], i[65536, 65536])");
  CHECK(refusal_of([](graph& h) {
          gather(h.variable("t", {4, side, 1 << 14}), h.placeholder("i", {batch, 2}, int32));
        }).find("Gather: the result [batch, 2, 65536, 16384]" + of_an_example) == 0);
}

namespace {
constexpr bool keeps_the_first_refusal() {
  graph g;
  const value x = g.placeholder("x", {batch, side, side});
  const value y = flatten(x * x);  // multiplied as if the extents were 1
  const value all = reduce_mean(concat({y, y}, 1));
  const std::string_view said(g.refusal.first, static_cast<std::size_t>(g.refusal.count));
  return all.dims().rank == 0 && said.starts_with("Placeholder \"x\": [batch, 65536, 65536] has more than");
}
static_assert(keeps_the_first_refusal());
}  // namespace

TEST_CASE("a layout of the compiler refuses what it cannot address") {
  static_assert(detail::addressed(3, 4) == 12 && detail::addressed(5, 0) == 0);
  if constexpr (sizeof(std::size_t) > 4)
    CHECK(detail::addressed(std::int64_t{1} << 31, 8) == static_cast<std::size_t>(std::uint64_t{1} << 34));
  else
    CHECK_THROWS_AS(detail::addressed(std::int64_t{1} << 31, 8), invalid_argument);
  CHECK_THROWS_WITH_AS(detail::addressed(std::int64_t{1} << 60, 8),
                       "a tensor takes more bytes than this processor addresses", invalid_argument);
  CHECK_THROWS_AS(detail::addressed(-1, 1), invalid_argument);
}
