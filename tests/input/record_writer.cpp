#include <gradus/input/record_writer.hpp>

#include <gradus/input/example.hpp>
#include <gradus/testing/faulty_files.hpp>

#include <doctest/doctest.h>

#include "record_bytes.hpp"

#include <sys/stat.h>

#include "../message.hpp"
#include "gradus/testing/temp_dir.hpp"

using namespace gradus;
using record_bytes::four;
using record_bytes::hex;
using record_bytes::octets;
using record_bytes::plain;
using record_bytes::put;
using testing::faulty_files;

namespace {

// What the file holds now, decompressed if it is compressed.
octets content(const faulty_files& disk, const std::string& path) {
  const auto& bytes = disk.bytes(path);
  return is_gzip(bytes) || is_zlib(bytes) ? inflate(bytes, 1 << 24, path) : bytes;
}

constexpr compression_type ways[] = {compression_type::none, compression_type::gzip, compression_type::zlib};

}  // namespace

TEST_CASE("records, plain and compressed") {
  faulty_files disk;
  for (const auto how : ways) {
    record_writer out("a", {.compression = how}, disk);
    for (const auto& r : four) out.write(r);
    CHECK(out.records() == 4);
    out.close();
    out.close();
    CHECK(content(disk, "a") == plain());
    CHECK(is_gzip(disk.bytes("a")) == (how == compression_type::gzip));
    CHECK(is_zlib(disk.bytes("a")) == (how == compression_type::zlib));
    CHECK(message_of(status::failed_precondition, [&] { out.write("x"); }) ==
          "the record writer of \"a\" is closed; make another one");
  }
  {
    record_writer by_name("b.gz", {}, disk);  // closed by the destructor
    by_name.write(four[0]);
  }
  CHECK(is_gzip(disk.bytes("b.gz")));
  CHECK(content(disk, "b.gz") == plain({"first"}));
  CHECK(message_of(status::invalid_argument, [&] { record_writer bad("c.gz", {.level = 10}, disk); }) ==
        "cannot compress at level 10; expected 0 to 9, or -1 for zlib's");
}

TEST_CASE("the worked example of docs/formats/tfrecord.md") {
  faulty_files disk;
  record_writer out("a", {}, disk);
  example_builder e;
  e.add_floats("x", {1, -2}).add_ints("y", {3}).add_text("s", {"hi"});
  out.write(e);
  out.close();
  CHECK(disk.bytes("a") == hex("2e 00 00 00 00 00 00 00 c5 cb 57 fa 0a 2c 0a 11 0a 01 78 12 0c 12 0a 0a 08 00 00 80 "
                               "3f 00 00 00 c0 0a 0a 0a 01 79 12 05 1a 03 0a 01 03 0a 0b 0a 01 73 12 06 0a 04 0a 02 "
                               "68 69 f1 89 95 75"));
}

TEST_CASE("examples, bytes") {
  faulty_files disk;
  record_writer out("a", {}, disk);
  example_builder e;
  e.add_ints("y", {3});
  out.write(e);
  out.write(e.bytes());
  out.close();
  octets expected;
  append_record(expected, e.bytes());
  append_record(expected, e.bytes());
  CHECK(disk.bytes("a") == expected);
}

TEST_CASE("what is no regular file is not replaced") {
  const testing::temp_dir dir;
  const auto refused = [](const std::string& path) {
    return message_of(status::invalid_argument, [&] { record_writer<> out(path); });
  };
  CHECK(refused(dir.path()).find("cannot replace") == 0);
  REQUIRE(::mkfifo((dir / "pipe").c_str(), 0600) == 0);
  CHECK(refused(dir / "pipe").find("this is no regular file: choose another path") != std::string::npos);
  CHECK(posix{}.exists(dir / "pipe") == 0);
}

TEST_CASE("what is there is replaced, or goes on") {
  faulty_files disk;
  for (const auto how : ways) {
    CAPTURE(name_of(how));
    for (const bool append : {false, true, true}) {
      if (append && how == compression_type::zlib) {
        CHECK(message_of(status::invalid_argument, [&] {
                record_writer out("a", {.compression = how, .append = true}, disk);
              }).starts_with("cannot append to \"a\": nothing can follow the end of zlib data"));
        continue;
      }
      record_writer out("a", {.compression = how, .append = append}, disk);
      out.write("r");
      out.close();
    }
    const std::size_t n = how == compression_type::zlib ? 1 : 3;
    CHECK(content(disk, "a") == plain(std::vector<std::string>(n, "r")));
  }
  auto torn = plain();
  torn.resize(370);
  put(disk, "a", torn);
  CHECK(message_of(status::data_loss, [&] {
          record_writer out("a", {.append = true}, disk);
        }).starts_with("cannot append to \"a\": its records are whole up to byte 353 only"));
  CHECK(disk.bytes("a") == torn);
  put(disk, "a", {});
  record_writer<faulty_files>("a", {.compression = compression_type::zlib, .append = true}, disk).write("r");
  CHECK(content(disk, "a") == plain({"r"}));
}

TEST_CASE("flush: all so far can be read") {
  faulty_files disk;
  record_writer out("a.gz", {}, disk);
  out.write(four[0]);
  out.flush();
  inflate_stream so_far(disk.bytes("a.gz"), "a.gz");
  octets first(21);
  CHECK(so_far.read(first) == 21);
  CHECK(first == plain({"first"}));
  out.sync();
  CHECK(disk.bytes("a.gz").size() > 0);
  out.close();
  CHECK(content(disk, "a.gz") == plain({"first"}));
}

TEST_CASE("whatever fails, what was taken is in the file once close returned, in order, once") {
  for (const auto how : ways)
    for (const bool short_writes : {false, true}) {
      std::int64_t operations = 1;
      for (std::int64_t at = 0; at < operations; ++at) {
        CAPTURE(at);
        faulty_files disk;
        if (short_writes) disk.short_writes(7);
        std::vector<std::string> taken;
        int errors = 0;
        disk.plan({.at = at, .error = ENOSPC});
        const auto attempt = [&](auto&& f) {
          try {
            f();
            return true;
          } catch (const error&) {
            return ++errors, false;
          }
        };
        std::optional<record_writer<faulty_files>> out;
        const auto make = [&] {
          out.emplace("a", record_writer_options{.compression = how, .buffer_bytes = 50}, disk);
        };
        if (!attempt(make)) make();
        for (int i = 0; i < 12; ++i) {
          const std::string r = text("record ", i, " 0123456789", i * 7919);
          if (attempt([&] { out->write(r); })) taken.push_back(r);
          if (i == 5) attempt([&] { out->flush(); });
        }
        if (!attempt([&] { out->close(); })) out->close();
        if (at == 0) operations = disk.operations() + 1;
        REQUIRE(errors <= 1);
        REQUIRE(content(disk, "a") == plain(taken));
      }
    }
}
