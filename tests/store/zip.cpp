#include "gradus/store/zip.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include "gradus/base/random.hpp"

using namespace gradus;

namespace {

using byte_list = std::vector<std::byte>;

byte_list from_hex(std::string_view hex) {
  const auto digit = [](char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10); };
  byte_list out;
  for (std::size_t i = 0; i < hex.size(); i += 2) out.push_back(std::byte(digit(hex[i]) << 4 | digit(hex[i + 1])));
  return out;
}
template <class Number>
void poke(byte_list& file, std::size_t at, Number n) {
  std::memcpy(file.data() + at, &n, sizeof n);
}
std::span<const std::byte> bytes_of(std::string_view s) { return std::as_bytes(std::span(s.data(), s.size())); }
std::string as_text(std::span<const std::byte> b) { return {reinterpret_cast<const char*>(b.data()), b.size()}; }

// By Python 3.11's zipfile: "a.txt" stored, "b/ü" deflated, of the first of January 1980.
const byte_list python = from_hex(
    "504b03041400000000000000210086a61036050000000500000005000000612e74787468656c6c6f504b030414000008080000002100"
    "e3513d8d0a0000001700000004000000622fc3bccb48cdc9c957c8402701504b010214031400000000000000210086a6103605000000"
    "05000000050000000000000000000000800100000000612e747874504b0102140314000008080000002100e3513d8d0a000000170000"
    "00040000000000000000000000800128000000622fc3bc504b0506000000000200020065000000540000000000");

byte_list ours(std::size_t alignment = 64) {
  zip_layout zip(alignment);
  byte_list out;
  const auto add = [&](std::string_view name, std::string_view content) {
    const auto head = zip.member(name, content.size(), zip_crc32(bytes_of(content)));
    out.insert(out.end(), head.begin(), head.end());
    out.insert(out.end(), bytes_of(content).begin(), bytes_of(content).end());
  };
  add("a.txt", "hello"), add("empty", ""), add("b/ü", "hello hello hello hello");
  const auto end = zip.directory();
  out.insert(out.end(), end.begin(), end.end());
  return out;
}
std::string problem_of(const byte_list& file) {
  std::vector<zip_member> members;
  return read_zip(file, members);
}

}  // namespace

TEST_CASE("zip: CRC-32 has its published check value") {
  CHECK(zip_crc32(bytes_of("123456789")) == 0xCBF43926);
  CHECK(zip_crc32(bytes_of("6789"), zip_crc32(bytes_of("12345"))) == 0xCBF43926);
  CHECK(zip_crc32({}, 7) == 7);
  CHECK(zip_crc32({}) == 0);
}

TEST_CASE("zip: what Python wrote is read") {
  std::vector<zip_member> m;
  CHECK(read_zip(python, m) == "");
  REQUIRE(m.size() == 2);
  CHECK(m[0].name == "a.txt");
  CHECK(!m[0].deflated);
  CHECK(as_text(m[0].bytes) == "hello");
  CHECK(m[0].crc == zip_crc32(m[0].bytes));
  CHECK(m[1].name == "b/ü");
  CHECK(m[1].deflated);
  byte_list out;
  CHECK(inflate_raw(m[1].bytes, m[1].size, out) == "");
  CHECK(as_text(out) == "hello hello hello hello");
  CHECK(zip_crc32(out) == m[1].crc);
}

TEST_CASE("zip: what we write is read, each member at a multiple of the alignment") {
  for (const std::size_t alignment : {std::size_t{1}, std::size_t{4}, std::size_t{64}, std::size_t{4096}}) {
    const auto file = ours(alignment);
    std::vector<zip_member> m;
    CHECK(read_zip(file, m) == "");
    REQUIRE(m.size() == 3);
    CHECK(as_text(m[0].bytes) == "hello");
    CHECK(m[1].bytes.empty());
    CHECK(m[2].name == "b/ü");
    CHECK(as_text(m[2].bytes) == "hello hello hello hello");
    for (const auto& member : m) {
      CHECK(static_cast<std::size_t>(member.bytes.data() - file.data()) % alignment == 0);
      CHECK(zip_crc32(member.bytes) == member.crc);
    }
  }
  CHECK(problem_of(zip_layout().directory()) == "");
  CHECK(zip_layout().directory() == from_hex("504b0506000000000000000000000000000000000000"));
  for (const auto& name : {std::string(), std::string("a\0b", 3), std::string(65536, 'a')})
    CHECK_THROWS_AS(zip_layout().member(name, 0, 0), invalid_argument);
}

TEST_CASE("zip: more than 4 GiB, in memory that is never touched") {
  const std::uint64_t large = (std::uint64_t{1} << 32) + 100;
  zip_layout zip;
  const auto first = zip.member("large", large, 1), second = zip.member("far", 5, 2), end = zip.directory();
  const std::size_t size = first.size() + large + second.size() + 5 + end.size();
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  auto* file = static_cast<std::byte*>(memory);
  std::memcpy(file, first.data(), first.size());
  std::memcpy(file + first.size() + large, second.data(), second.size());
  std::memcpy(file + size - end.size(), end.data(), end.size());
  std::vector<zip_member> m;
  CHECK(read_zip({file, size}, m) == "");
  REQUIRE(m.size() == 2);
  CHECK(m[0].size == large);
  CHECK(m[0].bytes.size() == large);
  CHECK(m[0].bytes.data() == file + first.size());
  CHECK(m[0].crc == 1);
  CHECK(m[1].bytes.data() == file + size - end.size() - 5);
  CHECK(m[1].bytes.size() == 5);
  ::munmap(memory, size);
}

TEST_CASE("zip: each lie is named") {
  const auto file = python;
  const std::size_t end = file.size() - 22, directory = 0x54, second = directory + 46 + 5;
  REQUIRE(problem_of(file).empty());
  const auto with = [&file](std::size_t at, auto n) {
    auto forged = file;
    poke(forged, at, n);
    return problem_of(forged);
  };
  const auto has = [](const std::string& problem, std::string_view words) {
    CHECK_MESSAGE(problem.find(words) != std::string::npos, problem);
  };
  has(with(end, 0u), "no end record");
  has(with(end + 20, std::uint16_t{1}), "no end record");
  has(with(end + 4, std::uint16_t{1}), "archive of several files");
  has(with(end + 8, std::uint16_t{1}), "archive of several files");
  has(with(end + 12, 1u), "its directory claims 1 bytes");
  has(with(end + 16, 0xFFFFFFFFu), "from byte 4294967295 on");
  has(with(end + 8, 0x00010001u), "bytes too many");
  has(with(end + 8, 0x00030003u), "claims 3 members");
  has(with(end + 8, 0xFFFFFFFFu), "claims 65535 members");
  has(with(directory, 0u), "is none");
  has(with(directory + 8, std::uint16_t{1}), "encrypted");
  has(with(directory + 10, std::uint16_t{14}), "method 14");
  has(with(directory + 10, std::uint16_t{8}), "differ in name or method");
  has(with(directory + 20, 4u), "stored member with two sizes");
  has(with(directory + 24, 0xFFFFFFFFu), "stored member with two sizes");
  has(with(directory + 28, std::uint16_t{0xFFFF}), "reaches past its end");
  has(with(directory + 30, std::uint16_t{0xFFFF}), "reaches past its end");
  has(with(directory + 32, std::uint16_t{0xFFFF}), "reaches past its end");
  has(with(directory + 42, 1u), "where none does");
  has(with(directory + 42, 0xFFFFFFFFu), "where none does");
  has(with(directory + 46, 'x'), "differ in name or method");
  has(with(directory + 46, '\0'), "zero byte");
  has(with(second + 20, 0xFFFFFFFFu), "do not lie in front of the directory");
  has(with(second + 20, std::uint32_t(directory)), "do not lie in front of the directory");
  has(with(second + 42, 0u), "differ in name or method");
  auto longer = file;
  longer.push_back(std::byte{0});
  has(problem_of(longer), "something was appended");
  longer = file;
  longer.insert(longer.begin(), std::byte{0});
  has(problem_of(longer), "has to end at byte");
  // The same member twice: as two entries of one place, and under one name.
  zip_layout zip;
  auto twice = zip.member("a", 0, 0);
  const auto again = zip.member("a", 0, 0), close = zip.directory();
  twice.insert(twice.end(), again.begin(), again.end());
  const std::size_t from = twice.size();
  twice.insert(twice.end(), close.begin(), close.end());
  has(problem_of(twice), "\"a\" stands in it twice");
  poke(twice, from + 47 + 42, 0u);
  has(problem_of(twice), "share the byte 0");
}

TEST_CASE("zip: cut anywhere it is refused; noise is refused or lies inside") {
  for (const auto& file : {python, ours()}) {
    for (std::size_t n = 0; n < file.size(); ++n)
      CHECK(!problem_of({file.begin(), file.begin() + std::ptrdiff_t(n)}).empty());
    random_stream random{9};
    int wrong = 0;
    for (int i = 0; i < 20000; ++i) {
      auto noisy = file;
      for (std::uint32_t k = random.below(4) + 1; k != 0; --k)
        noisy[random.below(static_cast<std::uint32_t>(noisy.size()))] = std::byte(random.below(256));
      std::vector<zip_member> members;
      if (!read_zip(noisy, members).empty()) continue;
      for (const auto& m : members)
        wrong += m.bytes.data() < noisy.data() || m.bytes.data() + m.bytes.size() > noisy.data() + noisy.size();
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("inflate_raw: exactly what was claimed, or a reason") {
  std::vector<zip_member> m;
  REQUIRE(read_zip(python, m) == "");
  const auto packed = m.at(1).bytes;
  byte_list out;
  CHECK(inflate_raw(packed, 22, out) == "its compressed data does not end after the 22 bytes that it claims");
  CHECK(inflate_raw(packed, 24, out).find("are claimed") != std::string::npos);
  CHECK(inflate_raw(packed.first(packed.size() - 1), 23, out).find("stops after") != std::string::npos);
  CHECK(inflate_raw({}, 0, out).find("does not end") != std::string::npos);
  CHECK(inflate_raw(packed, std::uint64_t{1} << 62, out).find("which deflate cannot do") != std::string::npos);
  CHECK(out.empty());
  CHECK(!inflate_raw(bytes_of("no deflate data at all, this is"), 23, out).empty());
}
