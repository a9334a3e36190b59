#include "gradus/store/ordered_code.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace gradus;

namespace {
std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    const auto b = static_cast<unsigned char>(c);
    out += "0123456789abcdef"[b >> 4];
    out += "0123456789abcdef"[b & 15];
  }
  return out;
}
struct range {
  std::int64_t start, length;
};
// The key of a slice: numinc(0), name, numinc(rank), the extents.
std::string key(std::string_view name, std::vector<range> extents) {
  std::string out;
  ordered_code::put_number(out, 0);
  ordered_code::put_string(out, name);
  ordered_code::put_number(out, extents.size());
  for (const auto& e : extents) ordered_code::put_signed(out, e.start), ordered_code::put_signed(out, e.length);
  return out;
}
}  // namespace

// TensorFlow 1.15's own ordered_code.cc gave these.
TEST_CASE("ordered_code: TensorFlow's bytes") {
  CHECK(hex(key("emb/w", {{0, 5}, {0, -1}})) ==
        "00656d622f7700010102"
        "8085807f");
  CHECK(hex(key("emb/w", {{5, 5}, {0, -1}})) ==
        "00656d622f7700010102"
        "8585807f");
  CHECK(hex(key("v", {{0, 64}})) ==
        "007600010101"
        "80c040");
  CHECK(hex(key("v", {{64, 8191}})) ==
        "007600010101"
        "c040dfff");
  CHECK(hex(key("v", {{-64, -65}})) ==  // as many bits as 63 and 64 have
        "007600010101"
        "403fbf");
  CHECK(hex(key("v", {{8192, 1048576}})) ==
        "007600010101"
        "e02000f0100000");
  CHECK(hex(key(std::string_view("a\0b\xff"
                                 "c",
                                 5),
                {{0, 1}})) ==
        "006100ff62ff006300010101"
        "8081");
  CHECK(hex(key("v", {{std::int64_t{1} << 40, -1}, {std::int64_t{1} << 62, 3}})) ==
        "007600010102"
        "fd00000000007f"
        "ffc0400000000000000083");
}

TEST_CASE("ordered_code: what is written is read, and sorts as the values do") {
  std::vector<std::int64_t> numbers{INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX};
  for (int bit = 3; bit < 63; ++bit)
    for (const std::int64_t near : {-1, 0, 1})
      numbers.push_back((std::int64_t{1} << bit) + near), numbers.push_back(-(std::int64_t{1} << bit) + near);
  std::sort(numbers.begin(), numbers.end());
  std::string before, before_unsigned;
  for (const std::int64_t n : numbers) {
    std::string code;
    ordered_code::put_signed(code, n);
    if (n != numbers.front()) CHECK(before <= code);
    before = code;
    std::string_view in = code;
    std::int64_t back = 0;
    CHECK(ordered_code::take_signed(in, back));
    CHECK(back == n);
    CHECK(in.empty());
    for (std::size_t cut = 0; cut < code.size(); ++cut) {
      std::string_view part = std::string_view(code).substr(0, cut);
      CHECK_FALSE(ordered_code::take_signed(part, back));
    }
    if (n < 0) continue;
    code.clear();
    ordered_code::put_number(code, static_cast<std::uint64_t>(n));
    CHECK(before_unsigned <= code);
    before_unsigned = code;
    in = code;
    std::uint64_t value = 0;
    CHECK(ordered_code::take_number(in, value));
    CHECK(value == static_cast<std::uint64_t>(n));
  }
  for (const auto& s : {std::string(), std::string("a"), std::string("\0\xff\0", 3), std::string("\xff\xff")}) {
    std::string code, back;
    ordered_code::put_string(code, s);
    code += "rest";
    std::string_view in = code;
    CHECK(ordered_code::take_string(in, back));
    CHECK(back == s);
    CHECK(in == "rest");
  }
}

TEST_CASE("ordered_code: other spellings are refused") {
  std::int64_t number = 0;
  std::uint64_t count = 0;
  std::string s;
  for (const auto& bad : {std::string("\xc0\x05", 2), std::string("\x3f\xff", 2), std::string("\xff\xff\xff"),
                          std::string("\xff\xc1\0\0\0\0\0\0\0\0", 10), std::string()}) {
    std::string_view in = bad;
    CHECK_FALSE(ordered_code::take_signed(in, number));
  }
  for (const auto& bad : {std::string("\x01\0", 2),
                          std::string("\x09"
                                      "123456789"),
                          std::string("\x02"
                                      "1")}) {
    std::string_view in = bad;
    CHECK_FALSE(ordered_code::take_number(in, count));
  }
  for (const auto& bad : {std::string("abc"), std::string("a\0\2", 3), std::string("\xff\1"), std::string("\0", 1)}) {
    std::string_view in = bad;
    CHECK_FALSE(ordered_code::take_string(in, s));
  }
}
