#include <gradus/store/directory_tree.hpp>

#include <gradus/testing/faulty_files.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>

using namespace gradus;
using namespace gradus::detail;

namespace {
std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> out;
  posix{}.list(path, out);
  std::sort(out.begin(), out.end());
  return out;
}
std::span<const std::byte> bytes_of_text(std::string_view s) { return std::as_bytes(std::span(s.data(), s.size())); }
}  // namespace

TEST_CASE("a directory gets its name when it is whole") {
  testing::temp_dir dir;
  {
    staged_directory d(posix{}, dir / "out/17");
    d.write("a.txt", bytes_of_text("one"));
    d.write("deep/er/b.txt", bytes_of_text("two"));
    const auto during = names_in(dir / "out");  // the directory, and the mark of its writer
    CHECK((during.size() == 2 &&
           std::all_of(during.begin(), during.end(), [](const auto& n) { return is_temporary(n); })));
    CHECK(d.reveal(dir / "out/17"));
  }
  CHECK(names_in(dir / "out") == std::vector<std::string>{"17"});
  CHECK(names_in(dir / "out/17") == std::vector<std::string>{"a.txt", "deep"});
  CHECK(read_file(posix{}, dir / "out/17/deep/er/b.txt").size() == 3);
}

TEST_CASE("what a killed process left goes away with the next directory, and a living one's stays") {
  testing::temp_dir dir;
  make_directories(posix{}, dir / "out");
  publish(posix{}, dir / "out/precious.gradus-tmp-", "no temporary");
  for (int i = 0; i < 3; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      staged_directory d(posix{}, dir / "out/17");
      d.write("deep/a.txt", bytes_of_text("one"));
      ::kill(::getpid(), SIGKILL);
    }
    int how = 0;
    REQUIRE(::waitpid(child, &how, 0) == child);
    CHECK(names_in(dir / "out").size() == 3);  // one is there, however many were killed before
  }
  staged_directory lives(posix{}, dir / "out/18");
  lives.write("b.txt", bytes_of_text("two"));
  {
    staged_directory d(posix{}, dir / "out/17");
    d.write("a.txt", bytes_of_text("one"));
    CHECK(d.reveal(dir / "out/17"));
  }
  CHECK(lives.reveal(dir / "out/18"));
  CHECK(names_in(dir / "out") == std::vector<std::string>{"17", "18", "precious.gradus-tmp-"});
  CHECK(names_in(dir / "out/18") == std::vector<std::string>{"b.txt"});
}

TEST_CASE("nothing is replaced, and what got no name goes away") {
  testing::temp_dir dir;
  make_directories(posix{}, dir / "out/empty");
  publish(posix{}, dir / "out/file", "here first");
  make_directories(posix{}, dir / "out/full/x");
  {
    staged_directory d(posix{}, dir / "out/empty");
    d.write("a.txt", bytes_of_text("one"));
    CHECK_FALSE(d.reveal(dir / "out/empty"));
    CHECK_FALSE(d.reveal(dir / "out/file"));
    CHECK_FALSE(d.reveal(dir / "out/full"));
    CHECK(d.reveal(dir / "out/free"));
  }
  { staged_directory d(posix{}, dir / "out/other"), e(posix{}, dir / "out/other"); }
  CHECK(names_in(dir / "out") == std::vector<std::string>{"empty", "file", "free", "full"});
  CHECK(names_in(dir / "out/empty").empty());
  CHECK(read_file(posix{}, dir / "out/file").size() == 10);
}

TEST_CASE("a tree is removed, and nothing that a link in it leads to") {
  testing::temp_dir dir;
  publish(posix{}, dir / "kept", "x");
  make_directories(posix{}, dir / "beside");
  publish(posix{}, dir / "beside/kept", "x");
  make_directories(posix{}, dir / "tree/a/b");
  publish(posix{}, dir / "tree/a/b/c", "x");
  REQUIRE(::symlink((dir / "beside").c_str(), (dir / "tree/link").c_str()) == 0);
  REQUIRE(::symlink((dir / "kept").c_str(), (dir / "tree/a/link").c_str()) == 0);
  CHECK_FALSE(remove_tree(posix{}, dir / "tree"));
  CHECK(names_in(dir.path()) == std::vector<std::string>{"beside", "kept"});
  CHECK(names_in(dir / "beside") == std::vector<std::string>{"kept"});
  CHECK_FALSE(remove_tree(posix{}, dir / "tree"));
  CHECK_FALSE(remove_tree(posix{}, dir / "kept"));
  CHECK(names_in(dir.path()) == std::vector<std::string>{"beside"});
}
