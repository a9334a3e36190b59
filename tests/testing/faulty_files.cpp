#include "gradus/testing/faulty_files.hpp"

#include <doctest/doctest.h>

using namespace gradus;
using gradus::testing::faulty_files;
using gradus::testing::killed;

namespace {
std::span<const std::byte> bytes(std::string_view s) { return std::as_bytes(std::span(s.data(), s.size())); }
std::string content(const faulty_files& fs, const std::string& path) {
  if (!fs.holds(path)) return "(none)";
  const auto& b = fs.bytes(path);
  return {reinterpret_cast<const char*>(b.data()), b.size()};
}
// What a power failure may leave of one file, as text.
std::set<std::string> left_of(const faulty_files& fs, const std::string& path) {
  std::set<std::string> out;
  fs.after_power_failure([&](const faulty_files& after) { out.insert(content(after, path)); });
  return out;
}
}  // namespace

TEST_CASE("faulty_files: it is a file system") {
  const faulty_files fs;
  publish(fs, "a", "hello");
  CHECK(content(fs, "a") == "hello");
  const auto same = fs;
  publish(same, "a", "bye");
  CHECK(content(fs, "a") == "bye");
  int h = 0;
  std::uint64_t size = 0;
  CHECK(fs.create("a", h) == EEXIST);
  CHECK(fs.create("no/a", h) == ENOENT);
  CHECK(fs.create("a/b", h) == ENOTDIR);
  CHECK(fs.open_read("b", h, size) == ENOENT);
  CHECK(fs.make_directory("d") == 0);
  CHECK(fs.make_directory("d") == EEXIST);
  CHECK(fs.open_read("d", h, size) == EISDIR);
  CHECK(fs.exists("d") == 0);
  publish(fs, "d/c", "x");
  std::vector<std::string> names;
  CHECK(fs.list("d", names) == 0);
  CHECK(names == std::vector<std::string>{"c"});
  CHECK(fs.remove("d/c") == 0);
  CHECK(fs.remove("d/c") == ENOENT);
  CHECK(fs.close(99) == EBADF);
}

TEST_CASE("faulty_files: faults come where they are planned") {
  const faulty_files fs;
  int h = 0;
  std::size_t moved = 0;
  fs.plan({.at = 1, .error = ENOSPC});
  CHECK(fs.create("a", h) == 0);
  CHECK(fs.write(h, bytes("xyz"), moved) == ENOSPC);
  CHECK(fs.write(h, bytes("xyz"), moved) == 0);
  CHECK(fs.operations() == 3);
  fs.plan({.at = 3, .error = EIO, .persistent = true});
  CHECK(fs.write(h, bytes("1"), moved) == EIO);
  CHECK(fs.write(h, bytes("1"), moved) == EIO);
  CHECK(fs.sync(h) == 0);  // another kind of operation
  fs.plan({.at = fs.operations(), .short_write = true});
  CHECK(fs.write(h, bytes("123"), moved) == 0);
  CHECK(moved == 1);
  CHECK(content(fs, "a") == "xyz1");
}

TEST_CASE("faulty_files: a killed process does nothing more, and its files stay as they were") {
  const faulty_files fs;
  int h = 0;
  std::size_t moved = 0;
  CHECK(fs.create("a", h) == 0);
  fs.plan({.at = 1, .kill = true});
  CHECK_THROWS_AS(fs.write(h, bytes("12345678"), moved), killed);
  CHECK(fs.remove("a") == EIO);
  const auto after = fs.after_kill();
  CHECK(content(after, "a") == "1234");
  CHECK(after.open_handles() == 0);
  CHECK(after.remove("a") == 0);
  CHECK(fs.holds("a"));  // another disk now
}

TEST_CASE("faulty_files: data that was not synced may be lost from any 512 bytes on") {
  const faulty_files fs;
  int h = 0;
  std::size_t moved = 0;
  CHECK(fs.create("a", h) == 0);
  CHECK(fs.sync_directory(".") == 0);
  CHECK(left_of(fs, "a") == std::set<std::string>{""});
  const std::string data = std::string(512, 'x') + std::string(512, 'y') + "z";
  CHECK(fs.write(h, bytes(data), moved) == 0);
  const auto zeros = [](std::size_t n) { return std::string(n, '\0'); };
  const std::set<std::string> expected{"",
                                       data.substr(0, 512),
                                       data.substr(0, 1024),
                                       data,  // prefixes
                                       zeros(1025),
                                       data.substr(0, 512) + zeros(513),
                                       data.substr(0, 1024) + zeros(1),  // the length came first
                                       zeros(512) + data.substr(512),
                                       data.substr(0, 512) + zeros(512) + "z"};  // one sector did not come
  CHECK(left_of(fs, "a") == expected);
  CHECK(fs.sync(h) == 0);
  CHECK(left_of(fs, "a") == std::set<std::string>{data});
}

TEST_CASE("faulty_files: what is written over synced bytes is there, or not, sector by sector") {
  const faulty_files fs;
  int h = 0;
  std::size_t moved = 0;
  const std::string old = std::string(512, 'a') + std::string(512, 'b') + "c";
  CHECK(fs.create("f", h) == 0);
  CHECK(fs.sync_directory(".") == 0);
  CHECK(fs.write(h, bytes(old), moved) == 0);
  CHECK(fs.sync(h) == 0);
  CHECK(fs.rewind(h) == 0);
  CHECK(fs.write(h, bytes(std::string(600, 'x')), moved) == 0);
  const std::string now = std::string(600, 'x') + old.substr(600);
  CHECK(content(fs, "f") == now);
  CHECK(content(fs.after_kill(), "f") == now);
  const std::set<std::string> expected{now, old, old.substr(0, 512) + now.substr(512),
                                       now.substr(0, 512) + old.substr(512)};
  CHECK(left_of(fs, "f") == expected);
  CHECK(left_of(fs.after_kill(), "f") == expected);
  CHECK(fs.sync(h) == 0);
  CHECK(left_of(fs, "f") == std::set<std::string>{now});
  CHECK(fs.rewind(h) == 0);
  CHECK(fs.write(h, bytes(old + "end"), moved) == 0);
  CHECK(left_of(fs, "f").count(now + "en") == 0);
  CHECK(left_of(fs, "f").count(now + "end") == 1);
  CHECK(left_of(fs, "f").count(now) == 1);
  int other = 0;
  CHECK(fs.open_append("f", other) == 0);
  CHECK(fs.write(other, bytes("!"), moved) == 0);
  CHECK(content(fs, "f") == old + "end!");
}

TEST_CASE("faulty_files: names that were not synced may be lost, in any combination") {
  const faulty_files fs;
  publish(fs, "a", "old");
  int h = 0;
  std::size_t moved = 0;
  CHECK(fs.create("t", h) == 0);
  CHECK(fs.write(h, bytes("new"), moved) == 0);
  CHECK(fs.sync(h) == 0);
  CHECK(fs.rename("t", "a") == 0);
  std::set<std::pair<std::string, std::string>> seen;
  const auto count = fs.after_power_failure([&](const faulty_files& after) {
    seen.insert({content(after, "a"), content(after, "t")});
  });
  CHECK(seen == std::set<std::pair<std::string, std::string>>{{"old", "(none)"}, {"old", "new"}, {"new", "(none)"}});
  CHECK(count == seen.size());
  CHECK(fs.sync_directory(".") == 0);
  CHECK(left_of(fs, "a") == std::set<std::string>{"new"});
}

TEST_CASE("faulty_files: a directory that was not synced takes its files along") {
  const faulty_files fs;
  CHECK(fs.make_directory("d") == 0);
  publish(fs, "d/a", "x");
  CHECK(left_of(fs, "d/a") == std::set<std::string>{"(none)", "x"});
  CHECK(fs.sync_directory(".") == 0);
  CHECK(left_of(fs, "d/a") == std::set<std::string>{"x"});
}
