#include "gradus/store/temporary.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <csignal>
#include <functional>
#include <set>

#include "gradus/testing/faulty_files.hpp"
#include "gradus/testing/temp_dir.hpp"

using namespace gradus;
using gradus::testing::faulty_files;
using gradus::testing::killed;
using gradus::testing::temp_dir;

namespace {

std::string content(const auto& fs, const std::string& path) {
  const auto bytes = read_file(fs, path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
std::span<const std::byte> bytes_of(std::string_view s) { return std::as_bytes(std::span(s.data(), s.size())); }
std::size_t temporaries(const std::vector<std::string>& names) {
  return static_cast<std::size_t>(std::count_if(names.begin(), names.end(), [](auto& n) { return is_temporary(n); }));
}
std::vector<std::string> names(const std::string& directory) {
  std::vector<std::string> out;
  posix{}.list(directory, out);
  return out;
}
template <class F>
void clear(const F& fs, const std::string& directory) {
  std::vector<std::string> all;
  fs.list(directory, all);
  clear_temporaries(fs, directory, all, [](std::string_view, const std::string&) { return true; });
}

// Between any two operations of the one who writes, another process does something on the same disk.
struct interrupted_files : faulty_files {
  std::function<void()> other;
  int* left;  // operations until then
  void turn() const {
    if ((*left)-- == 0) other();
  }
  int create(const std::string& path, int& h) const { return turn(), faulty_files::create(path, h); }
  int claim(int h) const { return turn(), faulty_files::claim(h); }
  int exists(const std::string& path) const { return turn(), faulty_files::exists(path); }
  int write(int h, std::span<const std::byte> from, std::size_t& n) const {
    return turn(), faulty_files::write(h, from, n);
  }
  int sync(int h) const { return turn(), faulty_files::sync(h); }
  int rename(const std::string& from, const std::string& to) const { return turn(), faulty_files::rename(from, to); }
  int close(int h) const { return turn(), faulty_files::close(h); }
};

}  // namespace

TEST_CASE("names are drawn at random, and no two are the same") {
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(detail::fresh_number());
  CHECK(seen.size() == 1000);
  CHECK(is_temporary(temporary_name("a", *seen.begin())));
  CHECK(is_temporary("graph.pbtxt.gradus-tmp-3"));  // what 0.5.0 left
  CHECK(name_of_temporary("graph.pbtxt.gradus-tmp-3") == "graph.pbtxt");
  for (const char* name : {"a", "a.gradus-tmp-", "a.gradus-tmp-x", ".gradus-tmp"}) CHECK_FALSE(is_temporary(name));
}

TEST_CASE("whoever clears the directory between any two operations never takes what is being written") {
  int moments = 0;
  for (const bool several : {false, true})
    for (int at = 0;; ++at) {
      const faulty_files disk;
      int left = at;
      const interrupted_files fs{disk, [&] { clear(disk, "."); }, &left};
      const auto first = bytes_of("first"), second = bytes_of("second");
      const file_content files[] = {{"a", byte_pieces(&first, 1)}, {"b", byte_pieces(&second, 1)}};
      const auto problem = try_publish(fs, std::span(files).first(several ? 2 : 1));
      CHECK_MESSAGE(!problem, "at ", at, ": ", describe(problem));
      CHECK(content(disk, "a") == "first");
      if (several) CHECK(content(disk, "b") == "second");
      clear(disk, ".");
      CHECK(temporaries(disk.files()) == 0);
      CHECK(disk.open_handles() == 0);
      if (left >= 0) break;
      ++moments;
    }
  CHECK(moments == 7 + 14);
}

TEST_CASE("two who publish one file at a time: each interleaving leaves one of the two, whole, and no temporary") {
  for (int at = 0;; ++at) {
    const faulty_files disk;
    int turns = at;
    const interrupted_files fs{disk, [&] { publish(disk, "a", "theirs, which is longer"); }, &turns};
    publish(fs, "a", "ours");
    const auto left = content(disk, "a");
    CHECK((left == "ours" || left == "theirs, which is longer"));
    CHECK(disk.files() == std::vector<std::string>{"a"});
    if (turns >= 0) break;
  }
}

TEST_CASE("killed at any operation: the next who publishes this file clears it, and leaves the others' alone") {
  int left = 0;
  for (int at = 0;; ++at) {
    const faulty_files fs;
    fs.plan({.at = at, .kill = true});
    bool finished = false;
    try {
      publish(fs, "a", "content");
      finished = true;
    } catch (const killed&) {
    }
    const auto after = fs.after_kill();
    left += temporaries(after.files()) != 0;
    int other = 0;
    REQUIRE(after.create("b.gradus-tmp-5", other) == 0);
    publish(after, "a", "again");
    CHECK(content(after, "a") == "again");
    CHECK(after.files() == std::vector<std::string>{"a", "b.gradus-tmp-5"});
    clear(after, ".");
    CHECK(after.files() == std::vector<std::string>{"a"});
    if (finished) break;
  }
  CHECK(left >= 5);
}

TEST_CASE("many files: beyond the claims that one process should hold, they are written all the same") {
  const faulty_files fs;
  const auto piece = bytes_of("x");
  std::vector<file_content> files;
  for (int i = 0; i < 300; ++i) files.push_back({text("f", i), byte_pieces(&piece, 1)});
  publication out(fs);
  CHECK(!out.stage(files));
  CHECK(fs.open_handles() == 256);
  CHECK(!out.reveal(300));
  CHECK(fs.open_handles() == 0);
  CHECK(fs.files().size() == 300);
}

TEST_CASE("on the real disk: living processes keep their temporaries, killed ones leave none") {
  const temp_dir dir;
  std::vector<pid_t> living;
  for (int i = 0; i < 15; ++i) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
      temporary_file file;
      bool fine = !file.create(posix{}, dir / "graph.pbtxt");
      if (i % 3 != 0) fine = fine && !file.write(posix{}, bytes_of("half of it"));
      if (i % 3 == 2) fine = fine && !file.sync(posix{});
      const char said = fine ? 'y' : 'n';
      if (::write(ends[1], &said, 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    char said = 0;
    REQUIRE(::read(ends[0], &said, 1) == 1);
    CHECK(said == 'y');
    ::close(ends[0]), ::close(ends[1]);
    living.push_back(child);
  }
  while (!living.empty()) {
    publish(posix{}, dir / "graph.pbtxt", "all of it");
    CHECK(temporaries(names(dir.path())) == living.size());
    for (int i = 0; i < 5; ++i) {
      ::kill(living.back(), SIGKILL);
      ::waitpid(living.back(), nullptr, 0);
      living.pop_back();
    }
  }
  CHECK(temporaries(names(dir.path())) == 5);
  publish(posix{}, dir / "graph.pbtxt", "all of it");
  CHECK(names(dir.path()) == std::vector<std::string>{"graph.pbtxt"});
}

TEST_CASE("a link in a temporary's place is not followed, and no directory is removed") {
  const temp_dir dir;
  publish(posix{}, dir / "victim", "untouched");
  REQUIRE(::symlink("victim", (dir / "a.gradus-tmp-1").c_str()) == 0);
  make_directories(posix{}, dir / "a.gradus-tmp-2");
  clear(posix{}, dir.path());
  CHECK(content(posix{}, dir / "victim") == "untouched");
  CHECK(names(dir.path()).size() == 3);
}
