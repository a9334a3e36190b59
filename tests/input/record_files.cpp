#include <gradus/input/record_files.hpp>

#include "reader_files.hpp"

using namespace reader_tests;
using detail::found_record;

namespace {

// Records of a digit n and n letters; '-' begins a header of one byte, '!' a bad record of one byte.
found_record letters(detail::record_files& files, std::string_view bytes, bool last, std::string& out) {
  using enum found_record::kind;
  if (bytes[0] == '-') return {passed, 1};
  if (bytes[0] == '!') {
    files.problem = "shouted";
    return {bad, 1};
  }
  const auto n = static_cast<std::size_t>(bytes[0] - '0');
  if (bytes.size() < n + 1 && !last) return {partial, 0};
  out = bytes.substr(1, n);
  return {whole, std::min(n + 1, bytes.size()), 0};
}
strings records_of(detail::record_files& files) {
  strings all;
  for (std::string one;;) try {
      if (!files.next([&](std::string_view b, bool last) { return letters(files, b, last, one); })) return all;
      all.push_back(one);
    } catch (const error& e) {
      all.push_back(e.what());
    }
}
detail::record_files open(const disk& d, file_list files, bool ignore = false,
                          std::uint64_t most = std::uint64_t{1} << 26) {
  return {"letters", std::move(files), {compression_type::automatic, ignore, {.record_bytes = most}}, d};
}

}  // namespace

TEST_CASE("records of several files; headers are none; bad ones are raised or counted") {
  const auto d = disk_with({{"a", "-1a2bb!"}, {"b", ""}, {"c", "!-3ccc"}});
  auto strict = open(d, {"a", "b", "c"});
  CHECK(records_of(strict) == strings{"a", "bb", "letters \"a\", record 3 (line 2, byte 6): shouted",
                                      "letters \"c\", record 1 (line 1, byte 0): shouted", "ccc"});
  CHECK(strict.skipped() == 0);
  auto forgiving = open(d, {"a", "b", "c"}, true);
  CHECK(records_of(forgiving) == strings{"a", "bb", "ccc"});
  CHECK(forgiving.skipped() == 2);
  forgiving.rewind();
  CHECK(records_of(forgiving).size() == 3);
  CHECK(forgiving.skipped() == 4);
}

TEST_CASE("a copy, and a position, go on from the same place") {
  const auto d = disk_with({{"a", "1a2bb0"}, {"b", gzipped_text("!3ccc1d")}});
  const strings all = {"a", "bb", "", "ccc", "d"};
  for (std::size_t k = 0; k <= all.size(); ++k) {
    auto files = open(d, {"a", "b"}, true);
    std::string one;
    for (std::size_t i = 0; i < k; ++i)
      REQUIRE(files.next([&](std::string_view b, bool last) { return letters(files, b, last, one); }));
    auto copy = files;
    std::vector<std::byte> bytes;
    position_writer to(bytes);
    files.write(to);
    auto other = open(d, {"a", "b"}, true);
    for (const bool apply : {false, true}) {
      position_reader from(bytes, apply);
      other.read(from);
      CHECK(from.left() == 0);
    }
    const strings rest(all.begin() + static_cast<std::ptrdiff_t>(k), all.end());
    CHECK(records_of(copy) == rest);
    CHECK(records_of(other) == rest);
    CHECK(records_of(files) == rest);
    CHECK(other.skipped() == 1);
  }
}

TEST_CASE("a definition holds names, not directories") {
  const auto definition = [](file_list files) { return open(disk(), std::move(files)).definition(); };
  CHECK(definition("x/a.csv") == "\"a.csv\"");
  CHECK(definition({"x/a", "x/b"}) == definition({"y/a", "y/b"}));
  CHECK(definition({"a", "b"}) != definition({"b", "a"}));
  CHECK(definition({"a", "bc"}) != definition({"a", "b", "c"}));
  CHECK(definition({"a", "bc"}) != definition({"a", "cb"}));
}

TEST_CASE("damaged positions") {
  auto files = open(disk_with({{"a", "1a"}}), "a");
  for (const std::vector<std::int64_t>& numbers :
       {std::vector<std::int64_t>{2, 0, 0, 0, 0}, {-1, 0, 0, 0, 0}, {0, -1, 0, 0, 0}, {0, 0, 0, 0}}) {
    std::vector<std::byte> bytes;
    position_writer to(bytes);
    for (const auto n : numbers) to.number(n);
    position_reader from(bytes, false);
    CHECK(message_of(status::data_loss, [&] { files.read(from); }).find("damaged") != std::string::npos);
  }
  CHECK(records_of(files) == strings{"a"});
}

TEST_CASE("a record above the limit is passed over to the end of its line") {
  const auto d = disk_with({{"a", "1a9bbbbbbbbb\n1c"}});
  auto files = open(d, "a", false, 5);
  const auto all = records_of(files);
  REQUIRE(all.size() >= 2);
  CHECK(all[0] == "a");
  CHECK(all[1].find("letters \"a\", record 2 (line 1, byte 2): expected at most 5 bytes, found more") == 0);
}

TEST_CASE("a device that fails costs no record, and is never passed over") {
  auto d = disk_with({{"a", "1a2bb3ccc"}, {"b", "1d"}});
  std::size_t failed = 0;
  for (std::int64_t at = 0; at < 12; ++at) {
    auto files = open(d, {"a", "b"}, true);
    d.count_from_zero();
    d.plan({.at = at, .error = EIO});
    strings found;
    for (const auto& r : records_of(files))
      if (r.find("cannot ") != std::string::npos)
        ++failed;
      else
        found.push_back(r);
    d.plan({});
    CHECK(found == strings{"a", "bb", "ccc", "d"});
    CHECK(files.skipped() == 0);
  }
  CHECK(failed >= 4);
}
