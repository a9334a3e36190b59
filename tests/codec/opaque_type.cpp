#include "gradus/codec/opaque_type.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace gradus;
using namespace gradus::detail;

TEST_CASE("opaque_type: a kind is text and comes back; other text is none") {
  for (const opaque_kind& k : {opaque_kind{"complex64", {}}, opaque_kind{"<U5", {0}}, opaque_kind{"a[b]", {2, 3}},
                               opaque_kind{"[('a', '<f4')]", {std::int64_t{1} << 62, 1, 1, 1, 1, 1, 1}}}) {
    opaque_kind back;
    CHECK(opaque_kind_of(opaque_text(k), back));
    CHECK(back == k);
  }
  for (const char* other : {"", "[", "[]", "x", "x[", "x[1", "x[-1]", "x[1,2]", "x[1, ]", "x[1 2]", "x[1]y", "x[1.0]",
                            "x[99999999999999999999]"}) {
    opaque_kind back;
    CHECK_MESSAGE(!opaque_kind_of(other, back), other);
  }
}

TEST_CASE("opaque_type: bytes are held against the shape where the type says how many an element has") {
  CHECK(opaque_bits("complex64") == 64);
  CHECK(opaque_bits("float4") == 4);
  CHECK(opaque_bits("float32") == 32);  // of a rank above 6
  CHECK(opaque_bits("<U5") == 160);
  CHECK(opaque_bits("|S7") == 56);
  CHECK(opaque_bits(">M8[ns]") == 64);
  for (const char* open : {"variant", "|O", "DT_99", "<U", "<U5x", "U5", "<V99999999999", "", "[('a', '<f4')]"})
    CHECK_MESSAGE(opaque_bits(open) == 0, open);
  constexpr std::int64_t huge = INT64_MAX;
  CHECK(problem_of({"complex64", {2, 3}}, 48).empty());
  CHECK(problem_of({"complex64", {2, 3}}, 47) == "is complex64[2, 3], and its 47 bytes are not what that takes");
  CHECK(problem_of({"float4", {3}}, 2) != "");
  CHECK(problem_of({"float4", {4}}, 2).empty());
  CHECK(problem_of({"complex64", {huge, huge}}, 8) != "");
  CHECK(problem_of({"complex64", {huge, huge, 0}}, 0).empty());
  CHECK(problem_of({"complex64", {-1}}, 8) == "has an extent of -1");
  CHECK(problem_of({"DT_99", {5}}, 3).empty());
  CHECK(problem_of({"", {5}}, 3) == "has no type");
}

TEST_CASE("opaque_type: every name is one type's, and none is a dtype's") {
  std::set<std::string_view> names;
  for (const auto& t : opaque_types) {
    CHECK(names.insert(t.name).second);
    CHECK(dtype_named(t.name) == dtype::none);
  }
  CHECK(dtype_named("uint16") == uint16);
  CHECK(dtype_named("none") == dtype::none);
}
