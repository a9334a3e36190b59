#include <gradus/input/tf_record.hpp>
#include <gradus/store/crc32c.hpp>

#include <gradus/input/dataset.hpp>
#include <gradus/testing/faulty_files.hpp>

#include <stdlib.h>

#include <filesystem>

#include "data.hpp"
#include "record_bytes.hpp"

using namespace data_tests;
using record_bytes::four;
using record_bytes::hex;
using record_bytes::octets;
using record_bytes::plain;
using record_bytes::put;
using testing::faulty_files;

namespace {

using texts = std::vector<std::string>;

std::string record_of(const datum& e) {
  const auto v = e.values<std::uint8_t>("record");
  return {v.begin(), v.end()};
}
texts records_of(auto d) {
  texts out;
  for (const datum& e : d) out.push_back(record_of(e));
  return out;
}
// What comes, errors in their places.
texts with_errors(auto& d) {
  texts out;
  datum e;
  for (bool more = true; more && out.size() < 100;) try {
      more = d.next(e);
      if (more) out.push_back(record_of(e));
    } catch (const error& bad) {
      out.push_back(text(name_of(bad.kind()), ": ", bad.what()));
    }
  return out;
}

faulty_files disk_of_all() {
  faulty_files disk;
  put(disk, "a", plain());
  put(disk, "b.gz", hex(record_bytes::gz));
  put(disk, "c", hex(record_bytes::zlib));
  put(disk, "none", {});
  put(disk, "two.gz", hex(record_bytes::gz_of_two));
  return disk;
}

}  // namespace

TEST_CASE("records, plain and compressed, as their first bytes have it or as is said") {
  const auto bytes = plain();
  CHECK(octets(bytes.begin(), bytes.begin() + 37) == hex(record_bytes::head));
  const auto disk = disk_of_all();
  CHECK(records_of(tf_record("a", {}, disk)) == four);
  CHECK(records_of(tf_record("b.gz", {}, disk)) == four);
  CHECK(records_of(tf_record("c", {}, disk)) == four);
  CHECK(records_of(tf_record("two.gz", {}, disk)) == four);
  CHECK(records_of(tf_record("b.gz", {.compression = compression_type::gzip}, disk)) == four);
  CHECK(records_of(tf_record("c", {.compression = compression_type::zlib}, disk)) == four);
  CHECK(records_of(tf_record("none", {.compression = compression_type::gzip}, disk)).empty());
  CHECK(records_of(tf_record({"none", "a", "none", "b.gz"}, {}, disk)).size() == 8);
  CHECK(records_of(tf_record("a", {.buffer_bytes = 1}, disk)) == four);
  auto d = tf_record("a", {}, disk);
  CHECK(to_text(d.element_spec()) == "record uint8 [-1]");
  CHECK(d.cardinality() == unknown_cardinality);
  CHECK(records_of(d.skip(1).take(2).repeat(2)) == texts{"", four[2], "", four[2]});
  CHECK(message_of(status::invalid_argument, [] { tf_record(std::vector<std::string>{}); }) ==
        "tf_record: expected at least one file");
}

TEST_CASE("a record's length may look like compressed data") {
  faulty_files disk;
  for (const std::size_t n : {0x8b1fU, 0x9c78U}) {
    put(disk, "a", plain({std::string(n, 'a'), "b"}));
    CHECK(records_of(tf_record("a", {}, disk)).at(1) == "b");
  }
}

TEST_CASE("the position, at every record, plain and compressed, in another instance") {
  const auto disk = disk_of_all();
  for (const auto& files : std::vector<texts>{{"a"}, {"b.gz"}, {"c"}, {"a", "none", "two.gz", "c"}}) {
    resumes([&] { return tf_record(files, {}, disk); });
    resumes([&] { return tf_record(files, {}, disk).repeat(2).shuffle(3, 7); });
  }
  resumes([&] { return tf_record({"a", "b.gz"}, {}, disk).prefetch(2); });
}

TEST_CASE("from the disk, where plain files are entered at any byte") {
  std::string folder = (std::filesystem::temp_directory_path() / "gradus-records-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  put(posix{}, folder + "/a", plain());
  put(posix{}, folder + "/b", hex(record_bytes::gz));
  resumes([&] { return tf_record({folder + "/a", folder + "/b"}); });
  std::filesystem::remove_all(folder);
}

TEST_CASE("a position in other files is refused") {
  auto disk = disk_of_all();
  auto d = tf_record({"a", "c"}, {}, disk);
  datum e;
  for (int i = 0; i < 3; ++i) d.next(e);
  std::vector<std::byte> at;
  d.save(at);
  auto other = tf_record({"a", "b.gz"}, {}, disk);
  CHECK(message_of(status::data_loss, [&] {
          other.load(at);
        }).find("but this input is \"tf_record(2 files from \"a\"") != std::string::npos);
  put(disk, "a", plain({"short"}));
  auto again = tf_record({"a", "c"}, {}, disk);
  again.load(at);
  for (int i = 0; i < 2; ++i)
    CHECK(message_of(status::failed_precondition, [&] { again.next(e); }) ==
          "\"a\" ends at byte 21, in front of byte 353, where the saved position is; it is another file, or was cut; "
          "restore_input = "
          "saved_input::ignored reads it from its beginning");
  put(disk, "a", plain());
  CHECK(again.next(e));
  CHECK(record_of(e) == "last");
}

TEST_CASE("damage: file, record, byte; the next call goes on") {
  faulty_files disk;
  put(disk, "good", plain({"good"}));
  const std::string cut = "truncated record: the file ends inside it; those before it are good";
  const std::string payload = "corrupted record: the checksum of its payload is wrong; the next record may be good";
  const std::string header =
      "corrupted record: the checksum of its length is wrong, so nothing after it can be read; is this a TFRecord "
      "file?";
  const auto expect = [&](const octets& bytes, const texts& loud, std::int64_t skipped) {
    put(disk, "a", bytes);
    auto d = tf_record({"a", "good"}, {}, disk);
    CHECK(with_errors(d) == loud);
    CHECK(d.skipped() == 0);
    auto quiet = tf_record({"a", "good"}, {.ignore_errors = true}, disk);
    texts silent;
    for (const auto& s : loud)
      if (!s.starts_with("data_loss")) silent.push_back(s);
    CHECK(with_errors(quiet) == silent);
    CHECK(quiet.skipped() == skipped);
  };
  auto bytes = plain();
  bytes[13] ^= std::byte{1};
  expect(bytes, {"data_loss: tf_record \"a\", record 1 (byte 0): " + payload, "", four[2], "last", "good"}, 1);
  bytes[40] ^= std::byte{1};
  expect(bytes,
         {"data_loss: tf_record \"a\", record 1 (byte 0): " + payload, "",
          "data_loss: tf_record \"a\", record 3 (byte 37): " + header, "good"},
         2);
  bytes = plain();
  for (const std::size_t n : {354U, 364U, 365U, 372U}) {
    bytes = plain();
    bytes.resize(n);
    expect(bytes, {"first", "", four[2], "data_loss: tf_record \"a\", record 4 (byte 353): " + cut, "good"}, 1);
  }
  bytes = hex(record_bytes::gz);
  bytes.resize(bytes.size() - 1);
  expect(bytes,
         {"first", "", four[2], "last",
          "data_loss: tf_record \"a\", record 5 (byte 373): a: the compressed data stops after 80 bytes, before its "
          "end; the file is truncated, get it again",
          "good"},
         1);
  bytes.resize(40);
  put(disk, "a", bytes);
  auto d = tf_record({"a", "good"}, {}, disk);
  const auto found = with_errors(d);
  CHECK(found.back() == "good");
  CHECK(found[found.size() - 2].find("the compressed data stops after 40 bytes") != std::string::npos);
  auto wrong = tf_record({"good", "a"}, {.compression = compression_type::zlib}, disk);
  CHECK(with_errors(wrong).at(0) ==
        "data_loss: tf_record \"good\": expected zlib data, found something else at byte 0; let the compression be "
        "found out (automatic)");
}

TEST_CASE("every bit, every length: good records, an error, or nothing") {
  faulty_files disk;
  for (const auto& whole : {plain(), hex(record_bytes::gz)}) {
    const auto attempt = [&](const octets& bytes) {
      put(disk, "a", bytes);
      auto d = tf_record("a", {.ignore_errors = true, .limits = {.record_bytes = 1000}, .buffer_bytes = 64}, disk);
      std::size_t next = 0;
      for (const auto& r : with_errors(d)) {
        while (next < four.size() && four[next] != r) ++next;
        REQUIRE(next++ < four.size());
      }
    };
    for (std::size_t bit = 0; bit < 8 * whole.size(); bit += 3) {
      auto changed = whole;
      changed[bit / 8] ^= std::byte{1} << (bit % 8);
      attempt(changed);
    }
    for (std::size_t n = 0; n < whole.size(); n += 5) attempt(octets(whole.begin(), whole.begin() + std::ptrdiff_t(n)));
  }
}

TEST_CASE("a length is not believed") {
  faulty_files disk;
  for (const std::uint64_t n : {std::uint64_t{1} << 30, std::uint64_t{1} << 62, ~std::uint64_t{0}}) {
    octets bytes(12 + 40);
    gradus::detail::put_fixed(bytes.data(), n, 8);
    gradus::detail::put_fixed(bytes.data() + 8, mask(crc32c(std::span<const std::byte>(bytes).first(8))), 4);
    put(disk, "a", bytes);
    for (const auto limit : {~std::uint64_t{0}, std::uint64_t{1} << 31}) {
      auto d = tf_record("a", {.limits = {.record_bytes = limit}}, disk);
      const auto found = with_errors(d);
      REQUIRE(found.size() == 1);
      CHECK((
          found[0].find("truncated record") != std::string::npos ||
          found[0].starts_with(text("resource_exhausted: tf_record \"a\", record 1 (byte 0): found a record of ", n))));
    }
  }
  put(disk, "a", plain());
  auto d = tf_record("a", {.limits = {.record_bytes = 299}}, disk);
  CHECK(with_errors(d) ==
        texts{"first", "",
              "resource_exhausted: tf_record \"a\", record 3 (byte 37): found a record of 300 "
              "bytes, the limit is 299; raise reader_limits::record_bytes if the file is to be trusted",
              "last"});
  auto quiet = tf_record("a", {.ignore_errors = true, .limits = {.record_bytes = 4}}, disk);
  CHECK(with_errors(quiet) == texts{"", "last"});
  CHECK(quiet.skipped() == 2);
  std::vector<std::byte> at;
  quiet.save(at);
  auto again = tf_record("a", {.ignore_errors = true, .limits = {.record_bytes = 4}}, disk);
  again.load(at);
  CHECK(again.skipped() == 2);
}

TEST_CASE("a disk that fails for a moment costs no record") {
  const auto disk = disk_of_all();
  CHECK(message_of(status::not_found, [&] { tf_record("x", {.ignore_errors = true}, disk).begin(); }).find("\"x\"") !=
        std::string::npos);
  for (const auto* file : {"a", "two.gz"}) {
    std::int64_t operations = 0;
    {
      disk.count_from_zero();
      CHECK(records_of(tf_record(file, {.buffer_bytes = 16}, disk)) == four);
      operations = disk.operations();
    }
    for (std::int64_t at = 0; at < operations; ++at) {
      disk.count_from_zero();
      disk.plan({.at = at, .error = EIO});
      auto d = tf_record(file, {.buffer_bytes = 16}, disk);
      texts found;
      for (const auto& r : with_errors(d))
        if (r.find("cannot ") == std::string::npos) found.push_back(r);
      disk.plan({});
      REQUIRE(found == four);
    }
  }
}

TEST_CASE("the last record's place, and a record larger than the buffer") {
  faulty_files disk;
  put(disk, "a", plain({"ab", std::string(100000, 'y'), "z"}));
  auto d = tf_record("a", {.buffer_bytes = 100}, disk);
  std::span<const std::byte> payload;
  CHECK(d.next_record(payload));
  CHECK(d.place() == "\"a\", record 1 (byte 0)");
  CHECK(d.next_record(payload));
  CHECK(payload.size() == 100000);
  CHECK(d.next_record(payload));
  CHECK(d.place() == text("\"a\", record 3 (byte ", 18 + 100016, ")"));
}
