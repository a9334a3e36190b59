#include "gradus/codec/frame.hpp"

#include <doctest/doctest.h>

#include "gradus/codec/flat.hpp"

using namespace gradus;
using detail::byte_sink;
using detail::byte_source;

TEST_CASE("byte_source gives what byte_sink took, little-endian") {
  byte_sink out;
  out.number(std::uint32_t{0x01020304});
  out.number(std::int64_t{-2});
  out.string("name");
  CHECK(out.bytes.size() == 4 + 8 + 4 + 4);
  CHECK(out.bytes[0] == std::byte{4});
  byte_source in(out.bytes);
  CHECK(in.number<std::uint32_t>() == 0x01020304);
  CHECK(in.number<std::int64_t>() == -2);
  CHECK(in.string() == "name");
  CHECK(in.left() == 0);
  CHECK(!in.bad());
  CHECK(in.number<std::uint8_t>() == 0);
  CHECK(in.bad());
}

TEST_CASE("byte_source: a length that lies gives nothing, now and later") {
  byte_sink out;
  out.number(std::uint32_t{0xFFFFFFFF});
  out.raw("abcdefgh");
  byte_source in(out.bytes);
  CHECK(in.string().empty());
  CHECK(in.bad());
  CHECK(in.number<std::uint8_t>() == 0);
  for (const std::uint64_t past : {std::uint64_t{13}, ~std::uint64_t{0}}) {
    byte_source exact(out.bytes);
    CHECK(exact.take(past).empty());
    CHECK(exact.bad());
  }
  CHECK(byte_source(out.bytes).take(12).size() == 12);
}

TEST_CASE("frame: header fields are where the page says") {
  const float w[2] = {1, 2};
  const auto e = flat_binary{}.encode({3, {}, {{"w", float32, {2}, std::as_bytes(std::span(w)), false}}});
  REQUIRE(e.files.size() == 1);
  const auto& pieces = e.files[0].pieces;
  REQUIRE(pieces.size() == 3);
  CHECK(pieces[2].data() == reinterpret_cast<const std::byte*>(w));  // not a copy
  byte_source in(e.owned[0]);
  const auto magic = in.take(8);
  CHECK(std::string_view(reinterpret_cast<const char*>(magic.data()), 8) == "GRADUSCK");
  CHECK(in.number<std::uint32_t>() == 1);
  CHECK(in.number<std::uint32_t>() == 0x01020304);
  const auto name = in.take(16);
  CHECK(std::string_view(reinterpret_cast<const char*>(name.data()), 16) ==
        std::string_view("flat_binary\0\0\0\0\0", 16));
  CHECK(in.number<std::uint64_t>() == e.owned[0].size() - 64);
  CHECK(in.number<std::uint64_t>() == 1);
  CHECK(in.number<std::uint64_t>() == 128 + 8);
}
