#include <gradus/store/file_stream.hpp>
#include <gradus/testing/faulty_files.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include "../message.hpp"

using namespace gradus;

namespace {

// "hello hello hello hello\n" by gzip 1.12 -9n, and by Python's zlib.compress(..., 9).
const std::vector<std::uint8_t> hello_gz = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03,
                                            0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57, 0xc8, 0x40, 0x27, 0xb9,
                                            0x00, 0x00, 0x88, 0x59, 0x0b, 0x18, 0x00, 0x00, 0x00};
const std::vector<std::uint8_t> hello_zlib = {0x78, 0xda, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57, 0xc8,
                                              0x40, 0x27, 0xb9, 0x00, 0x70, 0xbe, 0x08, 0xbb};
const std::string hello = "hello hello hello hello\n";

std::string_view as_chars(const std::vector<std::uint8_t>& v) {
  return {reinterpret_cast<const char*>(v.data()), v.size()};
}
std::string as_chars(std::span<const std::byte> v) { return {reinterpret_cast<const char*>(v.data()), v.size()}; }
std::string rest_of(file_stream& in, std::size_t step = 5) {
  std::string out;
  std::vector<std::byte> piece(step);
  for (std::size_t n = 0; (n = in.read(piece)) != 0;) out += as_chars(std::span(piece).first(n));
  return out;
}
}  // namespace

TEST_CASE("plain, gzip and zlib, through buffers of any size, entered anywhere, on disks that seek or not") {
  const testing::temp_dir dir;
  const testing::faulty_files disk;  // cannot seek
  const std::pair<std::string, std::string> files[] = {
      {"plain", hello}, {"gz", std::string(as_chars(hello_gz))}, {"z", std::string(as_chars(hello_zlib))}};
  for (const auto& [name, bytes] : files) {
    publish(posix{}, dir / name, bytes);
    publish(disk, name, bytes);
  }
  const auto check = [&](const std::string& path, compression_type found, const auto& fs) {
    for (const std::size_t buffer : {std::size_t{1}, std::size_t{3}, std::size_t{7}, std::size_t{100}}) {
      file_stream in(path, compression_type::automatic, fs, buffer);
      CHECK(in.compression() == found);
      CHECK(rest_of(in) == hello);
      CHECK(in.offset() == hello.size());
      for (std::size_t at = 0; at <= hello.size(); at += 3) {
        REQUIRE(in.seek(at));
        CHECK(in.offset() == at);
        const auto four = in.ahead(4);
        CHECK(four.size() >= std::min<std::size_t>(4, hello.size() - at));
        CHECK(as_chars(four) == hello.substr(at, four.size()));
        if (at % 2 == 0 && at + 2 < hello.size()) {
          in.pass(2);
          REQUIRE(rest_of(in) == hello.substr(at + 2));
        }
      }
      CHECK_FALSE(in.seek(hello.size() + 1));
      CHECK(in.offset() == hello.size());
      CHECK(in.ahead(1).empty());
      REQUIRE(in.seek(0));
      CHECK(as_chars(in.ahead(1000)) == hello);
    }
  };
  using enum compression_type;
  check(dir / "plain", none, posix{}), check(dir / "gz", gzip, posix{}), check(dir / "z", zlib, posix{});
  check("plain", none, disk), check("gz", gzip, disk), check("z", zlib, disk);
  CHECK(disk.open_handles() == 0);
}

TEST_CASE("what is told wins over what is found") {
  const testing::temp_dir dir;
  publish(posix{}, dir / "a", as_chars(hello_gz));
  publish(posix{}, dir / "b", hello);
  publish(posix{}, dir / "empty", std::string_view());
  file_stream as_it_is(dir / "a", compression_type::none);
  CHECK(rest_of(as_it_is) == as_chars(hello_gz));
  CHECK(message_of(status::data_loss, [&] { file_stream(dir / "b", compression_type::gzip).ahead(1); }) ==
        dir / "b" +
            ": expected gzip data, found something else at byte 0; let the compression be found out "
            "(automatic), or get the file again");
  CHECK(message_of(status::data_loss, [&] {
          file_stream(dir / "a", compression_type::zlib).ahead(1);
        }).find("expected zlib data") != std::string::npos);
  file_stream empty(dir / "empty");
  CHECK(empty.ahead(1).empty());
  CHECK(message_of(status::not_found, [&] { file_stream(dir / "c"); }).find("No such file") != std::string::npos);
}

TEST_CASE("text and records that begin like zlib data are none") {
  const testing::temp_dir dir;
  for (const std::string& content :
       {std::string("x^2,y\n1,2\n3,4\n"), std::string("x^"), std::string("\x78\x01\0\0\0\0\0\0abcdefgh", 16)}) {
    publish(posix{}, dir / "t", content);
    file_stream in(dir / "t");
    CHECK(in.compression() == compression_type::none);
    CHECK(rest_of(in) == content);
  }
}

TEST_CASE("in front of damage all is given") {
  const testing::temp_dir dir;
  // Cut in the checksum: all of the content has come by then.
  publish(posix{}, dir / "cut", as_chars(hello_gz).substr(0, 24));
  file_stream in(dir / "cut");
  CHECK(as_chars(in.ahead(1)) == hello);
  CHECK(message_of(status::data_loss, [&] { in.ahead(hello.size() + 1); }) ==
        dir / "cut" +
            ": the compressed data stops after 24 bytes, before its end; the file is truncated, get it again");
  CHECK(as_chars(in.ahead(hello.size())) == hello);
  std::vector<std::byte> all(100);
  CHECK(in.read(all) == hello.size());
  CHECK(message_of(status::data_loss, [&] { in.read(all); }).find("truncated") != std::string::npos);
}
