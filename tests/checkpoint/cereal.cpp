#include "gradus/checkpoint/cereal.hpp"

#include "codec_suite.hpp"
#include "gradus/checkpoint/flat.hpp"

using namespace codec_suite;

TEST_CASE("cereal_binary: the codec suite") { check<cereal_binary>(); }

TEST_CASE("cereal_binary: a program that has only cereal can read the manifest") {
  const auto file = joined(cereal_binary{}.encode(small()));
  std::istringstream stream(
      std::string(reinterpret_cast<const char*>(file.data()) + 64, peek<std::uint64_t>(file, 32)));
  cereal::PortableBinaryInputArchive archive(stream);
  std::uint32_t layout = 0;
  std::int64_t step = 0;
  std::map<std::string, std::string> about;
  struct entry {
    std::string name;
    std::uint8_t type, blob;
    std::vector<std::int64_t> dims;
    std::uint64_t offset, bytes;
    std::uint32_t crc;
    void serialize(cereal::PortableBinaryInputArchive& a) { a(name, type, blob, dims, offset, bytes, crc); }
  };
  std::vector<entry> entries;
  archive(layout, step, about, entries);
  CHECK(layout == 1);
  CHECK(step == 7);
  CHECK(about == small().about);
  REQUIRE(entries.size() == 6);
  CHECK(entries[0].name == "w");
  CHECK(entries[0].dims == std::vector<std::int64_t>{2, 3});
  CHECK(std::memcmp(file.data() + entries[0].offset, weights, sizeof weights) == 0);
  CHECK(stream.peek() == EOF);
}

TEST_CASE("cereal_binary: what cereal itself would believe is refused") {
  const auto file = joined(cereal_binary{}.encode(small()));
  const auto with = [&file](std::size_t at, auto n) {
    auto forged = file;
    poke(forged, at, n);
    seal(forged);
    return decode_bytes(cereal_binary{}, forged).problem;
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
