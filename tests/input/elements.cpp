#include <gradus/input/elements.hpp>

#include <gradus/input/dataset.hpp>

#include "data.hpp"

using namespace data_tests;

TEST_CASE("rows of a datum, the datum, a list") {
  datum d({{"value", int64, {3}}, {"x", float32, {3, 2}}});
  d.values<std::int64_t>(0)[2] = 9;
  d.values<float>(1)[5] = 0.5F;
  auto rows = from_tensor_slices(d);
  CHECK(to_text(rows.element_spec()) == "value int64 [], x float32 [2]");
  CHECK(rows.cardinality() == 3);
  datum e;
  for (int i = 0; i < 3; ++i) REQUIRE(rows.next(e));
  CHECK(value_of(e) == 9);
  CHECK(e.values<float>("x")[1] == 0.5F);
  CHECK(!rows.next(e));
  auto whole = from_tensors(d);
  REQUIRE(whole.next(e));
  CHECK(e == d);
  CHECK(!whole.next(e));
  d.resize(1, {2, 2});
  CHECK(message_of(status::invalid_argument, [&] { from_tensor_slices(d); }).find("\"x\" [2, 2]") != std::string::npos);
  CHECK(message_of(status::invalid_argument, [] { from_tensor_slices(datum(scalar)); }).find("of one length") !=
        std::string::npos);
  std::vector<datum> list(2, datum(vectors));
  list[1].resize(0, {4});
  CHECK(lists_of(from_elements(vectors, list)) == std::vector<ints>{{}, {0, 0, 0, 0}});
  CHECK(message_of(status::invalid_argument, [&] {
          from_elements(scalar, list);
        }).starts_with("from_elements: expected"));
  resumes([&] { return from_elements(vectors, list).repeat(3); });
}
