#include "gradus/store/varint.hpp"

#include <doctest/doctest.h>

using namespace gradus::detail;

namespace {
std::vector<std::byte> made_of(std::initializer_list<int> values) {
  std::vector<std::byte> out;
  for (const int v : values) out.push_back(static_cast<std::byte>(v));
  return out;
}
}  // namespace

TEST_CASE("varint: the bytes that protobuf's documentation gives, and back") {
  std::vector<std::byte> out;
  put_varint(out, 150);
  CHECK(out == made_of({0x96, 0x01}));
  out.clear();
  put_varint(out, ~std::uint64_t{0});
  CHECK(out == made_of({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}));
  for (int bit = 0; bit < 64; ++bit)
    for (const std::uint64_t n : {std::uint64_t{1} << bit, (std::uint64_t{1} << bit) - 1}) {
      out.clear();
      put_varint(out, n);
      varint_source in(out);
      CHECK(in.varint() == n);
      CHECK(!in.bad());
      CHECK(in.done());
    }
}

TEST_CASE("varint: what does not end, or does not fit, is bad for good") {
  for (const auto& broken : {made_of({}), made_of({0x80}), made_of({0xff, 0xff}),
                             made_of({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02}),
                             made_of({0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00})}) {
    varint_source in(broken);
    CHECK(in.varint() == 0);
    CHECK(in.bad());
    CHECK(in.take(0).empty());
    CHECK(in.left() == 0);
  }
  const auto large = made_of({0x80, 0x80, 0x80, 0x80, 0x10, 7});  // 2^32
  varint_source in(large);
  CHECK(in.varint32() == 0);
  CHECK(in.bad());
  varint_source other(large);
  CHECK(other.varint() == std::uint64_t{1} << 32);
  CHECK(other.fixed<std::uint8_t>() == 7);
  CHECK(!other.bad());
  CHECK(other.fixed<std::uint32_t>() == 0);
  CHECK(other.bad());
}
