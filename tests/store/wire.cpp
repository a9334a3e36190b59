#include <doctest/doctest.h>

#include <cmath>
#include <gradus/base/random.hpp>
#include <gradus/store/wire.hpp>
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

template <class Body>
bytes written(Body&& body) {
  bytes out;
  wire_writer w(out);
  body(w);
  return out;
}

// Walks over everything, entering what may be a message: what a decoder could at most do.
int walk(wire_reader r, int depth = 0) {
  int fields = 0;
  while (r.next()) {
    ++fields;
    switch (r.type()) {
    case wire::varint: r.integer(); break;
    case wire::fixed32: r.float32(); break;
    case wire::fixed64: r.float64(); break;
    case wire::length:
      if (r.number() % 3 == 0) {
        std::vector<std::int64_t> numbers;
        r.repeated(numbers);
      } else if (r.number() % 3 == 1 && depth < 20) {
        fields += walk(r.message(), depth + 1);
      }
      break;
    }
  }
  return fields;
}

}  // namespace

// The examples of protobuf's own page on its encoding (protobuf.dev/programming-guides/encoding).
TEST_CASE("published bytes") {
  CHECK(written([](auto& w) { w.integer(1, 150); }) == hex("08 96 01"));
  CHECK(written([](auto& w) { w.bytes(2, "testing"); }) == hex("12 07 74 65 73 74 69 6e 67"));
  CHECK(written([](auto& w) { w.message(3, [](auto& m) { m.integer(1, 150); }); }) == hex("1a 03 08 96 01"));
  CHECK(written([](auto& w) {
          w.packed(6, std::vector<std::int64_t>{3, 270, 86942});
        }) == hex("32 06 03 8e 02 9e a7 05"));
  CHECK(written([](auto& w) { w.integer(1, -1); }) == hex("08 ff ff ff ff ff ff ff ff ff 01"));
  CHECK(written([](auto& w) { w.integer(1, -2); }) == hex("08 fe ff ff ff ff ff ff ff ff 01"));
  CHECK(written([](auto& w) { w.float32(2, 0.25f); }) == hex("15 00 00 80 3e"));
  CHECK(written([](auto& w) { w.float64(1, 1.5); }) == hex("09 00 00 00 00 00 00 f8 3f"));
  CHECK(written([](auto& w) { w.packed(5, std::vector<float>{1.0f, -2.0f}); }) == hex("2a 08 00 00 80 3f 00 00 00 c0"));
  CHECK(written([](auto& w) { w.packed(7, std::vector<double>{2.0}); }) == hex("3a 08 00 00 00 00 00 00 00 40"));
}

TEST_CASE("zeros: always, or only if not zero") {
  CHECK(written([](auto& w) {
          w.integer(1, 0);
          w.float32(2, 0);
          w.float64(3, 0);
          w.boolean(4, false);
          w.bytes(5, "");
        }) == hex("08 00  15 00 00 00 00  19 00 00 00 00 00 00 00 00  20 00  2a 00"));
  CHECK(written([](auto& w) {
          w.integer_if(1, 0);
          w.float32_if(2, 0);
          w.float64_if(3, 0);
          w.boolean_if(4, false);
          w.bytes_if(5, "");
          w.bytes_if(5, bytes{});
          w.packed(6, std::vector<float>{});
        }).empty());
  CHECK(written([](auto& w) { w.float32_if(2, -0.0f); }) == hex("15 00 00 00 80"));
}

TEST_CASE("an empty message is present, at any depth") {
  CHECK(written([](auto& w) { w.message(2, [](auto&) {}); }) == hex("12 00"));
  CHECK(written([](auto& w) {
          w.message(2, [](auto& m) { m.message(1, [](auto&) {}); });
          w.message(3, [](auto& m) { m.integer_if(1, 0); });
          w.integer(4, 1);
        }) == hex("12 02 0a 00  1a 00  20 01"));
  const bytes long_one = written([](auto& w) { w.message(1, [](auto& m) { m.bytes(1, std::string(300, 'a')); }); });
  CHECK(long_one.size() == 3 + 3 + 300);
  CHECK(bytes(long_one.begin(), long_one.begin() + 6) == hex("0a af 02 0a ac 02"));
}

TEST_CASE("what is written is read") {
  const bytes b = written([](auto& w) {
    w.integer(1, std::numeric_limits<std::int64_t>::min());
    w.boolean(2, true);
    w.float32(3, std::numeric_limits<float>::quiet_NaN());
    w.float64(4, -0.1);
    w.bytes(5, std::string_view("a\0b", 3));
    w.message(6, [](auto& m) { m.integer(536'870'911, 7); });
  });
  wire_reader r(b);
  REQUIRE(r.next());
  CHECK(r.key() == field(1, wire::varint));
  CHECK(r.integer() == std::numeric_limits<std::int64_t>::min());
  REQUIRE(r.next());
  CHECK(r.boolean());
  REQUIRE(r.next());
  CHECK(std::isnan(r.float32()));
  REQUIRE(r.next());
  CHECK(r.float64() == -0.1);
  REQUIRE(r.next());
  CHECK(r.string() == std::string_view("a\0b", 3));
  REQUIRE(r.next());
  wire_reader m = r.message();
  REQUIRE(m.next());
  CHECK(m.number() == 536'870'911);
  CHECK(m.integer() == 7);
  CHECK_FALSE(m.next());
  CHECK_FALSE(r.next());
  CHECK_FALSE(r.next());
}

TEST_CASE("fields that nobody takes are skipped") {
  const bytes b = hex("08 96 01  11 00 00 00 00 00 00 00 40  1a 02 ff ff  25 00 00 80 3f  28 05");
  wire_reader r(b);
  int fields = 0;
  while (r.next()) ++fields;
  CHECK(fields == 5);
}

TEST_CASE("repeated scalars: packed, single, several pieces") {
  std::vector<double> d;
  const bytes doubles = hex("31 00 00 00 00 00 00 f0 3f  32 10 00 00 00 00 00 00 00 40 00 00 00 00 00 00 08 40  32 00");
  for (wire_reader r(doubles); r.next();) r.repeated(d);
  CHECK(d == std::vector<double>{1, 2, 3});
  std::vector<float> f;
  const bytes floats = hex("2a 04 00 00 80 3f 2d 00 00 00 40");
  for (wire_reader r(floats); r.next();) r.repeated(f);
  CHECK(f == std::vector<float>{1, 2});
  std::vector<std::int64_t> i;
  const bytes integers = hex("32 06 03 8e 02 9e a7 05 30 07");
  for (wire_reader r(integers); r.next();) r.repeated(i);
  CHECK(i == std::vector<std::int64_t>{3, 270, 86942, 7});

  for (const auto& bad : {hex("32 07 00 00 00 00 00 00 f0"), hex("32 09 00 00 00 00 00 00 f0 3f 00")}) {
    wire_reader r(bad);
    REQUIRE(r.next());
    CHECK_THROWS_AS(r.repeated(d), data_loss);
  }
  CHECK(d.size() == 3);
}

TEST_CASE("malformed bytes are data_loss") {
  const auto refuse = [](std::string_view s) {
    const bytes b = hex(s);
    CHECK_THROWS_AS(walk(wire_reader(b)), data_loss);
    CHECK_THROWS_AS(([&] {
                      for (wire_reader r(b); r.next();) {
                      }
                    }()),
                    data_loss);
  };
  refuse("00 01");                                // field 0
  refuse("0b");                                   // group
  refuse("0c");                                   // end of group
  refuse("0e");                                   // wire type 6
  refuse("0f");                                   // wire type 7
  refuse("08");                                   // no value
  refuse("08 80");                                // half a varint
  refuse("08 ff ff ff ff ff ff ff ff ff ff 01");  // 11 bytes
  refuse("0d 00 00 00");                          // 3 of 4
  refuse("09 00 00 00 00 00 00 00");              // 7 of 8
  refuse("12 05 61 62");                          // longer than what is left
  refuse("12 ff ff ff ff 0f");                    // 4 GiB
  refuse("12 81 80 80 80 10 61");                 // 2^32 + 1: must not be taken for 1
  refuse("12 ff ff ff ff ff ff ff ff ff 01");     // 2^64 - 1
  refuse("88 80 80 80 10 01");                    // a key of 2^32 + 8: must not be taken for field 1
  refuse("80 80 80 80 80 80 80 80 80 80 80 01");  // key of 12 bytes
  const bytes b = hex("12 05 61 62");
  wire_reader r(b);
  REQUIRE(r.next());
  CHECK_THROWS_WITH(r.bytes(), "malformed protobuf message: field 2 says it holds 5 bytes, of which 2 are left");
}

TEST_CASE("the wrong verb is an error, not a misreading") {
  const bytes b = hex("08 01");
  wire_reader r(b);
  REQUIRE(r.next());
  CHECK_THROWS_WITH_AS(r.float32(), "malformed protobuf message: expected wire type 5, found 0 in field 1", data_loss);
  CHECK(r.integer() == 1);
  CHECK_THROWS_AS(r.integer(), internal);
}

TEST_CASE("nesting ends somewhere") {
  bytes b;
  for (int i = 0; i < 200; ++i) {
    bytes outer;
    wire_writer w(outer);
    w.bytes(1, b);
    b = outer;
  }
  wire_reader r(b);
  REQUIRE(r.next());
  int depth = 0;
  CHECK_THROWS_WITH_AS(([&] {
                         for (;;) {
                           r = r.message();
                           ++depth;
                           if (!r.next()) return;
                         }
                       }()),
                       "malformed protobuf message: nested deeper than 100", data_loss);
  CHECK(depth == wire_reader::max_depth);
}

TEST_CASE("random and damaged bytes: fields or data_loss, nothing else") {
  random_stream random{1};
  const bytes good = written([](auto& w) {
    for (std::uint32_t i = 1; i < 8; ++i)
      w.message(i, [&](auto& m) {
        m.integer(1, -5);
        m.packed(3, std::vector<std::int64_t>{1, 300, 70000});
        m.message(4, [](auto& n) { n.float64(2, 0.5), n.float32(7, 2.0f), n.bytes(5, "tag"); });
      });
  });
  int fine = 0, refused = 0;
  for (int i = 0; i < 20000; ++i) {
    bytes b;
    if (i % 2 == 0) {
      b = good;
      for (std::uint32_t k = 0; k <= random.below(4); ++k)
        b[random.below(static_cast<std::uint32_t>(b.size()))] = static_cast<std::byte>(random.word());
      b.resize(b.size() - random.below(10));
    } else {
      b.resize(random.below(40));
      for (auto& x : b) x = static_cast<std::byte>(random.word());
    }
    b.shrink_to_fit();  // so that the sanitizer sees a read past the end
    try {
      walk(wire_reader(b));
      ++fine;
    } catch (const data_loss&) {
      ++refused;
    }
  }
  CHECK(fine > 100);
  CHECK(refused > 100);
}
