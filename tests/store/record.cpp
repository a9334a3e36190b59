#include <doctest/doctest.h>
#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <gradus/store/crc32c.hpp>
#include <gradus/store/record.hpp>
#include <string>
#include <string_view>

using namespace gradus;

namespace {

using bytes = std::vector<std::byte>;

bytes of(std::string_view s) {
  const auto b = std::as_bytes(std::span(s.data(), s.size()));
  return {b.begin(), b.end()};
}
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

// Everything a reader finds before it stops, and why it stops.
struct found {
  std::vector<bytes> records;
  record_status last = record_status::record;
};
found read_all(std::span<const std::byte> stream) {
  record_reader reader(span_source{stream});
  found f;
  bytes payload;
  while ((f.last = reader.read(payload)) == record_status::record) f.records.push_back(payload);
  return f;
}

const std::vector<bytes> three = {of("first"), {}, of(std::string(300, 'x'))};
bytes three_records() {
  bytes out;
  for (const auto& r : three) append_record(out, r);
  return out;
}

}  // namespace

TEST_CASE("published bytes") {
  bytes out;
  append_record(out, of("abc"));
  CHECK(out == hex("03 00 00 00 00 00 00 00 b0 99 49 0e 61 62 63 6e 57 f1 21"));
  out.clear();
  append_record(out, bytes{});
  CHECK(out == hex("00 00 00 00 00 00 00 00 29 03 98 07 d8 ea 82 a2"));
}

TEST_CASE("what is written is read") {
  const bytes stream = three_records();
  CHECK(stream.size() == 5 + 0 + 300 + 3 * record_overhead_bytes);
  const found f = read_all(stream);
  CHECK(f.records == three);
  CHECK(f.last == record_status::end);
  CHECK(read_all({}).last == record_status::end);

  record_reader reader(span_source{stream});
  bytes payload;
  CHECK(reader.next(payload));
  CHECK(reader.offset() == 21);
  record_reader second(span_source{std::span(stream).subspan(21)});  // a saved place is a byte
  CHECK(second.next(payload));
  CHECK(payload.empty());
}

TEST_CASE("cut at every length: the records before are whole, and a cut is told from an end") {
  const bytes stream = three_records();
  const std::size_t ends[] = {0, 21, 37, 353};
  for (std::size_t n = 0; n <= stream.size(); ++n) {
    const found f = read_all(std::span(stream).first(n));
    std::size_t whole = 0;
    while (whole < 3 && ends[whole + 1] <= n) ++whole;
    REQUIRE(f.records.size() == whole);
    for (std::size_t i = 0; i < whole; ++i) REQUIRE(f.records[i] == three[i]);
    REQUIRE(f.last == (n == ends[whole] ? record_status::end : record_status::truncated));
  }
}

TEST_CASE("flip every bit: corrupt, and nothing after it is believed") {
  const bytes stream = three_records();
  for (std::size_t bit = 0; bit < 8 * stream.size(); ++bit) {
    bytes changed = stream;
    changed[bit / 8] ^= std::byte{1} << (bit % 8);
    const found f = read_all(changed);
    const std::size_t whole = bit / 8 < 21 ? 0 : bit / 8 < 37 ? 1 : 2;
    REQUIRE(f.records.size() == whole);
    REQUIRE(f.last == record_status::corrupt);
  }
}

TEST_CASE("a length is not believed") {
  for (const std::uint64_t n : {std::uint64_t{1} << 30, std::uint64_t{1} << 62, ~std::uint64_t{0}}) {
    bytes stream(record_header_bytes + 40);
    detail::put_fixed(stream.data(), n, 8);
    detail::put_fixed(stream.data() + 8, mask(crc32c(std::span<const std::byte>(stream).first(8))), 4);
    record_reader reader(span_source{stream}, {.record_bytes = (std::uint64_t{1} << 31) - 1});
    bytes payload;
    CHECK(reader.read(payload) == (n >> 31 != 0 ? record_status::too_long : record_status::truncated));
    CHECK(payload.capacity() <= 1 << 17);
    CHECK(reader.read(payload) != record_status::record);  // final
  }
  bytes out;
  append_record(out, of("abcd"));
  record_reader strict(span_source{out}, {.record_bytes = 3});
  bytes payload;
  CHECK(strict.read(payload) == record_status::too_long);
  CHECK(strict.too_long() ==
        "the record at byte 0 takes 4 bytes, the limit is 3; raise reader_limits::record_bytes if the file is to be "
        "trusted");
}

TEST_CASE("large records arrive in pieces, memory is used again") {
  bytes large(1'000'003);
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<std::byte>(i * 7 >> 3);
  bytes stream;
  for (int i = 0; i < 3; ++i) append_record(stream, large);
  record_reader reader(span_source{stream});
  bytes payload;
  REQUIRE(reader.next(payload));
  CHECK(payload == large);
  const auto* at = payload.data();
  REQUIRE(reader.next(payload));
  CHECK(payload == large);
  CHECK(payload.data() == at);
}

TEST_CASE("errors say where, and what is still good") {
  bytes stream = three_records();
  bytes payload;
  {
    record_reader reader(span_source{std::span<const std::byte>(stream).first(30)});
    CHECK(reader.next(payload));
    CHECK_THROWS_WITH_AS(reader.next(payload),
                         "truncated record at byte 21: the file ends inside it; the records before it are good",
                         data_loss);
  }
  stream[38] ^= std::byte{1};
  record_reader reader(span_source{stream});
  CHECK(reader.next(payload));
  CHECK(reader.next(payload));
  CHECK_THROWS_WITH_AS(reader.next(payload),
                       "corrupted record at byte 37: its checksum or length is wrong; the records before it are good",
                       data_loss);
}

TEST_CASE("a payload that cannot be written leaves nothing behind") {
  bytes out = of("before");
  CHECK_THROWS_AS(append_record(out,
                                [](bytes& o) {
                                  o.push_back(std::byte{1});
                                  raise(status::invalid_argument, "no");
                                }),
                  invalid_argument);
  CHECK(out == of("before"));
}

TEST_CASE("from a file, through a buffer of any size") {
  std::string folder = (std::filesystem::temp_directory_path() / "gradus-record-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  const std::string path = folder + "/records";
  const bytes stream = three_records();
  publish(posix{}, path, std::string_view(reinterpret_cast<const char*>(stream.data()), stream.size()));
  for (const std::size_t buffer : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{1} << 16}) {
    file_source source(posix{}, path, buffer);
    record_reader reader(std::move(source));
    bytes payload;
    for (const auto& r : three) {
      REQUIRE(reader.next(payload));
      CHECK(payload == r);
    }
    CHECK_FALSE(reader.next(payload));
  }
  CHECK_THROWS_AS(file_source(posix{}, folder + "/none"), not_found);
  std::filesystem::remove_all(folder);
}
