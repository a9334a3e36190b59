#include <gradus/store/no_zlib.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <gradus/store/inflate.hpp>
#include <vector>

using namespace gradus;
namespace no_zlib = gradus::detail::no_zlib;

namespace {
std::vector<std::byte> bytes_of(std::string_view s) {
  const auto b = std::as_bytes(std::span(s.data(), s.size()));
  return {b.begin(), b.end()};
}
}  // namespace

TEST_CASE("the checksum is zlib's, in pieces too") {
  CHECK(no_zlib::zip_crc32(bytes_of("123456789")) == 0xcbf43926u);  // the check value of the CRC catalogue
  std::vector<std::byte> data(1000);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * i + 7 * i);
  for (const std::size_t cut : {0u, 1u, 500u, 999u, 1000u}) {
    const auto all = std::span<const std::byte>(data);
    CHECK(no_zlib::zip_crc32(all.subspan(cut), no_zlib::zip_crc32(all.first(cut))) == zip_crc32(data));
  }
}

TEST_CASE("zlib data are recognized without zlib; text and record lengths are not taken for them") {
  for (const int level : {0, 1, 6, 9})
    for (const std::size_t size : {0u, 1u, 100u, 70000u}) {
      std::vector<std::byte> data(size), out;
      for (std::size_t i = 0; i < size; ++i) data[i] = static_cast<std::byte>(i * 37 >> 3);
      deflate_stream stream(false, level);
      stream.write(data, out);
      stream.finish(out);
      CAPTURE(level);
      CAPTURE(size);
      CHECK(no_zlib::is_zlib(out));
      CHECK(is_zlib(out));
    }
  for (const char* words : {"x^2,y\n1,2\n", "x^", "plain text"}) {
    CHECK_FALSE(no_zlib::is_zlib(bytes_of(words)));
    CHECK_FALSE(is_zlib(bytes_of(words)));
  }
  for (const std::uint64_t length : {0x178u, 0x5e78u, 0x9c78u, 0xda78u, 0x01da78u}) {  // of a TFRecord's first record
    std::vector<std::byte> record(40, std::byte{0x5a});
    std::memcpy(record.data(), &length, 8);
    CAPTURE(length);
    CHECK_FALSE(no_zlib::is_zlib(record));
  }
}

TEST_CASE("compressed data are refused by name, to be read and to be written") {
  const auto said = [](auto f) -> std::string {
    try {
      f();
    } catch (const unimplemented& e) {
      return e.what();
    }
    return {};
  };
  std::vector<std::byte> out;
  CHECK(said([] { no_zlib::inflate_state("day_0.gz"); }).starts_with("day_0.gz: compressed data needs zlib"));
  CHECK(said([] { no_zlib::deflate_stream(true); }).starts_with("writing gzip data"));
  CHECK(said([] { no_zlib::deflate_stream(false); }).starts_with("writing zlib data"));
  CHECK(said([&] { no_zlib::inflate_raw({}, 0, out); }).find(".npz") != std::string::npos);
}
