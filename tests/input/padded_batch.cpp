#include <gradus/input/padded_batch.hpp>

#include <gradus/input/dataset.hpp>
#include <gradus/input/elements.hpp>

#include "data.hpp"

using namespace data_tests;

namespace {
datum row(std::initializer_list<std::int64_t> values) {
  datum d(vectors);
  d.resize(0, {static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), d.values<std::int64_t>(0).begin());
  return d;
}
element_list rows() { return from_elements(vectors, {row({1}), row({2, 3, 4}), row({}), row({5, 6})}); }
}  // namespace

TEST_CASE("to the longest of the batch, or to a shape") {
  auto d = rows().padded_batch(2);
  CHECK(d.batch_size() == 2);
  CHECK(d.cardinality() == 2);
  CHECK(to_text(d.element_spec()) == "value int64 [-1]");
  datum e;
  REQUIRE(d.next(e));
  CHECK(e[0].dims == extents{2, 3});
  CHECK(lists_of(rows().padded_batch(2)) == std::vector<ints>{{1, 0, 0, 2, 3, 4}, {0, 0, 5, 6}});
  CHECK(lists_of(rows().padded_batch(3, {.padding_values = {-1}, .drop_remainder = true})) ==
        std::vector<ints>{{1, -1, -1, 2, 3, 4, -1, -1, -1}});
  auto four = rows().padded_batch(2, {.padded_shapes = {{4}}});
  std::int64_t values[8];
  const tensor_view view(std::span<std::int64_t>(values), {2, 4});  // as a trainer reads it
  CHECK(four.next({&view, 1}) == 2);
  CHECK(ints(values, values + 8) == ints{1, 0, 0, 0, 2, 3, 4, 0});
  CHECK(message_of(status::data_loss, [] { lists_of(rows().padded_batch(2, {.padded_shapes = {{2}}})); }) ==
        "\"value\": an element of extent 3 cannot be padded to [2]; give larger padded_shapes");
}

TEST_CASE("two axes, several components") {
  const components spec = {{"m", int32, {any_extent, any_extent}}, {"s", float64, {}}};
  std::vector<datum> list(2, datum(spec));
  list[0].resize(0, {1, 2});
  list[0].set<std::int32_t>(0, 1);
  list[1].resize(0, {2, 1});
  list[1].set<std::int32_t>(0, 2);
  auto d = from_elements(spec, list).padded_batch(2, {.padding_values = {9, 0}});
  datum e;
  REQUIRE(d.next(e));
  CHECK(e[0].dims == extents{2, 2, 2});
  const auto m = e.values<std::int32_t>("m");
  CHECK(std::vector<std::int32_t>(m.begin(), m.end()) == std::vector<std::int32_t>{1, 1, 9, 9, 2, 9, 2, 9});
  CHECK(e["s"].dims == extents{2});
}

TEST_CASE("what cannot be") {
  const auto refused = [](std::int64_t n, const padded_batch_options& how) {
    return message_of(status::invalid_argument, [&] { rows().padded_batch(n, how); });
  };
  CHECK(refused(0, {}).find("at least one") != std::string::npos);
  CHECK(refused(1, {.padded_shapes = {{2}, {2}}}).find("expected one for each of the 1") != std::string::npos);
  CHECK(refused(1, {.padded_shapes = {{2, 2}}}).find("cannot be padded to [2, 2]") != std::string::npos);
  CHECK(refused(1, {.padding_values = {1, 2}}).find("expected one for each") != std::string::npos);
  CHECK(refused(1, {.padding_values = {0.5}}).find("cannot hold 0.5") != std::string::npos);
  CHECK(refused(1, {.padding_values = {1e30}}).find("whole number") != std::string::npos);
}

TEST_CASE("positions") {
  resumes([] { return rows().repeat(3).padded_batch(5); });
}
