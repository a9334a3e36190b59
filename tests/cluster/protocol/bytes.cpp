#include "gradus/cluster/protocol/bytes.hpp"

#include "../../message.hpp"

using namespace gradus;
using namespace gradus::detail;

TEST_CASE("numbers, strings and bytes lie little-endian behind one another, and come back") {
  enum class color : std::uint8_t { red = 3 };
  std::vector<std::byte> b;
  bytes_out out(b);
  const std::byte two[] = {std::byte{8}, std::byte{9}};
  out.number(std::uint16_t{0x0102});
  out.string("ab");
  out.bytes(two);
  out.number(color::red);
  const unsigned char expected[] = {2, 1, 2, 0, 0, 0, 'a', 'b', 2, 0, 0, 0, 0, 0, 0, 0, 8, 9, 3};
  REQUIRE(b.size() == sizeof expected);
  CHECK(std::memcmp(b.data(), expected, sizeof expected) == 0);
  bytes_in in(b, "thing");
  CHECK(in.number<std::uint16_t>() == 0x0102);
  CHECK(in.string() == "ab");
  const auto back = in.bytes();
  CHECK((back.size() == 2 && back[0] == two[0] && back[1] == two[1]));
  CHECK(in.left() == 1);
  CHECK(message_of(status::data_loss, [&] { in.end(); }) == "malformed thing: 1 bytes are left behind its end");
  CHECK(in.number<color>() == color::red);
  in.end();
  CHECK(message_of(status::data_loss, [&] { in.number<std::uint32_t>(); }) ==
        "malformed thing: expected 4 more bytes, and 0 are left");
}

TEST_CASE("large arrays are left where they are, between what is copied") {
  const std::vector<std::byte> large(gathered_bytes::left_in_place, std::byte{5}),
      small(large.size() - 1, std::byte{6});
  gathered_bytes gathered;
  std::vector<std::byte> copied;
  for (int i = 0; i < 2; ++i) {
    gathered.clear(), copied.clear();
    for (bytes_out out : {bytes_out(gathered), bytes_out(copied)}) {
      out.lent_bytes(large);
      out.string("ab");
      out.lent_bytes(small);
      out.lent_bytes(large);
      out.bytes(large);
    }
    std::vector<std::byte> joined;
    int in_place = 0;
    for (const auto p : gathered.pieces()) {
      joined.insert(joined.end(), p.begin(), p.end());
      in_place += p.data() == large.data();
    }
    CHECK(joined == copied);
    CHECK(in_place == 2);
    CHECK(gathered.pieces().size() == 5);
  }
}

TEST_CASE("lengths are not believed") {
  std::vector<std::byte> b;
  bytes_out out(b);
  out.number(std::uint64_t{1} << 40);
  bytes_in long_bytes(b, "thing");
  CHECK(message_of(status::data_loss, [&] { long_bytes.bytes(); }) ==
        "malformed thing: expected 1099511627776 more bytes, and 0 are left");
  b.clear();
  out.number(std::uint32_t{4});
  out.number(std::uint64_t{0}), out.number(std::uint64_t{0}), out.number(std::uint64_t{0});
  bytes_in four(b, "thing");
  CHECK(four.count(6) == 4);
  bytes_in too_many(b, "thing");
  CHECK(message_of(status::data_loss, [&] { too_many.count(7); }) ==
        "malformed thing: it says that 4 entries follow, and 24 bytes are left");
}
