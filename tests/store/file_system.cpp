#include "gradus/store/file_system.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "gradus/testing/temp_dir.hpp"

using namespace gradus;
using gradus::testing::temp_dir;

TEST_CASE("paths") {
  CHECK(directory_of("a") == ".");
  CHECK(directory_of("/a") == "/");
  CHECK(directory_of("x/y/a") == "x/y");
  CHECK(file_name_of("x/y/a") == "a");
  CHECK(file_name_of("a") == "a");
  CHECK(join_path("x", "a") == "x/a");
  CHECK(join_path("x/", "a") == "x/a");
  CHECK(join_path(".", "a") == "a");
  CHECK(join_path("x", "/a") == "/a");
  CHECK(is_temporary(temporary_name("x/model-1.ckpt", 12)));
  for (const char* name : {"model.ckpt", "a.gradus-tmp-", "a.gradus-tmp-1x", "gradus-tmp-1"})
    CHECK(!is_temporary(name));
}

TEST_CASE("posix: each operation says what the kernel said") {
  const temp_dir dir;
  const posix fs;
  const std::string a = dir / "a", b = dir / "b";
  const std::byte three[3] = {std::byte{1}, std::byte{2}, std::byte{3}};
  int h = -1;
  std::size_t moved = 0;
  std::uint64_t size = 0;
  CHECK(fs.exists(a) == ENOENT);
  CHECK(fs.open_read(a, h, size) == ENOENT);
  REQUIRE(fs.create(a, h) == 0);
  CHECK(fs.write(h, three, moved) == 0);
  CHECK(moved == 3);
  CHECK(fs.sync(h) == 0);
  CHECK(fs.close(h) == 0);
  CHECK(fs.close(h) == EBADF);
  CHECK(fs.create(a, h) == EEXIST);
  REQUIRE(fs.open_append(a, h) == 0);
  CHECK(fs.write(h, std::span(three).first(1), moved) == 0);
  CHECK(fs.close(h) == 0);
  CHECK(fs.rename(a, b) == 0);
  REQUIRE(fs.open_read(b, h, size) == 0);
  CHECK(size == 4);
  std::byte into[8];
  CHECK(fs.read(h, into, moved) == 0);
  CHECK(moved == 4);
  CHECK(into[3] == std::byte{1});
  CHECK(fs.read(h, into, moved) == 0);
  CHECK(moved == 0);
  CHECK(fs.close(h) == 0);
  CHECK(fs.make_directory(a) == 0);
  CHECK(fs.make_directory(a) == EEXIST);
  CHECK(fs.open_read(a, h, size) == EISDIR);
  CHECK(fs.sync_directory(a) == 0);
  std::vector<std::string> names;
  CHECK(fs.list(dir.path(), names) == 0);
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"a", "b"});
  CHECK(fs.remove(b) == 0);
  CHECK(fs.list(b, names) == ENOENT);
}

TEST_CASE("a locked file is found at its path, missed, or replaced") {
  const temp_dir dir;
  const posix fs;
  int h = -1, other = -1;
  long owner = -1;
  REQUIRE(fs.lock(dir / "lock", h, owner) == 0);
  CHECK(fs.locked_at(dir / "lock", h) == 0);
  REQUIRE(::symlink("lock", (dir / "link").c_str()) == 0);
  CHECK(fs.locked_at(dir / "link", h) == 0);
  CHECK(fs.locked_at(dir / "lock/below", h) == ENOENT);
  REQUIRE(fs.rename(dir / "lock", dir / "moved") == 0);
  CHECK(fs.locked_at(dir / "lock", h) == ENOENT);
  REQUIRE(fs.lock(dir / "lock", other, owner) == 0);  // nobody is in the way
  CHECK(fs.locked_at(dir / "lock", h) == ESTALE);
  CHECK(fs.locked_at(dir / "moved", h) == 0);
  fs.unlock(other), fs.unlock(h);
  CHECK(fs.locked_at(dir / "moved", h) == EBADF);
}
