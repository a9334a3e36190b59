#include "gradus/testing/temp_dir.hpp"

#include <doctest/doctest.h>

using namespace gradus;
using gradus::testing::temp_dir;

TEST_CASE("temp_dir: unique while it lives, gone afterwards, links not followed") {
  const temp_dir other;
  publish(posix{}, other / "keep", "x");
  std::string path;
  {
    const temp_dir dir;
    path = dir.path();
    CHECK(path != other.path());
    make_directories(posix{}, dir / "a/b");
    publish(posix{}, dir / "a/b/c", "x");
    REQUIRE(::symlink(other.path().c_str(), (dir / "link").c_str()) == 0);
    CHECK(posix{}.exists(path) == 0);
  }
  CHECK(posix{}.exists(path) == ENOENT);
  CHECK(posix{}.exists(other / "keep") == 0);
}
