#include "gradus/codec/bundle_entry.hpp"

#include "bundle_files.hpp"

using namespace bundle_test;
using namespace gradus::detail;

// bundle_decode.cpp forges what is read here; these are TensorFlow's bytes.
TEST_CASE("bundle_entry: TensorFlow's bytes, both ways") {
  CHECK(hex_of(bundle_header_bytes(1)) == "08011a020801");
  int shards = 0;
  status kind{};
  CHECK(read_bundle_header(bundle_header_bytes(300), shards, kind) == "");
  CHECK(shards == 300);

  bundle_entry power;  // beta2_power of a real checkpoint
  const auto golden = hex("08 01 12 00 20 04 28 04 35 b4 b2 37 74");
  CHECK(read_bundle_entry(golden, power) == "");
  CHECK(power.type == 1);
  CHECK(power.dims.empty());
  CHECK(power.offset == 4);
  CHECK(power.size == 4);
  CHECK(power.crc == 0x7437b2b4);
  CHECK(bytes_of(power) == golden);

  bundle_entry whole;  // [10, 2] in two slices of five rows
  const auto sliced = hex("08 01 12 08 12 02 08 0a 12 02 08 02 3a 06 0a 02 10 05 0a 00 3a 08 0a 04 08 05 10 05 0a 00");
  CHECK(read_bundle_entry(sliced, whole) == "");
  CHECK(whole.dims == std::vector<std::int64_t>{10, 2});
  REQUIRE(whole.slices.size() == 2);
  CHECK(whole.slices[1][0].start == 5);
  CHECK(whole.slices[1][0].length == 5);
  CHECK(whole.slices[1][1].length == -1);
  CHECK(bytes_of(whole) == sliced);
  CHECK(hex_of(bytes(bundle_slice_key("emb/w", whole.slices[1]))) == "00656d622f77000101028585807f");
}

// A fuzzer found that a number behind our version in the packed list was never passed over: the reader hung.
TEST_CASE("bundle_entry: readers that the header excludes, one by one and packed, ours anywhere among them") {
  const auto refused = [](std::string_view version) {
    int shards = 0;
    status kind{};
    const auto said = read_bundle_header(hex("08 01 1a " + std::string(version)), shards, kind);
    CHECK(kind == status::failed_precondition);
    return said;
  };
  const std::string excluded = "it needs readers of format version 0 other than 1";
  CHECK(refused("02 18 01") == excluded);
  CHECK(refused("04 18 01 18 02") == excluded);
  CHECK(refused("03 1a 01 01") == excluded);
  CHECK(refused("04 1a 02 02 01") == excluded);
  CHECK(refused("04 1a 02 01 02") == excluded);
  CHECK(refused("05 1a 03 01 01 01") == excluded);
  CHECK(refused("04 1a 02 02 03").empty());
}

TEST_CASE("bundle_entry: fields in any order, twice, of other types, and unknown ones") {
  bundle_entry e;
  // size before dtype; dtype twice, the last counts; a shape in two pieces is one; field 9 of each wire type; a name
  // of an extent; a shard of the wrong wire type
  const auto odd =
      hex("28 08 08 02 08 01 12 04 12 02 08 02 12 05 12 03 12 01 78 48 05 49 01 02 03 04 05 06 07 08 4a 01 00 4d 01 02 "
          "03 04"
          "1d 01 00 00 00");
  CHECK(read_bundle_entry(odd, e) == "");
  CHECK(e.type == 1);
  CHECK(e.size == 8);
  CHECK(e.shard == 0);
  CHECK(e.dims == std::vector<std::int64_t>{2, 0});
  std::uint64_t n = 1;
  CHECK(elements_of(e, n));
  CHECK(n == 0);
}

TEST_CASE("bundle_entry: strings of many lengths") {
  const std::string a(200, 'x'), b, c("\0\xff", 2);
  const std::vector<std::span<const std::byte>> all{bytes(a), bytes(b), bytes(c)};
  std::uint32_t crc = 0, read_crc = 1;
  auto packed = bundle_string_head(all, crc);
  CHECK(packed.size() == 4 + 4);
  for (const auto s : all) packed.insert(packed.end(), s.begin(), s.end());
  std::vector<std::span<const std::byte>> back;
  CHECK(read_bundle_strings(packed, 3, read_crc, &back) == "");
  CHECK(read_crc == crc);
  REQUIRE(back.size() == 3);
  CHECK(std::string(as_chars(back[0])) == a);
  CHECK(back[1].empty());
  CHECK(std::string(as_chars(back[2])) == c);
  // A length is summed up as 4 bytes, and as 8 if it needs them.
  const std::uint32_t four = 5;
  const std::uint64_t eight = std::uint64_t{5} << 32;
  CHECK(extend_by_length(7, four) == extend(7, std::as_bytes(std::span(&four, 1))));
  CHECK(extend_by_length(7, eight) == extend(7, std::as_bytes(std::span(&eight, 1))));
}

TEST_CASE("bundle_entry: widths of TensorFlow's types") {
  const std::pair<int, std::size_t> widths[] = {{1, 4},  {2, 8},   {3, 4},  {4, 1},  {5, 2},  {6, 1},  {7, 0},  {8, 8},
                                                {9, 8},  {10, 1},  {11, 1}, {12, 1}, {13, 4}, {14, 2}, {15, 2}, {16, 2},
                                                {17, 2}, {18, 16}, {19, 2}, {20, 0}, {21, 0}, {22, 4}, {23, 8}, {24, 1},
                                                {25, 1}, {26, 0},  {29, 1}, {30, 1}, {31, 0}, {-1, 0}};
  for (const auto& [type, width] : widths) CHECK_MESSAGE(bundle_width(type) == width, type);
  for (const dtype t : {float32, float64, int32, int64, uint8, boolean, float16, bfloat16})
    CHECK(bundle_width(static_cast<int>(t)) == size_of(t));
}
