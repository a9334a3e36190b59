#include <gradus/store/any_file_system.hpp>

#include <doctest/doctest.h>
#include <gradus/store/directory_lock.hpp>
#include <gradus/store/file_bytes.hpp>
#include <gradus/testing/faulty_files.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <memory>
#include <string>

using namespace gradus;

namespace {

// Files whose open handle is an object of its own, larger than a pointer; only what the concept asks for.
struct wide_handles {
  using policy_for = kind::file_system;
  struct handle {
    std::shared_ptr<int> counted;
    int inner = -1;
    double more[2] = {};
  };
  testing::faulty_files disk;
  std::shared_ptr<int> alive = std::make_shared<int>(0);

  int opened(int e, handle& h, int inner) const {
    if (e == 0) h.counted = alive, h.inner = inner;
    return e;
  }
  int create(const std::string& p, handle& h) const {
    int inner = -1;
    const int e = disk.create(p, inner);
    return opened(e, h, inner);
  }
  int open_append(const std::string& p, handle& h) const {
    int inner = -1;
    const int e = disk.open_append(p, inner);
    return opened(e, h, inner);
  }
  int open_read(const std::string& p, handle& h, std::uint64_t& n) const {
    int inner = -1;
    const int e = disk.open_read(p, inner, n);
    return opened(e, h, inner);
  }
  int write(const handle& h, std::span<const std::byte> b, std::size_t& n) const { return disk.write(h.inner, b, n); }
  int read(const handle& h, std::span<std::byte> b, std::size_t& n) const { return disk.read(h.inner, b, n); }
  int sync(const handle& h) const { return disk.sync(h.inner); }
  int close(const handle& h) const { return disk.close(h.inner); }
  int rename(const std::string& a, const std::string& b) const { return disk.rename(a, b); }
  int remove(const std::string& p) const { return disk.remove(p); }
  int exists(const std::string& p) const { return disk.exists(p); }
  int make_directory(const std::string& p) const { return disk.make_directory(p); }
  int sync_directory(const std::string& p) const { return disk.sync_directory(p); }
  int list(const std::string& p, std::vector<std::string>& names) const { return disk.list(p, names); }
};
static_assert(file_system<wide_handles>);

std::string read_text(const any_file_system& fs, const std::string& path) {
  const auto bytes = read_file(fs, path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

TEST_CASE("a file system whose handles are objects works through the seam, and every handle is let go") {
  const wide_handles files;
  {
    const any_file_system fs = files, copy = fs;
    make_directories(fs, "runs/a");
    publish(fs, "runs/a/model", "first");
    publish(copy, "runs/a/model", "second");
    CHECK(read_text(copy, "runs/a/model") == "second");
    append_file<wide_handles> log(files, "log");
    log.write("a line\n");
    log.sync();
    CHECK(read_text(fs, "log") == "a line\n");
    CHECK(files.disk.open_handles() == 1);
    file_bytes<wide_handles> bytes(files);
    CHECK_FALSE(bytes.open("log"));
    CHECK(bytes.bytes().size() == 7);
    CHECK(bytes.open("nowhere").error == ENOENT);
  }
  CHECK(files.disk.open_handles() == 0);
  CHECK(files.alive.use_count() == 1);  // of every handle that was made, none is left
}

TEST_CASE("what a file system cannot do is asked of it, not of its type") {
  const any_file_system bare = wide_handles{}, disk = testing::faulty_files{}, real;
  CHECK_FALSE((bare.claims() || bare.seeks() || bare.maps() || bare.writes_behind() || bare.rewinds() || bare.locks()));
  CHECK(disk.claims() == claims_files<testing::faulty_files>);
  CHECK(disk.seeks() == seeks_files<testing::faulty_files>);
  CHECK(disk.locks() == locks_files<testing::faulty_files>);
  CHECK(real.claims());
  CHECK(real.seeks());
  CHECK(real.maps());
  CHECK(real.locks());
  CHECK((real.checks() && !bare.checks()));
  // One that cannot lock holds nothing, and nobody is refused.
  const directory_lock<wide_handles> one(wide_handles{}, "d"), two(wide_handles{}, "d");
  CHECK_FALSE((one.held() || two.held()));
}

TEST_CASE("errors of the file system come through as they are") {
  const testing::faulty_files disk;
  const any_file_system fs = disk;
  for (std::int64_t at = 0; at < 4; ++at) {  // create, write, sync, rename
    disk.count_from_zero();
    disk.plan({.at = at, .error = ENOSPC});
    const std::span<const std::byte> piece = std::as_bytes(std::span("text", 4));
    const auto p = try_publish(fs, "f", byte_pieces(&piece, 1));
    if (at < 1 || p) CHECK(p.error == ENOSPC);
    disk.plan({});
    CHECK(disk.open_handles() == 0);
  }
  disk.plan({});
  disk.count_from_zero();
  disk.plan({.at = 1, .kill = true});
  CHECK_THROWS_AS(publish(fs, "g", "text"), testing::killed);
}

TEST_CASE("the operating system's files through the seam are the operating system's files") {
  const testing::temp_dir dir;
  const any_file_system fs;
  publish(fs, dir / "f", "a text");
  std::uint64_t size = 0;
  int own = -1;
  REQUIRE(posix{}.open_read(dir / "f", own, size) == 0);
  CHECK(size == 6);
  any_file_system::handle h{};
  REQUIRE(fs.open_read(dir / "f", h, size) == 0);
  CHECK(fs.seek(h, 2) == 0);
  std::byte two[4];
  std::size_t moved = 0;
  CHECK(fs.read(h, two, moved) == 0);
  CHECK(std::string(reinterpret_cast<const char*>(two), moved) == "text");
  CHECK(fs.close(h) == 0);
  CHECK(posix{}.close(own) == 0);
  REQUIRE(fs.create(dir / "again", h) == 0);
  for (const std::string_view s : {"first", "2nd"}) {
    CHECK(fs.rewind(h) == 0);
    CHECK(fs.write(h, std::as_bytes(std::span(s)), moved) == 0);
  }
  CHECK(fs.close(h) == 0);
  CHECK(read_text(fs, dir / "again") == "2ndst");
}
