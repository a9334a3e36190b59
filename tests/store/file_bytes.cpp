#include "gradus/store/file_bytes.hpp"

#include <doctest/doctest.h>

#include "gradus/testing/faulty_files.hpp"
#include "gradus/testing/temp_dir.hpp"

using namespace gradus;
using gradus::testing::faulty_files;
using gradus::testing::temp_dir;

namespace {

// The operating system's files; counts the mappings that live.
struct mapping : posix {
  int* live;
  bool refuses = false;
  explicit mapping(int& count, bool no = false) : live(&count), refuses(no) {}
  int map(const std::string& path, std::span<const std::byte>& bytes) const {
    if (refuses) return ENODEV;
    const int e = posix::map(path, bytes);
    if (e == 0) ++*live;
    return e;
  }
  void unmap(std::span<const std::byte> bytes) const {
    --*live;
    posix::unmap(bytes);
  }
};
static_assert(maps_files<mapping> && maps_files<posix> && !maps_files<faulty_files>);

std::string content_of(std::size_t n) {
  std::string s(n, ' ');
  for (std::size_t i = 0; i < n; ++i) s[i] = static_cast<char>(i * 31 + i / 1000);
  return s;
}
bool same(std::span<const std::byte> bytes, const std::string& s) {
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()) == s;
}

}  // namespace

TEST_CASE("file_bytes: small files are read, large ones mapped, both are the file's bytes") {
  const temp_dir dir;
  for (const bool refuses : {false, true})
    for (const std::size_t n : {std::size_t{0}, std::size_t{5}, std::size_t{1} << 20, (std::size_t{1} << 20) + 77}) {
      CAPTURE(n);
      int live = 0;
      const auto s = content_of(n);
      publish(posix{}, dir / "f", s);
      {
        file_bytes<mapping> f(mapping(live, refuses));
        CHECK(!f.open(dir / "f"));
        CHECK(same(f.bytes(), s));
        CHECK(live == (n >= 1 << 20 && !refuses ? 1 : 0));
        const auto* before = f.bytes().data();
        const auto moved = std::move(f);
        CHECK(same(moved.bytes(), s));
        CHECK(moved.bytes().data() == before);  // views into it stay good
      }
      CHECK(live == 0);
    }
}

TEST_CASE("file_bytes: a mapped file that is replaced keeps its bytes") {
  const temp_dir dir;
  const auto s = content_of(2 << 20);
  publish(posix{}, dir / "f", s);
  file_bytes<posix> f;
  REQUIRE(!f.open(dir / "f"));
  publish(posix{}, dir / "f", "something else");
  CHECK(same(f.bytes(), s));
  REQUIRE(!f.open(dir / "f"));  // opening again forgets the old one
  CHECK(same(f.bytes(), "something else"));
}

TEST_CASE("file_bytes: what is too large or is no file is refused") {
  const temp_dir dir;
  publish(posix{}, dir / "small", content_of(100));
  publish(posix{}, dir / "large", content_of(3 << 20));
  int live = 0;
  file_bytes<mapping> f(mapping{live});
  for (const char* name : {"small", "large"}) {
    const auto p = f.open(dir / name, 99);
    CHECK(p.error == EFBIG);
    CHECK(p.path == dir / name);
    CHECK(f.bytes().empty());
  }
  CHECK(f.open(dir / "none").error == ENOENT);
  CHECK(f.open(dir.path()).error == EISDIR);
  CHECK(live == 0);
}

TEST_CASE("file_bytes: every error at every operation is told, and no handle is left open") {
  const faulty_files fs;
  publish(fs, "f", content_of(3000));
  std::int64_t at = 0;
  for (int failed = 0;; ++at) {
    fs.count_from_zero();
    fs.plan({.at = at, .error = EIO, .persistent = true});
    file_bytes<faulty_files> f(fs);
    const auto p = f.open("f");
    const auto done = fs.operations();
    fs.plan({});
    CHECK(fs.open_handles() == 0);
    if (p) {
      ++failed;
      CHECK(p.error == EIO);
      CHECK(p.path == "f");
      CHECK(f.bytes().empty());
    } else {
      CHECK(same(f.bytes(), content_of(3000)));
    }
    if (at < done) continue;
    CHECK(!p);
    CHECK(failed >= 2);  // open, read
    break;
  }
}
