#include <gradus/input/example_message.hpp>
#include <gradus/store/wire.hpp>

#include <doctest/doctest.h>

#include "example_bytes.hpp"

using namespace gradus;
using example_bytes::hex;

namespace {
std::vector<std::int64_t> ints_of(std::string_view bytes) {
  const auto message = hex(bytes);
  feature f{.name = {}, .kind = feature_kind::int64};
  detail::append_values(detail::feature_message(message), f);
  return f.ints;
}
std::vector<float> floats_of(std::string_view bytes) {
  const auto message = hex(bytes);
  feature f{.name = {}};
  detail::append_values(detail::feature_message(message), f);
  return f.floats;
}
}  // namespace

TEST_CASE("lists, packed, not packed, in pieces") {
  using longs = std::vector<std::int64_t>;
  CHECK(ints_of("1a 03 0a 01 03") == longs{3});
  CHECK(ints_of("1a 04 08 03 08 04") == longs{3, 4});
  CHECK(ints_of("1a 09 0a 03 ac 02 00 08 05 0a 00") == longs{300, 0, 5});
  CHECK(ints_of("1a 03 0a 01 03 1a 03 0a 01 04") == longs{3, 4});  // one message in two pieces: merged
  CHECK(ints_of("12 00 1a 03 0a 01 03") == longs{3});              // the last kind counts
  CHECK(ints_of("1a 0c 0a 0a ff ff ff ff ff ff ff ff ff 01") == longs{-1});
  CHECK(ints_of("1a 05 0a 01 03 50 01") == longs{3});  // a field that nobody knows
  CHECK(floats_of("12 0a 0a 08 00 00 80 3f 00 00 00 c0") == std::vector<float>{1, -2});
  CHECK(floats_of("12 0b 0d 00 00 80 3f 0a 04 00 00 00 c0") == std::vector<float>{1, -2});
  CHECK(detail::feature_message(hex("")).missing());
  CHECK(detail::feature_message(hex("50 01")).missing());
  CHECK_FALSE(detail::feature_message(hex("12 00")).missing());
}

TEST_CASE("malformed lists") {
  CHECK_THROWS_WITH_AS(floats_of("12 05 0a 03 00 00 80"), "malformed protobuf message: 3 bytes of packed floats",
                       data_loss);
  for (const auto bad : {"1a 03 0a 01 80", "1a 0d 0a 0b ff ff ff ff ff ff ff ff ff ff 01", "1a 03 0a 02 01"})
    CHECK_THROWS_AS(ints_of(bad), data_loss);
}

TEST_CASE("an array counts what finds no room") {
  float two[2] = {};
  detail::into_array<float> to{two};
  const auto message = hex("0a 0c 00 00 80 3f 00 00 00 40 00 00 40 40");
  detail::read_floats(wire_reader(message), to);
  CHECK(to.n == 3);
  CHECK(two[1] == 2);
  detail::read_floats(wire_reader(message), to);
  CHECK(to.n == 6);
}

TEST_CASE("messages of the keys that are wanted, the last of each; maps in pieces are one") {
  const example_spec spec{{"k", var_len_feature{int64}}, {"none", var_len_feature{int64}}};
  detail::wanted_messages found(spec);
  // Two Features messages by protoc, k: [1.0] and k: [7].
  const auto message =
      hex("0a 0f 0a 0d 0a 01 6b 12 08 12 06 0a 04 00 00 80 3f 0a 0c 0a 0a 0a 01 6b 12 05 1a 03 0a 01 07");
  found.add_all(message, 1);
  CHECK(found.has(0));
  CHECK(found.feature(0).kind() == feature_kind::int64);
  CHECK_FALSE(found.has(1));
  CHECK(found.feature(1).missing());
  found.clear();
  CHECK_FALSE(found.has(0));
}
