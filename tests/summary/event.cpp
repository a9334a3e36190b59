#include <doctest/doctest.h>

#include <cmath>
#include <gradus/store/record.hpp>
#include <gradus/summary/event.hpp>
#include <limits>

using namespace gradus;

namespace {

using bytes = std::vector<std::byte>;

bytes hex(std::string_view s) {
  bytes out;
  int high = -1;
  for (char c : s) {
    if (c == ' ' || c == '\n') continue;
    const int digit = c <= '9' ? c - '0' : c - 'a' + 10;
    if (high < 0) {
      high = digit;
    } else {
      out.push_back(static_cast<std::byte>(high * 16 + digit));
      high = -1;
    }
  }
  return out;
}
bytes scalars(double wall_time, std::int64_t step, std::vector<scalar_value> values) {
  bytes out;
  encode_scalars(out, wall_time, step, values);
  return out;
}
bytes encoded(const event& e) {
  bytes out;
  encode_event(out, e);
  return out;
}

}  // namespace

TEST_CASE("the bytes of TensorFlow 1.x") {
  bytes out;
  encode_version(out, 1.5);
  CHECK(out == hex("09 00 00 00 00 00 00 f8 3f  1a 0d 62 72 61 69 6e 2e 45 76 65 6e 74 3a 32"));
  CHECK(scalars(2.0, 7, {{"loss", 0.25f}}) ==
        hex("09 00 00 00 00 00 00 00 40 10 07  2a 0d  0a 0b  0a 04 6c 6f 73 73  15 00 00 80 3e"));
  // A record of a real file of TensorFlow 1.14, but for its time.
  const bytes real = scalars(2.0, 1001, {{"loss", 133.184295654296875f}});
  CHECK(real == hex("09 00 00 00 00 00 00 00 40 10 e9 07 2a 0d 0a 0b 0a 04 6c 6f 73 73 15 2e 2f 05 43"));
  CHECK(real.size() == 27);
  out.clear();
  encode_session_log(out, 3.0, 9, session_log_status::start);
  CHECK(out == hex("09 00 00 00 00 00 00 08 40 10 09 3a 02 08 01"));
  out.clear();
  encode_session_log(out, 3.0, 9, session_log_status::checkpoint, "m/model.ckpt");
  CHECK(out == hex("09 00 00 00 00 00 00 08 40 10 09 3a 10 08 03 12 0c 6d 2f 6d 6f 64 65 6c 2e 63 6b 70 74"));
  out.clear();
  encode_graph(out, 1.5, 0, hex("22 03 08 86 01"));
  CHECK(out == hex("09 00 00 00 00 00 00 f8 3f 22 05 22 03 08 86 01"));
}

TEST_CASE("a scalar of value zero is a point; step zero is not written") {
  CHECK(scalars(2.0, 0, {{"a", 0.0f}}) == hex("09 00 00 00 00 00 00 00 40 2a 0a 0a 08 0a 01 61 15 00 00 00 00"));
  const event e = decode_event(scalars(2.0, 0, {{"a", 0.0f}, {"b", -0.0f}}));
  REQUIRE(e.values.size() == 2);
  CHECK(e.values[0].kind == value_kind::simple_value);
  CHECK(std::signbit(e.values[1].simple_value));
  CHECK(e.step == 0);
}

TEST_CASE("what is written is read") {
  const float inf = std::numeric_limits<float>::infinity();
  event e = decode_event(scalars(1.7e9, -3, {{"a", NAN}, {"b", inf}, {"c/d", 1e-45f}}));
  CHECK(e.wall_time == 1.7e9);
  CHECK(e.step == -3);
  CHECK(e.what == event_kind::summary);
  REQUIRE(e.values.size() == 3);
  CHECK(std::isnan(e.values[0].simple_value));
  CHECK(e.values[1].simple_value == inf);
  CHECK(e.values[2].tag == "c/d");
  CHECK(e.values[2].simple_value == 1e-45f);

  bytes out;
  encode_session_log(out, 4.0, 10, session_log_status::stop, "p", "why");
  e = decode_event(out);
  CHECK(e.what == event_kind::session_log);
  CHECK(e.log == session_log{session_log_status::stop, "p", "why"});
  out.clear();
  encode_version(out, 0);
  e = decode_event(out);
  CHECK(e.what == event_kind::file_version);
  CHECK(e.file_version == "brain.Event:2");
  CHECK(decode_event({}) == event{});

  // Every kind, through the general door.
  for (int kind = 0; kind <= 9; ++kind) {
    if (kind == 1 || kind == 2) continue;
    event x;
    x.wall_time = 0.1;
    x.step = std::int64_t{1} << 40;
    x.what = static_cast<event_kind>(kind);
    if (x.what == event_kind::file_version) x.file_version = "brain.Event:2";
    if (x.what == event_kind::session_log) x.log = {session_log_status::checkpoint, "a", "b"};
    if (x.what == event_kind::summary)
      x.values = {{"a", "", value_kind::simple_value, 0.5f, {}, {}},
                  {"b", "node", value_kind::image, 0, hex("08 01"), {}},
                  {"c", "node", value_kind::tensor, 0, hex("08 01"), hex("0a 00")},
                  {"d", "", value_kind::histogram, 0, {}, {}},
                  {"e", "", value_kind::old_histogram, 0, hex("ff"), {}},
                  {"f", "", value_kind::none, 0, {}, hex("0a 00")}};
    if (kind == 4 || kind == 6 || kind == 8 || kind == 9) x.bytes = hex("08 05");
    CHECK(decode_event(encoded(x)) == x);
  }
  CHECK(encoded(decode_event(scalars(2.0, 7, {{"loss", 0.25f}}))) == scalars(2.0, 7, {{"loss", 0.25f}}));
}

TEST_CASE("what other writers may do") {
  // Unknown fields, a known field of another wire type, fields in another order, source_metadata.
  event e =
      decode_event(hex("52 03 0a 01 77  10 07  98 06 01  11 00 00 00 00 00 00 00 00  2a 07 15 00 00 80 3e 0a 00  "
                       "09 00 00 00 00 00 00 00 40"));
  CHECK(e.wall_time == 2.0);
  CHECK(e.step == 7);
  CHECK(e.what == event_kind::summary);
  CHECK(e.values.size() == 1);  // field 2 of Summary is unknown, value is empty
  // A message twice is one message; a oneof's last member wins.
  const std::string_view value = "2a 0a 0a 08 0a 01 61 15 00 00 80 3f ";
  CHECK(decode_event(hex(std::string(value) + std::string(value))).values.size() == 2);
  e = decode_event(hex(std::string(value) + "3a 02 08 01 3a 03 12 01 70"));
  CHECK(e.what == event_kind::session_log);
  CHECK(e.values.empty());
  CHECK(e.log == session_log{session_log_status::start, "p", ""});
  e = decode_event(hex("22 02 08 01 22 01 09"));
  CHECK(e.bytes == hex("09"));  // graph_def is a bytes field: the last one
  e = decode_event(hex("2a 0c 0a 0a 42 01 aa 42 01 bb 1a 00 22 00"));
  CHECK(e.values.at(0).kind == value_kind::image);
  CHECK(e.values.at(0).bytes.empty());
  e = decode_event(hex("2a 08 0a 06 42 01 aa 42 01 bb"));
  CHECK(e.values.at(0).bytes == hex("aa bb"));
}

TEST_CASE("damaged payloads: an event or data_loss") {
  bytes good = scalars(2.0, 1001, {{"loss", 0.25f}, {"accuracy", 0.5f}});
  encode_session_log(good, 3.0, 9, session_log_status::checkpoint, "m/model.ckpt");
  for (std::size_t n = 0; n < good.size(); ++n) {
    const bytes cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n));
    try {
      decode_event(cut);
    } catch (const data_loss&) {
    }
  }
  int refused = 0;
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    bytes changed = good;
    changed[bit / 8] ^= std::byte{1} << (bit % 8);
    try {
      decode_event(changed);
    } catch (const data_loss&) {
      ++refused;
    }
  }
  CHECK(refused > 0);
  CHECK_THROWS_AS(decode_event(hex("2a 05 0a 7f 0a 01 61")), data_loss);
}
