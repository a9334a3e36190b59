#include "gradus/store/sorted_table.hpp"
#include "gradus/store/crc32c.hpp"

#include <doctest/doctest.h>

#include "gradus/base/random.hpp"

using namespace gradus;

namespace {
using file_bytes = std::vector<std::byte>;
using entry = std::pair<std::string, std::string>;

file_bytes hex(std::string_view digits) {
  file_bytes out;
  int high = -1;
  for (const char c : digits) {
    if (c == ' ') continue;
    const int digit = c <= '9' ? c - '0' : c - 'a' + 10;
    if (high >= 0) out.push_back(static_cast<std::byte>(16 * high + digit));
    high = high >= 0 ? -1 : digit;
  }
  return out;
}
std::string read(std::span<const std::byte> file, std::vector<entry>& entries) {
  entries.clear();
  sorted_table table;
  if (auto problem = table.open(file); !problem.empty()) return problem;
  return table.each([&](std::string_view key, std::span<const std::byte> value) {
    entries.emplace_back(key, detail::as_chars(value));
    return std::string();
  });
}
std::string problem_of(std::span<const std::byte> file) {
  std::vector<entry> entries;
  return read(file, entries);
}
file_bytes written(const std::vector<entry>& entries, table_layout layout = {}) {
  table_writer writer(layout);
  for (const auto& [key, value] : entries) writer.add(key, std::as_bytes(std::span(value)));
  return writer.finish();
}
std::vector<entry> variables(int n) {
  std::vector<entry> all{{"", "header"}};
  for (int i = 0; i < n; ++i) {
    std::string number = text(i);
    number.insert(0, 5 - number.size(), '0');
    all.emplace_back(text("layer_", number, "/kernel"), text("value ", i * i));
  }
  return all;
}

// A block by hand: contents, type, checksum.
file_bytes sealed(file_bytes contents, int type = 0) {
  contents.push_back(static_cast<std::byte>(type));
  detail::put_fixed(contents, mask(crc32c(contents)));
  return contents;
}
struct place {
  std::uint64_t offset, size;
};
// A table of one data block and an index block, as they are given, with checksums that fit.
file_bytes table_of(const file_bytes& data, const file_bytes& index, int type = 0) {
  file_bytes out = sealed(data, type);
  const place meta{out.size(), 8}, at{out.size() + 13, index.size()};
  detail::put_bytes(out, sealed(hex("0000000001000000")));
  detail::put_bytes(out, sealed(index));
  const std::size_t footer = out.size();
  for (const place& p : {meta, at}) detail::put_varint(out, p.offset), detail::put_varint(out, p.size);
  out.resize(footer + 40);
  detail::put_fixed(out, table_layout::magic);
  return out;
}
// An index block with one entry: this key, and a handle.
file_bytes index_of(std::uint64_t offset, std::uint64_t size, std::string_view key = "z") {
  file_bytes value, out;
  detail::put_varint(value, offset), detail::put_varint(value, size);
  for (const std::size_t n : {std::size_t{0}, key.size(), value.size()}) detail::put_varint(out, n);
  detail::put_bytes(out, key), detail::put_bytes(out, value);
  detail::put_bytes(out, hex("0000000001000000"));
  return out;
}
file_bytes table_of(const file_bytes& data) { return table_of(data, index_of(0, data.size())); }
}  // namespace

// The index of a checkpoint that TensorFlow wrote (formats page, 6.9): three entries, one block.
TEST_CASE("sorted_table: TensorFlow's bytes") {
  const file_bytes golden =
      hex("00 00 06 08 01 1a 02 08 01 00 0b 0b 67 6c 6f 62 61 6c 5f 73 74 65 70 08 09 12 00 28 08 35 bb d7"
          "9f 11 00 05 11 6e 61 6d 65 73 08 07 12 04 12 02 08 02 20 08 28 08 35 9e 9e 48 ed 00 01 11 77 08"
          "01 12 04 12 02 08 02 20 10 28 08 35 45 3f 16 88 00 00 00 00 01 00 00 00 00 ae a4 65 bf 00 00 00"
          "00 01 00 00 00 00 c0 f2 a1 b0 00 01 02 78 00 58 00 00 00 00 01 00 00 00 00 9f bd f3 35 5d 08 6a"
          "0e 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"
          "00 00 00 00 00 57 fb 80 8b 24 75 47 db");
  std::vector<entry> entries;
  CHECK(read(golden, entries) == "");
  REQUIRE(entries.size() == 4);
  CHECK(entries[1].first == "global_step");
  CHECK(entries[3].first == "w");
  CHECK(written(entries) == golden);
}

TEST_CASE("sorted_table: many blocks, what is written is read") {
  const auto all = variables(500);
  for (const std::size_t block : {std::size_t{1}, std::size_t{64}, std::size_t{1000}, std::size_t{262144}})
    for (const std::size_t interval : {std::size_t{1}, std::size_t{3}, std::size_t{16}}) {
      std::vector<entry> back;
      CHECK(read(written(all, {block, interval}), back) == "");
      CHECK(back == all);
    }
  std::vector<entry> back;
  CHECK(read(written({}), back) == "");
  CHECK(back.empty());
  // A long entry has a block of its own; the index's keys are as short as they can be.
  const std::vector<entry> around{
      {"a", "1"}, {"abc", std::string(250, 'x')}, {"abe", "2"}, {"ab\xff", "3"}, {"\xff", ""}};
  const auto file = written(around, {100, 16});
  CHECK(read(file, back) == "");
  CHECK(back == around);
  CHECK(detail::as_chars(file).find(std::string("\0\3\4abd", 6)) == std::string::npos);
  CHECK(detail::as_chars(file).find(std::string("\0\3\3abd", 6)) != std::string::npos);  // between "abc" and "abe"
  // Between neighbours there is no shorter key: "b" would belong to the next block already.
  const std::vector<entry> neighbours{{"a", "1"}, {"b", "2"}, {"c", "3"}};
  CHECK(read(written(neighbours, {1, 16}), back) == "");
  CHECK(back == neighbours);
  table_writer writer;
  writer.add("b", {});
  CHECK_THROWS_WITH_AS(writer.add("b", {}), "a table's keys increase; \"b\" came after \"b\"", invalid_argument);
}

// LevelDB 1.23's TableBuilder wrote this, with Snappy: "" -> "header", then "layer_0/kernel" .. "layer_3/kernel".
TEST_CASE("sorted_table: a block packed by Snappy") {
  const file_bytes golden =
      hex("930168000006686561646572000e146c617965725f302f6b65726e656c764a01000c06081431761f000032761f0000336a1f001c"
          "000000000100000001b487050d000000000100000000c0f2a1b00001026d003c0000000001000000000bf391c141084e0e000000"
          "00000000000000000000000000000000000000000000000000000000000000000057fb808b247547db");
  std::vector<entry> entries;
  CHECK(read(golden, entries) == "");
  REQUIRE(entries.size() == 5);
  CHECK(entries[0] == entry{"", "header"});
  for (int i = 0; i < 4; ++i)
    CHECK(entries[std::size_t(i) + 1] == entry{text("layer_", i, "/kernel"), std::string(20, 'v')});
}

TEST_CASE("sorted_table: every flipped bit and every truncation is detected") {
  const auto file = written(variables(20), {100, 16});
  auto damaged = file;
  std::size_t found = 0;
  for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
    found += !problem_of(damaged).empty();
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  CHECK(found == 8 * file.size());
  for (std::size_t n = 0; n < file.size(); ++n) CHECK(!problem_of(std::span(file).first(n)).empty());
}

TEST_CASE("sorted_table: each forgery with fitting checksums is named") {
  const auto data = [](std::string_view digits) { return problem_of(table_of(hex(digits))); };
  const std::string one_restart = "0000000001000000";
  REQUIRE(data("000101 6162" + one_restart) == "");
  const std::string block = "its data block at 0: ";
  // Restarts.
  CHECK(data("") == block + "it is too short for a number of restarts");
  CHECK(data("010000") == block + "it is too short for a number of restarts");
  CHECK(data("00000000") == block + "it cannot have 0 restarts");
  CHECK(data("01000000") == block + "it cannot have 1 restarts");
  CHECK(data("000101 6162 00000000 ffffffff") == block + "it cannot have 4294967295 restarts");
  CHECK(data("000101 6162 00000000 00000040") == block + "it cannot have 1073741824 restarts");
  CHECK(data("000101 6162 00000000 03000000") == block + "it cannot have 3 restarts");
  CHECK(data("00000000 00000000 02000000") == block + "it is empty, but has restarts");
  CHECK(data("05000000 01000000") == block + "it is empty, but has restarts");
  CHECK(data("000101 6162 00000000 03000000 02000000") == block + "a restart is not at an entry");
  CHECK(data("000101 6162 00000000 ffffffff 02000000") == block + "a restart is not at an entry");
  CHECK(data("000101 6162 000101 6263 05000000 01000000").find("shares 0 bytes, which the key before") !=
        std::string::npos);
  CHECK(data("000101 6162 010101 6263 00000000 05000000 02000000").find("its entry at 5 shares 1 bytes") !=
        std::string::npos);
  CHECK(data("000101 6162 000101 6263 00000000 00000000 02000000") == block + "a restart is not at an entry");
  // Entries.
  const std::string past = block + "its entry at 0 reaches past its end";
  CHECK(data("80" + one_restart) == past);
  CHECK(data("00" + one_restart) == past);
  CHECK(data("0001" + one_restart) == past);
  CHECK(data("000102 6162" + one_restart) == past);
  CHECK(data("000301 6162" + one_restart) == past);
  CHECK(data("00ffffffff0f01 6162" + one_restart) == past);          // the sum of both
  CHECK(data("00ffffffff0fffffffff0f 6162" + one_restart) == past);  // wraps in 32 bits
  CHECK(data("00feffffff0f04 6162" + one_restart) == past);
  CHECK(data("00ffffffff1f01 6162" + one_restart) == past);  // more than 32 bits
  CHECK(data("00ffffffffffffffffff01 01 6162" + one_restart) == past);
  CHECK(data("010101 6162" + one_restart) ==
        block + "its entry at 0 shares 1 bytes, which the key before it does not lend");
  CHECK(data("000101 6162 020100 63" + one_restart) ==
        block + "its entry at 5 shares 2 bytes, which the key before it does not lend");
  CHECK(data("000101 6162 ffffffff0f0100 63" + one_restart).find("shares 4294967295 bytes") != std::string::npos);
  const std::string order = block + "its entry at 5 has a key that is not greater than the one before it";
  CHECK(data("000101 6162 000100 61" + one_restart) == order);  // twice
  CHECK(data("000101 6262 000100 61" + one_restart) == order);
  CHECK(data("000101 6162 010000" + one_restart) == order);
  CHECK(data("000101 ff62 000100 7f" + one_restart) == order);  // as unsigned bytes
  CHECK(data("000101 7f62 000100 ff" + one_restart) ==
        "its index gives the block at 0 a key that is less than its last");
  // Places of blocks.
  const file_bytes good = hex("0001016162" + one_restart);
  const auto index = [&](std::uint64_t offset, std::uint64_t size) {
    return problem_of(table_of(good, index_of(offset, size)));
  };
  REQUIRE(index(0, good.size()) == "");
  const std::uint64_t huge = ~std::uint64_t{0};
  for (const place p : {place{0, huge}, place{huge, 13}, place{huge, huge}, place{huge - 12, 13}, place{0, huge - 4},
                        place{std::uint64_t{1} << 63, 5}, place{0, std::uint64_t{1} << 40}, place{60, 0}, place{0, 57}})
    CHECK_MESSAGE(index(p.offset, p.size).find("reach past its end") != std::string::npos, p.offset, " ", p.size);
  CHECK(index(0, 12).find("its checksum does not fit its bytes") != std::string::npos);
  CHECK(index(1, 12).find("its checksum does not fit its bytes") != std::string::npos);
  CHECK(index(18, 8) == "its data block at 18 is empty");  // the metaindex
  CHECK(problem_of(table_of(good, hex("000101 7a00" + one_restart))) == "an entry of its index is no place of a block");
  CHECK(problem_of(table_of(good, hex("000103 7a000d00" + one_restart))) ==
        "an entry of its index is no place of a block");
  CHECK(problem_of(table_of(good, index_of(0, good.size(), "A"))) ==
        "its index gives the block at 0 a key that is less than its last");
  CHECK(problem_of(table_of(good, hex("000102 7a000d 000102 7b000d"
                                      "00000000 06000000 02000000"))) ==
        "its block at 0 begins with a key that belongs before it");  // the same block twice
  // Types.
  CHECK(problem_of(table_of(good, index_of(0, good.size()), 2)) == block + "its type 2 is unknown; 0 and 1 are");
  CHECK(problem_of(table_of(good, index_of(0, good.size()), 1)).find("Snappy") != std::string::npos);
  const file_bytes bomb =
      hex("80808004"
          "00"
          "61"
          "fe0100fe0100fe0100");
  CHECK(problem_of(table_of(bomb, index_of(0, bomb.size()), 1)).find("is too large") != std::string::npos);
  // Footer.
  const auto footer = [&](std::size_t at, std::string_view digits) {
    auto file = table_of(good);
    const auto bytes = hex(digits);
    std::copy(bytes.begin(), bytes.end(), file.end() - 48 + std::ptrdiff_t(at));
    return problem_of(file);
  };
  const std::string places = "its footer does not give the places of the two blocks before it";
  CHECK(footer(0, "ffffffffffffffffff01") == places);
  CHECK(footer(0, "ffffffffffffffffff02") == "its footer is damaged");
  CHECK(footer(39, "01") == "its footer is damaged");
  CHECK(footer(40, "58") == "it does not end with the magic number of a table");
  CHECK(footer(1, "ffffff7f") == places);
  CHECK(footer(0, "0000") == places);
  CHECK(footer(2, "0000") == places);
  CHECK(footer(3, "ffffffffffffffffff01") == places);
  CHECK(problem_of({}) == "it is truncated: 0 bytes, where the footer alone takes 48");
}

TEST_CASE("sorted_table: random forgeries run nowhere") {
  const auto good =
      hex("00010161620001016263"
          "0000000001000000");
  random_stream random{1};
  std::size_t refused = 0;
  for (int i = 0; i < 3000; ++i) {
    auto data = good;
    auto index = index_of(0, data.size());
    auto& forged = random.below(3) == 0 ? index : data;
    for (std::uint32_t k = random.below(3) + 1; k != 0; --k)
      forged[random.below(static_cast<std::uint32_t>(forged.size()))] = static_cast<std::byte>(random.below(256));
    refused += !problem_of(table_of(data, index, static_cast<int>(random.below(8) == 0))).empty();
  }
  CHECK(refused > 1500);
}
