#include "gradus/codec/codec.hpp"

#include <doctest/doctest.h>

using namespace gradus;

TEST_CASE("bytes_of: extents are multiplied with care") {
  std::uint64_t n = 0;
  const auto bytes = [&n](dtype t, const extents& e) { return detail::bytes_of(t, e, n); };
  CHECK(bytes(float32, {}));
  CHECK(n == 4);
  CHECK(bytes(float64, {3, 5}));
  CHECK(n == 120);
  CHECK(bytes(int64, {0, 7}));
  CHECK(n == 0);
  CHECK(bytes(uint8, {INT64_MAX}));
  CHECK(!bytes(float32, {std::int64_t{1} << 62}));
  CHECK(!bytes(uint8, {std::int64_t{1} << 32, std::int64_t{1} << 32}));
  // A zero does not excuse an overflow elsewhere.
  CHECK(!bytes(float32, {0, std::int64_t{1} << 62, std::int64_t{1} << 62}));
  CHECK(!bytes(float32, {-1, -1}));
  CHECK(!bytes(dtype::none, {}));
  CHECK(!bytes(static_cast<dtype>(7), {1}));
}

TEST_CASE("duplicate_name") {
  std::vector<record> records(3);
  records[0].name = "b", records[1].name = "a", records[2].name = "c";
  CHECK(detail::duplicate_name(records).empty());
  records[2].name = "b";
  CHECK(detail::duplicate_name(records) == "b");
}

TEST_CASE("problem_of: a blob is a row of bytes") {
  const std::byte bytes[4] = {};
  CHECK(detail::problem_of({"b", uint8, {4}, bytes, true}).empty());
  CHECK(detail::problem_of({"b", float32, {1}, bytes, true}) == "the blob \"b\" is not a row of uint8");
  CHECK(detail::problem_of({"b", uint8, {2, 2}, bytes, true}) == "the blob \"b\" is not a row of uint8");
}
