#include <gradus/input/position.hpp>

#include "pipelines.hpp"

using namespace pipelines;

TEST_CASE("numbers are 8 bytes, little-endian") {
  std::vector<std::byte> out;
  position_writer to(out);
  to.number(0x0102030405060708);
  to.number(-2);
  const std::uint8_t expected[] = {8, 7, 6, 5, 4, 3, 2, 1, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
  REQUIRE(out.size() == sizeof expected);
  CHECK(std::memcmp(out.data(), expected, sizeof expected) == 0);
  position_reader from(out, true);
  CHECK(from.number(0, INT64_MAX, "a") == 0x0102030405060708);
  CHECK(from.number(-2, 0, "b") == -2);
  CHECK(from.left() == 0);
}

TEST_CASE("what cannot be is refused") {
  std::vector<std::byte> out;
  position_writer(out).number(11);
  CHECK(message_of(status::data_loss, [&] { position_reader(out, false).number(0, 10, "the next element"); }) ==
        "the saved input position is damaged: expected the next element from 0 to 10, found 11");
  CHECK(message_of(status::data_loss, [&] {
          position_reader(std::span(out).first(7), false).number(0, 20, "the round");
        }) == "the saved input position is damaged: expected 8 bytes for the round, found 7");
}
