#include "gradus/codec/flat.hpp"

#include <fstream>
#include <sstream>

#include "codec_suite.hpp"

using namespace codec_suite;

TEST_CASE("flat_binary: the codec suite") { check<flat_binary>(); }

namespace {
std::string hex_dump(const file_bytes& file) {
  std::string out;
  char piece[32];
  for (std::size_t row = 0; row < file.size(); row += 16) {
    std::snprintf(piece, sizeof piece, "%06zx ", row);
    out += piece;
    std::string text;
    for (std::size_t i = row; i < row + 16; ++i) {
      if (i < file.size()) {
        const auto b = std::to_integer<unsigned>(file[i]);
        std::snprintf(piece, sizeof piece, " %02x", b);
        out += piece;
        b >= 0x20 && b < 0x7F ? text += static_cast<char>(b) : text += "·";  // a dot would look like one
      } else {
        out += "   ";
      }
    }
    out += "  " + text + "\n";
  }
  return out;
}
// The worked example of docs/formats/checkpoint.md.
file_bytes example() {
  static constexpr float w[] = {1.0f, -2.0f};
  static constexpr std::int64_t step[] = {5};
  snapshot s;
  s.step = 5;
  s.about = {{"codec", "flat_binary"}, {"library", "gradus 0.1.0"}};
  s.records = {{"w", float32, {2}, bytes(w), false}, {"global_step", int64, {}, bytes(step), false}};
  return joined(flat_binary{}.encode(s));
}
std::string refusal(file_bytes forged) {
  seal(forged);
  return decode_bytes(flat_binary{}, forged).problem;
}
}  // namespace

TEST_CASE("flat_binary: the page's hex dump is what we write") {
  std::string path = __FILE__;
  path.replace(path.rfind("tests/codec/"), std::string::npos, "docs/formats/checkpoint.md");
  std::ifstream page(path);
  REQUIRE_MESSAGE(page.good(), path);
  std::stringstream text;
  text << page.rdbuf();
  const auto dump = hex_dump(example());
  CHECK_MESSAGE(text.str().find(dump) != std::string::npos, "docs/formats/checkpoint.md should hold\n" << dump);
}

TEST_CASE("flat_binary: each forgery is named") {
  const auto file = example();
  REQUIRE(decode_bytes(flat_binary{}, file).ok());
  // Offsets in the worked example: see the page.
  const std::size_t metadata_count = 0x48, first_key = 0x4c, tensor_count = 0x7f, name = 0x83, type = 0x88, blob = 0x89,
                    rank = 0x8a, extent = 0x8c, offset = 0x94, length = 0x9c;
  const auto with = [&file](std::size_t at, auto n) {
    auto forged = file;
    poke(forged, at, n);
    return refusal(forged);
  };
  REQUIRE(peek<std::uint32_t>(file, metadata_count) == 2);
  REQUIRE(peek<std::uint32_t>(file, tensor_count) == 2);
  REQUIRE(peek<std::uint64_t>(file, offset) == 0x100);
  const std::string past = "a length in its manifest reaches past the manifest's end";
  CHECK(with(metadata_count, 0xFFFFFFFFu) == past);
  CHECK(with(first_key, 0xFFFFFFFFu) == past);
  CHECK(with(tensor_count, 0xFFFFFFFFu) == past);
  CHECK(with(tensor_count, 1u).find("bytes too many") != std::string::npos);
  CHECK(with(name, 0xFFFFFFFFu) == past);
  CHECK(with(type, std::uint8_t{7}) == "\"w\" has the unknown dtype 7");
  CHECK(with(blob, std::uint8_t{2}) == "\"w\" has flags that were never written by this library");
  CHECK(with(rank, std::uint8_t{7}) == "\"w\" has rank 7, at most 6 is known");
  CHECK(with(extent, std::int64_t{3}) == "\"w\" is float32[3], which takes 12 bytes, but has 8");
  CHECK(with(extent, std::int64_t{-2}) == "\"w\" has impossible extents [-2]");
  CHECK(with(extent, INT64_MAX) == "\"w\" has impossible extents [9223372036854775807]");
  CHECK(with(offset, std::uint64_t{0x140}) == "\"w\" claims to begin at 320, where 256 is its place");
  CHECK(with(offset, std::uint64_t{0}) == "\"w\" claims to begin at 0, where 256 is its place");
  CHECK(with(length, ~std::uint64_t{0}) ==
        "\"w\" claims 18446744073709551615 bytes from 256 on, which is past the end of the file");
  CHECK(with(length, std::uint64_t{4}) == "the checksum of \"w\" does not fit its bytes (256 to 259)");
  CHECK(with(32, ~std::uint64_t{0}) == "its manifest claims 18446744073709551615 bytes, where 264 are left");
  CHECK(with(40, std::uint64_t{3}) == "the header counts 3 tensors, the manifest 2");
  CHECK(with(48, ~std::uint64_t{0}) == "it is truncated: 328 of 18446744073709551615 bytes");
  CHECK(with(48, std::uint64_t{64}) == "it has 264 bytes after its end at 64");
  auto padded = file;
  padded[0x108] = std::byte{1};
  CHECK(refusal(padded) == "the padding before \"global_step\" is damaged (264 to 319)");
  auto longer = file;
  longer.resize(file.size() + 8);
  poke<std::uint64_t>(longer, 48, longer.size());
  CHECK(refusal(longer) == "8 bytes belong to no tensor");
  auto tensor = file;
  tensor[0x100] ^= std::byte{1};
  CHECK(refusal(tensor) == "the checksum of \"w\" does not fit its bytes (256 to 263)");
  auto manifest = file;
  manifest[0x50] ^= std::byte{1};
  CHECK(decode_bytes(flat_binary{}, manifest).problem == "the manifest's checksum does not fit its bytes (64 to 206)");
  auto header = file;
  header[33] ^= std::byte{1};
  CHECK(decode_bytes(flat_binary{}, header).problem == "the header's checksum does not fit its bytes (0 to 63)");
}
