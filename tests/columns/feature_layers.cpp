#include <gradus/columns/feature_layers.hpp>

#include <gradus/cpu/device.hpp>
#include <gradus/run/session.hpp>

#include <doctest/doctest.h>

#include <cstring>

#include "feature_data.hpp"

using namespace gradus;
using namespace columns_test;

namespace {
// A layout's batch fed to a graph by the names of its parts.
class fed_graph {
public:
  fed_graph(feature_layout layout, const features& batch) : layout_(std::move(layout)) { layout_.write(batch, data_); }
  const feature_layout& layout() const { return layout_; }
  graph g;
  void begin() { s_.emplace(g), s_->initialize(1); }
  void set(std::string_view name, std::initializer_list<float> list) {
    const tensor_view v = s_->mutable_variable(name);
    REQUIRE(v.size() == list.size());
    std::copy(list.begin(), list.end(), v.mutable_as<float>().begin());
  }
  std::vector<float> values(value y) {
    std::vector<feed> feeds;
    for (std::size_t k = 0; k < data_.size(); ++k)
      feeds.emplace_back(g.by_name(data_.about(k).name), std::as_const(data_)[k]);
    const fetch wanted[] = {y};
    const auto out = s_->run(wanted, feeds)[0].as<float>();
    return {out.begin(), out.end()};
  }

private:
  feature_layout layout_;
  datum data_;
  std::optional<decltype(session(std::declval<graph&>()))> s_;
};
const auto wire = categorical_column_with_hash_bucket("wire_cast", 4);
features wires_and_prices() {  // the wires are 2; 0, 3
  return batch_of(2, {ragged_texts("wire_cast", {{"omar"}, {"stringer", "marlo"}}), dense_floats("price", 1, {1, 5})});
}
}  // namespace

// Expected numbers: feature_column_test.py of TensorFlow 1.15, LinearModelTest and CrossedColumnTest.
TEST_CASE("a linear model adds the weights of ids, numbers times weights, and a bias") {
  fed_graph f(feature_layout({.linear_model = {wire, numeric_column("price")}, .ids_of = {{"wire_cast", 2}}}),
              wires_and_prices());
  const value y = linear_model(f.g, f.layout());
  CHECK(y.dims() == shape{batch, 1});
  f.begin();
  CHECK(f.values(y) == std::vector<float>{0, 0});
  f.set("linear_model/wire_cast/weights", {10, 100, 1000, 10000});
  f.set("linear_model/bias_weights", {5});
  CHECK(f.values(y) == std::vector<float>{1005, 10015});
  f.set("linear_model/price/weights", {10});
  CHECK(f.values(y) == std::vector<float>{1015, 10065});
}

TEST_CASE("a linear model of several units, and with another combiner") {
  fed_graph f(feature_layout({.linear_model = {wire}, .ids_of = {{"wire_cast", 2}}}),
              batch_of(2, {ragged_texts("wire_cast", {{"omar"}, {"stringer", "marlo"}})}));
  const value y = linear_model(f.g, f.layout(), {.units = 3}),
              mean = linear_model(f.g, f.layout(), {.sparse_combiner = combiner::mean});
  f.begin();
  f.set("linear_model/wire_cast/weights", {10, 11, 12, 100, 110, 120, 1000, 1100, 1200, 10000, 11000, 12000});
  f.set("linear_model/bias_weights", {5, 6, 7});
  CHECK(f.values(y) == std::vector<float>{1005, 1106, 1207, 10015, 11017, 12019});
  f.set("linear_model_1/wire_cast/weights", {10, 100, 1000, 10000});
  f.set("linear_model_1/bias_weights", {5});
  CHECK(f.values(mean) == std::vector<float>{1005, 5010});
}

TEST_CASE("a linear model of a cross") {
  const bucketized_column b(numeric_column("a", {.shape = {2}}), {0, 1});
  fed_graph f(feature_layout({.linear_model = {crossed_column({b, "c"}, 5, {.hash_key = 5})}, .ids_of = {{"c", 2}}}),
              batch_of(2, {dense_floats("a", 2, {-1, 0.5f, 0.5f, 1}), ragged_texts("c", {{"cA"}, {"cB", "cC"}})}));
  const value y = linear_model(f.g, f.layout());
  f.begin();
  f.set("linear_model/a_bucketized_X_c/weights", {1, 2, 3, 4, 5});
  f.set("linear_model/bias_weights", {0.1f});
  CHECK(f.values(y) == std::vector<float>{3.1f, 14.1f});
}

TEST_CASE("an input layer puts columns side by side, sorted by name; shared columns have one table") {
  const auto a = categorical_column_with_identity("aaa", 3), b = categorical_column_with_identity("bbb", 3);
  const auto shared = shared_embedding_columns({a, b}, 2);
  const auto own = weighted_categorical_column(b, "w");
  fed_graph f(feature_layout({.input_layer = {shared[1], numeric_column("zero"), shared[0], indicator_column(a),
                                              embedding_column(own, 1, {.combiner = combiner::sum})},
                              .ids_per_example = 2}),
              batch_of(2, {ragged_ints("aaa", {{2}, {0, 1}}), ragged_ints("bbb", {{}, {1}}),
                           ragged_floats("w", {{}, {3}}), dense_floats("zero", 1, {7, 8})}));
  const value x = input_layer(f.g, f.layout());
  CHECK(x.dims() == shape{batch, 9});
  f.begin();
  f.set("input_layer/aaa_bbb_shared_embedding/embedding_weights", {1, 2, 3, 5, 7, 11});
  f.set("input_layer/bbb_weighted_by_w_embedding/embedding_weights", {10, 20, 30});
  //                                     aaa_indicator, aaa, bbb, bbb weighted, zero
  CHECK(f.values(x) == std::vector<float>{0, 0, 1, 7, 11, 0, 0, 0, 7,  //
                                          1, 1, 0, 2, 3.5f, 3, 5, 60, 8});
}

TEST_CASE("two groups of shared columns whose tables have one name must have tables of one shape") {
  const auto id = [](const char* name) { return categorical_column_with_identity(name, 3); };
  const auto ab = shared_embedding_columns({id("a"), id("b")}, 8, {}, "emb");
  const auto cd = shared_embedding_columns({id("c"), id("d")}, 4, {}, "emb");
  graph g;
  const feature_layout layout({.input_layer = {ab[0], ab[1], cd[0], cd[1]}});
  const std::string said = refusal_of([&] { input_layer(g, layout); });
  CHECK_MESSAGE(said.find("another column has a table \"emb\" of [3, 8], expected [3, 4]") != std::string::npos, said);
}

TEST_CASE("what the layers refuse") {
  const feature_layout wide({.linear_model = {wire}});
  graph g;
  CHECK(refusal_of([&] { input_layer(g, wide); }) == "input_layer: the layout has no columns for it");
  CHECK(refusal_of([&] { linear_model(g, feature_layout({.input_layer = {numeric_column("x")}})); }) ==
        "linear_model: the layout has no columns for it");
  const auto scope = g.name_scope("tower");
  CHECK_THROWS_WITH_AS(linear_model(g, wide),
                       "the placeholder \"wire_cast/ids\" became \"tower/wire_cast/ids\", which no layout feeds; call "
                       "input_layer and linear_model outside of name scopes",
                       failed_precondition);
}
