#include "gradus/store/file.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>

#include "gradus/testing/faulty_files.hpp"
#include "gradus/testing/temp_dir.hpp"

using namespace gradus;
using gradus::testing::faulty_files;
using gradus::testing::temp_dir;

namespace {
std::string content(const auto& fs, const std::string& path) {
  const auto bytes = read_file(fs, path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
std::vector<std::string> names(const std::string& directory) {
  std::vector<std::string> out;
  posix{}.list(directory, out);
  std::sort(out.begin(), out.end());
  return out;
}
template <class F>
std::string message(F&& f, status kind) {
  try {
    f();
  } catch (const error& e) {
    CHECK(e.kind() == kind);
    return e.what();
  }
  FAIL_CHECK("no error");
  return {};
}
bool contains(const std::string& s, std::string_view part) { return s.find(part) != std::string::npos; }
}  // namespace

TEST_CASE("publish and read on the real disk") {
  const temp_dir dir;
  const posix fs;
  publish(fs, dir / "a", "first");
  CHECK(content(fs, dir / "a") == "first");
  const std::string big(300000, 'x');
  const auto piece = std::as_bytes(std::span(big.data(), big.size()));
  const std::span<const std::byte> pieces[] = {piece, piece.first(0), piece.first(1)};
  publish(fs, dir / "a", byte_pieces(pieces));
  CHECK(content(fs, dir / "a") == big + "x");
  CHECK(names(dir.path()) == std::vector<std::string>{"a"});

  // A temporary that a killed process left, or a link that someone laid, is stepped around, never followed.
  publish(fs, dir / "victim", "untouched");
  REQUIRE(::symlink("victim", (dir / "b.gradus-tmp-7").c_str()) == 0);
  publish(fs, dir / "b", "second");
  CHECK(content(fs, dir / "b") == "second");
  CHECK(content(fs, dir / "victim") == "untouched");
}

TEST_CASE("read_file refuses what is no file, and what is too large before it allocates") {
  const temp_dir dir;
  const posix fs;
  publish(fs, dir / "a", "12345");
  CHECK(content(fs, dir / "a") == "12345");
  CHECK(contains(message([&] { read_file(fs, dir / "a", 4); }, status::resource_exhausted), "larger than is allowed"));
  CHECK(contains(message([&] { read_file(fs, dir / "b"); }, status::not_found), "No such file"));
  CHECK(contains(message([&] { read_file(fs, dir.path()); }, status::invalid_argument), "directory"));
  REQUIRE(::mkfifo((dir / "pipe").c_str(), 0600) == 0);
  message([&] { read_file(fs, dir / "pipe"); }, status::invalid_argument);  // and does not hang
  // A file with a terabyte-sized hole: the size is believed only up to the limit.
  REQUIRE(::truncate((dir / "a").c_str(), off_t{1} << 40) == 0);
  message([&] { read_file(fs, dir / "a", 1 << 20); }, status::resource_exhausted);
}

TEST_CASE("errors on the real disk say path, operation, reason and remedy") {
  const temp_dir dir;
  const posix fs;
  publish(fs, dir / "file", "");
  auto text = message([&] { publish(fs, dir / "no/such/a", "x"); }, status::not_found);
  CHECK(contains(text, "cannot create \"" + dir / "no/such/a.gradus-tmp-"));
  CHECK(contains(text, "No such file or directory (check the path"));
  text = message([&] { publish(fs, dir / "file/a", "x"); }, status::not_found);
  CHECK(contains(text, "Not a directory"));
  CHECK(contains(text, "choose another path"));
  text = message([&] { make_directories(fs, dir / "file/sub"); }, status::not_found);
  CHECK(contains(text, "cannot create the directory"));
  // rename onto a directory fails last of all; nothing stays behind
  make_directories(fs, dir / "d");
  publish(fs, dir / "d/keep", "");
  text = message([&] { publish(fs, dir / "d", "x"); }, status::invalid_argument);
  CHECK(contains(text, "cannot rename"));
  CHECK(names(dir.path()) == std::vector<std::string>{"d", "file"});
}

TEST_CASE("a real short write that ends in an error leaves the old file and no temporary") {
  const temp_dir dir;
  publish(posix{}, dir / "a", "old");
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{10000, 10000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const std::string big(50000, 'x');
    const auto piece = std::as_bytes(std::span(big.data(), big.size()));
    const auto p = try_publish(posix{}, dir / "a", byte_pieces(&piece, 1));
    ::_exit(p.error == EFBIG && std::string_view(p.operation) == "write" && !p.published ? 0 : 1);
  }
  int how = 0;
  REQUIRE(::waitpid(child, &how, 0) == child);
  CHECK((WIFEXITED(how) && WEXITSTATUS(how) == 0));
  CHECK(content(posix{}, dir / "a") == "old");
  CHECK(names(dir.path()) == std::vector<std::string>{"a"});
}

TEST_CASE("publish under every fault at every operation") {
  struct expectation {
    int error;
    status kind;
    const char* advice;
  };
  const expectation errors[] = {{ENOSPC, status::resource_exhausted, "the disk is full: free some space"},
                                {EIO, status::data_loss, "the device failed"},
                                {EACCES, status::permission_denied, "permissions"},
                                {EROFS, status::permission_denied, "read-only"},
                                {EDQUOT, status::resource_exhausted, "quota"}};
  int refused = 0, without_harm = 0;
  for (const auto& expected : errors)
    for (const bool persistent : {false, true})
      for (int at = 0;; ++at) {
        const faulty_files fs;
        publish(fs, "a", "old");
        fs.count_from_zero();
        fs.plan({.at = at, .error = expected.error, .persistent = persistent});
        std::string text;
        try {
          publish(fs, "a", "new");
        } catch (const error& e) {
          text = e.what();
          CHECK(e.kind() == expected.kind);
        }
        const auto done = fs.operations();
        fs.plan({});
        CHECK(fs.open_handles() == 0);
        CHECK(fs.files() == std::vector<std::string>{"a"});
        if (at >= done) {
          CHECK(text.empty());
          break;
        }
        if (text.empty()) {  // to look for what dead processes left, to claim, to close after the sync: not needed
          ++without_harm;
          CHECK(content(fs, "a") == "new");
          continue;
        }
        ++refused;
        CHECK(contains(text, expected.advice));
        CHECK(contains(text, std::strerror(expected.error)));
        // Only when the directory could not be synced is the new file there already.
        CHECK(content(fs, "a") == (contains(text, "sync the directory") ? "new" : "old"));
        publish(fs, "a", "next");
        CHECK(content(fs, "a") == "next");
      }
  CHECK(refused == 5 * 2 * 5);       // create, write, sync, rename, sync the directory
  CHECK(without_harm == 5 * 2 * 4);  // list, claim, exists, close
}

TEST_CASE("interrupted calls and short writes are carried through; a storm of signals is not waited out") {
  for (int at = 0; at < 9; ++at) {
    const faulty_files fs;
    fs.plan({.at = at, .error = EINTR});
    publish(fs, "a", "content");
    CHECK(content(fs, "a") == "content");
  }
  const faulty_files fs;
  fs.short_writes(3);
  publish(fs, "a", "0123456789");
  CHECK(content(fs, "a") == "0123456789");
  fs.count_from_zero();
  fs.plan({.at = 4, .error = EINTR, .persistent = true});  // the write
  CHECK(contains(message([&] { publish(fs, "a", "x"); }, status::unavailable), "signals kept interrupting"));
  CHECK(fs.operations() < 2000);
  CHECK(content(fs, "a") == "0123456789");
  fs.plan({});
  fs.short_writes(0);
  message([&] { publish(fs, "a", "x"); }, status::data_loss);  // no progress is an error, not a loop
}

TEST_CASE("make_directories: what is there is left, what is new survives a power failure") {
  const temp_dir dir;
  make_directories(posix{}, dir / "x/y//z/");
  make_directories(posix{}, dir / "x/y/z");
  CHECK(names(dir / "x/y") == std::vector<std::string>{"z"});
  make_directories(posix{}, ".");

  const faulty_files fs;
  make_directories(fs, "x/y");
  publish(fs, "x/y/a", "1");
  CHECK(fs.after_power_failure([](const faulty_files& after) { CHECK(after.holds("x/y/a")); }) == 1);
  fs.plan({.at = fs.operations() + 1, .error = ENOSPC});
  CHECK(contains(message([&] { make_directories(fs, "q"); }, status::resource_exhausted),
                 "cannot create the directory \"q\""));
}

TEST_CASE("make_directories: what a killed process made and did not sync is on the disk before anything is below it") {
  for (std::int64_t at = 0; at < 9; ++at) {
    CAPTURE(at);
    const faulty_files fs;
    fs.plan({.at = at, .kill = true});
    CHECK_THROWS_AS(make_directories(fs, "x/y/z"), gradus::testing::killed);
    const auto disk = fs.after_kill();
    make_directories(disk, "x/y/z");
    sync_entry_of(disk, "x/y/z/");
    publish(disk, "x/y/z/a", "1");
    CHECK(disk.after_power_failure([](const faulty_files& left) { CHECK(left.holds("x/y/z/a")); }) == 1);
  }
  // One that may not be opened is left alone; a disk that fails is not.
  const faulty_files fs;
  make_directories(fs, "x/y");
  for (const int e : {EACCES, EPERM, EINVAL}) {
    fs.plan({.at = fs.operations(), .error = e});
    CHECK_NOTHROW(sync_entry_of(fs, "x/y"));
  }
  fs.plan({.at = fs.operations(), .error = EIO});
  CHECK(contains(message([&] { sync_entry_of(fs, "x/y"); }, status::data_loss),
                 "cannot sync the directory above \"x/y\""));
}

TEST_CASE("append_file") {
  const temp_dir dir;
  {
    append_file<posix> out(posix{}, dir / "log", 8);
    out.write("abc");
    CHECK(content(posix{}, dir / "log").empty());  // still in the buffer
    out.flush();
    CHECK(content(posix{}, dir / "log") == "abc");
    out.write("defghijklmnop");  // larger than the buffer
    auto moved = std::move(out);
    moved.write("q");
    moved.sync();
    CHECK(content(posix{}, dir / "log") == "abcdefghijklmnopq");
    moved.write("r");
  }
  append_file<posix> again(posix{}, dir / "log");
  again.write("s");
  again.close();
  CHECK(content(posix{}, dir / "log") == "abcdefghijklmnopqrs");
  CHECK(contains(message([&] { append_file<posix>(posix{}, dir / "no/log"); }, status::not_found), "cannot open"));
}

TEST_CASE("append_file: after an error the rest is kept and follows without a gap") {
  for (int at = 1; at < 6; ++at) {  // five writes of two bytes
    const faulty_files fs;
    append_file<faulty_files> out(fs, "log");
    fs.short_writes(2);
    fs.plan({.at = at, .error = ENOSPC});
    out.write("0123456789");
    try {
      out.flush();
    } catch (const resource_exhausted& e) {
      CHECK(contains(e.what(), "cannot write \"log\""));
    }
    out.write("abc");
    out.close();
    CHECK(content(fs, "log") == "0123456789abc");
    CHECK(fs.open_handles() == 0);
  }
}
