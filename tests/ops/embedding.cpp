#include "refusal.hpp"

#include <gradus/ops/embedding.hpp>
#include <gradus/testing/gradient_check.hpp>

#include <map>

#include "compute.hpp"

using namespace gradus;
using refusal_test::check;

namespace {
// Rows of two numbers; ids -1 are padding.
constexpr double rows_of_table[] = {1, 2, 3, 4, 6, 8, -1, 0.5};
constexpr int table_rows = 4, wide = 2, each = 3;
const std::vector<std::int64_t> some_ids{2, 0, 2, 1, -1, -1, -1, -1, -1, 3, -1, 1, 0, 3, -7};
const std::vector<float> some_weights{0.5f, 2, -1, 3, 9, 9, 9, 9, 9, 1, 9, 0.25f, 0, -2, 1};

// The look-up as the formulas say it: double arithmetic, one example after the other.
std::vector<double> by_hand(combiner how, bool weighted, double max_norm) {
  std::vector<double> out;
  for (std::size_t r = 0; r < some_ids.size() / each; ++r) {
    double sum[wide] = {}, w1 = 0, w2 = 0;
    for (std::size_t k = 0; k < each; ++k) {
      const auto id = some_ids[r * each + k];
      const double w = weighted ? double{some_weights[r * each + k]} : 1;
      if (id < 0 || (w <= 0 && how != combiner::sum)) continue;
      const double* row = rows_of_table + id * wide;
      double norm = std::hypot(row[0], row[1]), scale = max_norm > 0 && norm > max_norm ? max_norm / norm : 1;
      for (int i = 0; i < wide; ++i) sum[i] += w * scale * row[i];
      w1 += w, w2 += w * w;
    }
    const double by = how == combiner::sum || w2 == 0 ? 1 : how == combiner::mean ? w1 : std::sqrt(w2);
    for (double v : sum) out.push_back(v / by);
  }
  return out;
}
std::vector<double> in_graph(combiner how, bool weighted, double max_norm) {
  graph g;
  const value table = g.placeholder("table", {table_rows, wide}), ids = g.placeholder("ids", {batch, each}, int64),
              w = g.placeholder("w", {batch, each});
  const std::vector<float> start(std::begin(rows_of_table), std::end(rows_of_table));
  const value y =
      embedding_lookup_sparse(table, ids, {.combiner = how, .weights = weighted ? w : value{}, .max_norm = max_norm});
  CHECK(y.dims() == shape{batch, wide});
  const auto out = ops_test::compute<float>(g, y, {{table, start}, {ids, some_ids}, {w, some_weights}});
  return {out.begin(), out.end()};
}
}  // namespace

TEST_CASE("ids are combined by sum, mean and sqrtn; weights, padding, empty examples and a norm count") {
  for (const combiner how : {combiner::sum, combiner::mean, combiner::sqrtn})
    for (const bool weighted : {false, true})
      for (const double max_norm : {0.0, 3.0}) {
        CAPTURE(name_of(how));
        CAPTURE(weighted);
        CAPTURE(max_norm);
        const auto got = in_graph(how, weighted, max_norm), want = by_hand(how, weighted, max_norm);
        REQUIRE(got.size() == want.size());
        for (std::size_t i = 0; i < got.size(); ++i) CHECK(ops_test::near(got[i], want[i], 1e-6));
        CHECK(got[4] == 0);  // the third example has no ids
        CHECK(got[5] == 0);
      }
}

TEST_CASE("the gradient of a look-up answers to differences") {
  for (const combiner how : {combiner::sum, combiner::mean, combiner::sqrtn})
    for (const double max_norm : {0.0, 1.5}) {
      CAPTURE(name_of(how));
      CAPTURE(max_norm);
      const auto e = testing::check_gradients(
          {{.dims = {5, 3}, .low = 0.5, .high = 2}, {.dims = {2, 3}, .low = 0.3, .high = 1}}, [&](auto& g, auto x) {
            const value ids = g.constant({4, 0, 4, 2, -1, -1}, {2, 3}, int64);
            return embedding_lookup_sparse(x[0], ids, {.combiner = how, .weights = x[1], .max_norm = max_norm});
          });
      CHECK(e.coarse < 1e-4);
      CHECK(e.fine < 1e-7);
    }
}

TEST_CASE("the sparse gradient names rows that the examples read, and row 0 for one without ids") {
  graph g(mode::train);
  const value ids = g.placeholder("ids", {batch, 3}, int64);
  const value y = sparse_embedding(ids, {.name = "w_embedding", .num_buckets = 9, .dimension = 2});
  const value table = g.by_name("w_embedding/embedding_weights"), loss = reduce_sum(y);
  const auto d = gradients(g, std::span(&loss, 1), std::span(&table, 1));
  REQUIRE(d[0].sparse());
  const std::vector<std::int64_t> in{5, -1, 7, -1, -1, -1, -1, 3, -1};
  const auto at = ops_test::compute<std::int64_t>(g, d[0].indices, {{ids, in}});
  CHECK(at == std::vector<std::int64_t>{5, 7, 7, 0, 0, 0, 3, 3, 3});
  std::map<std::int64_t, float> total;
  const auto values = ops_test::compute<float>(g, d[0].values, {{ids, in}});
  for (std::size_t i = 0; i < at.size(); ++i) total[at[i]] += values[2 * i];
  CHECK(total == std::map<std::int64_t, float>{{0, 0.0f}, {3, 1.0f}, {5, 0.5f}, {7, 0.5f}});
}

TEST_CASE("an id whose weight is no weight is in no gradient of a mean, nor are its values read") {
  const std::vector<std::int64_t> in{5, 7, -1, 4, 2, -1};
  const std::vector<float> weights{1, 0, 9, -1, 0, 9};
  for (const combiner how : {combiner::mean, combiner::sqrtn, combiner::sum}) {
    CAPTURE(name_of(how));
    graph g(mode::train);
    const value ids = g.placeholder("ids", {batch, 3}, int64), w = g.placeholder("w", {batch, 3});
    const value y =
        sparse_embedding(ids, {.name = "w_embedding", .num_buckets = 9, .dimension = 2, .combiner = how, .weights = w});
    const value table = g.by_name("w_embedding/embedding_weights"), loss = reduce_sum(y);
    const auto d = gradients(g, std::span(&loss, 1), std::span(&table, 1));
    const auto at = ops_test::compute<std::int64_t>(g, d[0].indices, {{ids, in}, {w, weights}});
    CHECK(at == (how == combiner::sum ? std::vector<std::int64_t>{5, 7, 7, 4, 2, 4}
                                      : std::vector<std::int64_t>{5, 5, 5, 0, 0, 0}));
  }
}

// The names and starts of the variables are TensorFlow's; the compiler can build all of it.
static_assert([] {
  graph g;
  const value ids = g.placeholder("ids", {batch, 3}, int64), w = g.placeholder("w", {batch, 3});
  {
    const auto scope = g.name_scope("input_layer");
    sparse_embedding(ids, {.name = "a_embedding", .num_buckets = 10, .dimension = 4, .max_norm = 2});
    sparse_embedding(ids, {.name = "b_embedding", .num_buckets = 10, .dimension = 9, .weights = w, .trainable = false});
  }
  const auto scope = g.name_scope("linear_model");
  const value y = sparse_linear(ids, {.name = "a", .num_buckets = 10, .units = 2});
  const int a = g.find("input_layer/a_embedding/embedding_weights"),
            b = g.find("input_layer/b_embedding/embedding_weights"), l = g.find("linear_model/a/weights");
  if (a < 0 || b < 0 || l < 0 || !(y.dims() == shape{batch, 2}) || !g.refusal.empty()) return false;
  int trainable = 0;
  g.for_each_in(collection::trainable_variables, [&](value) { ++trainable; });
  return trainable == 2 && g.nodes[a].dims == shape{10, 4} && g.nodes[b].dims == shape{10, 9} &&
         g.nodes[l].dims == shape{10, 2};
}());

TEST_CASE("an embedding begins with a truncated normal of deviation 1 / sqrt(dimension), a linear part with zeros") {
  graph g;
  const value ids = g.placeholder("ids", {batch, 1}, int64);
  sparse_embedding(ids, {.name = "e", .num_buckets = 2000, .dimension = 4});
  sparse_linear(ids, {.name = "l", .num_buckets = 50});
  session s{g};
  s.initialize(3);
  double squares = 0, most = 0;
  const auto table = s.variable("e/embedding_weights").as<float>();
  for (const float v : table) squares += double{v} * double{v}, most = std::max(most, std::fabs(double{v}));
  CHECK(most <= 1.0);  // two deviations of 0.5
  CHECK(std::sqrt(squares / 8000) == doctest::Approx(0.5 * 0.8796).epsilon(0.03));
  for (const float v : s.variable("l/weights").as<float>()) CHECK(v == 0);
}

TEST_CASE("what look-ups refuse") {
  check<[](graph& g) {
    sparse_embedding(g.placeholder("ids", {batch, 2}, int64), {.name = "e", .num_buckets = 3});
  }>("sparse_embedding \"e\": needs num_buckets > 0 and dimension > 0, got 3, 0");
  check<[](graph& g) {
    sparse_linear(g.placeholder("ids", {batch, 2}, int64), {.name = "e"});
  }>("sparse_linear \"e\": needs num_buckets > 0 and units > 0, got 0, 1");
  check<[](graph& g) {
    embedding_lookup_sparse(g.variable("t", {3, 2}), g.placeholder("ids", {batch, 2}));
  }>("embedding_lookup_sparse: needs a table [n, dim] of float32 or float64 and ids [..., k] of int32 or int64, got "
     "[3, "
     "2] of float32 and [batch, 2] of float32");
  check<[](graph& g) {
    embedding_lookup_sparse(g.variable("t", {3, 2}), g.placeholder("ids", {batch, 2}, int64),
                            {.weights = g.placeholder("w", {batch})});
  }>("embedding_lookup_sparse: needs weights like the ids, [batch, 2] of float32, got [batch] of float32");
}

namespace {
// A number that names the ops in their order, with an empty name for each column.
constexpr std::uint64_t order_of_ops() {
  graph g;
  const value ids = g.placeholder("ids", {batch, 3}, int64), w = g.placeholder("w", {batch, 3});
  sparse_embedding(ids, {.name = {}, .num_buckets = 7, .dimension = 2, .weights = w});
  sparse_linear(ids, {.name = {}, .num_buckets = 7});
  if (g.find("embedding/embedding_weights") < 0 || g.find("linear/weights") < 0) return 0;
  std::uint64_t h = 14695981039346656037u;
  for (const node& n : g.nodes)
    for (const char c : n.op->name) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return h;
}
}  // namespace

TEST_CASE("the compiler and the program make the ops of a look-up in one order; an empty name is the default") {
  static constexpr std::uint64_t compiled = order_of_ops();
  static_assert(compiled != 0);
  CHECK(order_of_ops() == compiled);
}
