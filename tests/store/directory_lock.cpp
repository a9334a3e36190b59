#include "gradus/store/directory_lock.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <csignal>
#include <optional>

#include "gradus/testing/faulty_files.hpp"
#include "gradus/testing/temp_dir.hpp"

using namespace gradus;
using gradus::testing::temp_dir;

namespace {
// A process that holds the directory until it is killed; it says so through a pipe.
pid_t start_holder(const std::string& directory) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const directory_lock lock(posix{}, directory);
    const char said = lock.held() ? 'y' : 'n';
    if (::write(ends[1], &said, 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char said = 0;
  REQUIRE(::read(ends[0], &said, 1) == 1);
  CHECK(said == 'y');
  ::close(ends[0]), ::close(ends[1]);
  return child;
}
}  // namespace

TEST_CASE("a directory that another process writes into is refused, until that one is dead") {
  const temp_dir dir;
  const pid_t holder = start_holder(dir.path());
  try {
    const directory_lock lock(posix{}, dir.path());
    FAIL("locked twice");
  } catch (const error& e) {
    CHECK(e.kind() == status::failed_precondition);
    CHECK(std::string(e.what()) == text("expected to be the only process that writes into \"", dir.path(),
                                        "\", but process ", holder, " does (it holds ", dir / ".gradus-lock",
                                        "); stop that one, or choose another directory"));
  }
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  std::optional<directory_lock<posix>> lock(std::in_place, posix{}, dir.path());
  CHECK(lock->held());
  // A forked child holds nothing.
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      const directory_lock again(posix{}, dir.path());
    } catch (const error&) {
      ::_exit(0);
    }
    ::_exit(1);
  }
  int result = -1;
  ::waitpid(child, &result, 0);
  CHECK(result == 0);
  lock.reset();
  const pid_t next = start_holder(dir.path());
  ::kill(next, SIGKILL);
  ::waitpid(next, nullptr, 0);
}

TEST_CASE("where there are no locks, nothing is held and nothing refused") {
  const directory_lock nowhere(posix{}, "/nonexistent/directory");
  CHECK_FALSE(nowhere.held());
  const gradus::testing::faulty_files fs;
  const directory_lock without(fs, "x");
  CHECK_FALSE(without.held());
}
