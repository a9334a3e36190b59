#include "gradus/codec/cereal.hpp"
#include "gradus/codec/manifest.hpp"

#include "codec_suite.hpp"
#include "gradus/codec/flat.hpp"

using namespace codec_suite;

namespace {

std::string manifest_of(const file_bytes& file) {
  return {reinterpret_cast<const char*>(file.data()) + 64, peek<std::uint64_t>(file, 32)};
}
struct binary_entry {
  std::string name;
  std::uint8_t type, blob;
  std::vector<std::int64_t> dims;
  std::uint64_t offset, bytes;
  std::uint32_t crc;
  template <class Archive>
  void serialize(Archive& a) {
    a(name, type, blob, dims, offset, bytes, crc);
  }
};
template <class Codec, class Archive>
void check_with_cereal_alone(std::uint32_t expected_layout) {
  const auto file = joined(Codec{}.encode(small()));
  std::istringstream stream(manifest_of(file));
  Archive archive(stream);
  std::uint32_t layout = 0;
  std::int64_t step = 0;
  std::map<std::string, std::string> about;
  std::vector<binary_entry> entries;
  archive(layout, step, about, entries);
  CHECK(layout == expected_layout);
  CHECK(step == 7);
  CHECK(about == small().about);
  REQUIRE(entries.size() == 6);
  CHECK(entries[0].name == "w");
  CHECK(entries[0].dims == std::vector<std::int64_t>{2, 3});
  CHECK(std::memcmp(file.data() + entries[0].offset, weights, sizeof weights) == 0);
  CHECK(stream.peek() == EOF);
}

}  // namespace

TEST_CASE("cereal_binary: the codec suite") { check<cereal_binary>(); }
TEST_CASE("cereal_portable: the codec suite") { check<cereal_portable>(); }

TEST_CASE("a program that has only cereal can read the manifest") {
  check_with_cereal_alone<cereal_binary, cereal::BinaryInputArchive>(2);
  check_with_cereal_alone<cereal_portable, cereal::PortableBinaryInputArchive>(1);
}

TEST_CASE("cereal_binary: files of version 0.3, which hold a PortableBinary archive, are read") {
  // Step 5, metadata k = v, w = float32[2] {1, -2}, by gradus 0.3.0.
  constexpr std::string_view hex =
      "475241445553434b010000000403020163657265616c5f62696e6172790000005e000000000000000100000000000000c8000000000000"
      "00802b12a2496dcd9401010000000500000000000000010000000000000001000000000000006b01000000000000007601000000000000"
      "00010000000000000077010001000000000000000200000000000000c0000000000000000800000000000000c9f236aa00000000000000"
      "0000000000000000000000000000000000000000000000000000000000803f000000c0";
  file_bytes file;
  const auto digit = [](char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10); };
  for (std::size_t i = 0; i < hex.size(); i += 2) file.push_back(std::byte(digit(hex[i]) << 4 | digit(hex[i + 1])));
  const auto d = decode_bytes(cereal_binary{}, file);
  REQUIRE_MESSAGE(d.ok(), d.problem);
  CHECK(d.content.step == 5);
  CHECK(d.content.about == metadata{{"k", "v"}});
  REQUIRE(d.content.records.size() == 1);
  const float expected[] = {1, -2};
  CHECK(std::memcmp(d.content.records[0].bytes.data(), expected, sizeof expected) == 0);
  CHECK(decode_bytes(cereal_portable{}, file).kind == status::failed_precondition);
}

TEST_CASE("cereal: what it would itself believe is refused") {
  const auto file = joined(cereal_portable{}.encode(small()));
  const auto with = [&file](std::size_t at, auto n) {
    auto forged = file;
    poke(forged, at, n);
    seal(forged);
    return decode_bytes(cereal_portable{}, forged).problem;
  };
  const std::string past = "a length in its manifest reaches past the manifest's end";
  CHECK(with(64, std::uint8_t{0}) == "its manifest is no little-endian PortableBinary archive");
  CHECK(with(64, std::uint8_t{7}) == "its manifest is no little-endian PortableBinary archive");
  CHECK(with(65, 2u) == "its manifest has layout 2, expected 1");
  CHECK(with(77, std::uint64_t{1} << 62) == past);  // the map's count
  CHECK(with(85, std::uint64_t{1} << 63) == past);  // the first key's length
}

TEST_CASE("the codecs name each other") {
  const auto file = joined(cereal_binary{}.encode(small()));
  CHECK(decode_bytes(flat_binary{}, file).problem ==
        "it was written by the codec \"cereal_binary\", and is read here by \"flat_binary\"; name the codec that wrote "
        "it");
}
