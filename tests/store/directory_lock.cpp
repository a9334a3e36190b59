#include "gradus/store/directory_lock.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdio>
#include <optional>

#include "gradus/checkpoint/staging.hpp"
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

namespace {
// Whether another process is refused, and which one it is told of.
bool refused_elsewhere(const std::string& directory, long holder) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      const directory_lock again(posix{}, directory);
    } catch (const failed_precondition& e) {
      ::_exit(std::string_view(e.what()).find(text("process ", holder, " does")) != std::string_view::npos ? 0 : 2);
    }
    ::_exit(1);
  }
  int how = -1;
  ::waitpid(child, &how, 0);
  return WIFEXITED(how) && WEXITSTATUS(how) == 0;
}
std::string refusal(const std::string& directory) {
  try {
    const directory_lock lock(posix{}, directory);
  } catch (const failed_precondition& e) {
    return e.what();
  }
  return {};
}
}  // namespace

TEST_CASE("a second lock of the same process is refused, by whatever path, and does not drop the first") {
  const temp_dir dir;
  make_directories(posix{}, dir / "run/below");
  REQUIRE(::symlink("run", (dir / "link").c_str()) == 0);
  {
    const directory_lock lock(posix{}, dir / "run");
    REQUIRE(lock.held());
    for (const char* path : {"run", "link", "run/", "./run", "run/below/..", "link/below/.."}) {
      CHECK_MESSAGE(
          refusal(dir / path).find(text("but this process (", ::getpid(), ") does already")) != std::string::npos,
          path);
      CHECK(refused_elsewhere(dir / path, ::getpid()));
    }
    const directory_lock other(posix{}, dir / "run/below");  // another directory
    CHECK(other.held());
  }
  CHECK(refusal(dir / "run").empty());
  CHECK(refusal(dir / "link").empty());
}

TEST_CASE("whoever opens the lock file and closes it, in this process, drops nothing") {
  const temp_dir dir;
  const directory_lock lock(posix{}, dir.path());
  REQUIRE(lock.held());
  const std::string path = dir / directory_lock_name;
  for (const int how : {O_RDONLY, O_RDWR, O_WRONLY}) {
    const int h = ::open(path.c_str(), how | O_CLOEXEC);
    REQUIRE(h >= 0);
    ::close(h);
    CHECK(refused_elsewhere(dir.path(), ::getpid()));
  }
  read_file(posix{}, path);
  std::fclose(std::fopen(path.c_str(), "r"));
  CHECK(refused_elsewhere(dir.path(), ::getpid()));
  CHECK(!refusal(dir.path()).empty());
}

TEST_CASE("a lock of fcntl's older kind, as gradus 0.5.0 holds it, is respected both ways") {
  const temp_dir dir;
  const std::string path = dir / directory_lock_name;
  struct flock whole {};
  whole.l_type = F_WRLCK, whole.l_whence = SEEK_SET;
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t old = ::fork();
  if (old == 0) {
    const int h = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    const char said = ::fcntl(h, F_SETLK, &whole) == 0 ? 'y' : 'n';
    if (::write(ends[1], &said, 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char said = 0;
  REQUIRE(::read(ends[0], &said, 1) == 1);
  ::close(ends[0]), ::close(ends[1]);
  CHECK(said == 'y');
  CHECK(refusal(dir.path()).find(text("but process ", old, " does")) != std::string::npos);
  ::kill(old, SIGKILL);
  ::waitpid(old, nullptr, 0);
  const directory_lock lock(posix{}, dir.path());
  CHECK(lock.held());
  const int h = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  CHECK(::fcntl(h, F_SETLK, &whole) != 0);
  ::close(h);
}

namespace {
int to_test = -1;  // where a snapshot's child says that it lives
void stay_alive() {
  const pid_t me = ::getpid();
  if (::write(to_test, &me, sizeof me) != sizeof me) ::_exit(1);
  for (;;) ::pause();
}
}  // namespace

TEST_CASE("the child of a fork_snapshot that outlives its killed parent holds nothing") {
  const temp_dir dir;
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t trainer = ::fork();
  if (trainer == 0) {
    const directory_lock lock(posix{}, dir.path());
    if (!lock.held()) ::_exit(1);
    to_test = ends[1];
    ::pthread_atfork(nullptr, nullptr, stay_alive);  // the next child stops where it would begin to copy
    std::vector<float> w(1000);
    state_list list;
    list.tensor("w", {1000}, std::span<float>(w));
    fork_snapshot::area area{fork_snapshot{}};
    area.begin(list);
    for (;;) ::pause();
  }
  ::close(ends[1]);
  pid_t child = 0;
  REQUIRE(::read(ends[0], &child, sizeof child) == sizeof child);
  CHECK(!refusal(dir.path()).empty());
  ::kill(trainer, SIGKILL);
  ::waitpid(trainer, nullptr, 0);
  CHECK(::kill(child, 0) == 0);  // it lives
  CHECK(refusal(dir.path()).empty());
  ::kill(child, SIGKILL);
  ::close(ends[0]);
}

TEST_CASE("an inherited lock object that a child destroys closes nothing of the child's") {
  const temp_dir dir;
  std::optional<directory_lock<posix>> lock(std::in_place, posix{}, dir.path());
  const pid_t child = ::fork();
  if (child == 0) {
    const int reused = ::open("/dev/null", O_RDONLY);  // takes the number that became free
    lock.reset();
    ::_exit(::fcntl(reused, F_GETFD) >= 0 ? 0 : 1);
  }
  int how = -1;
  ::waitpid(child, &how, 0);
  CHECK((WIFEXITED(how) && WEXITSTATUS(how) == 0));
  CHECK(refused_elsewhere(dir.path(), ::getpid()));
}

TEST_CASE("where there are no locks, nothing is held and nothing refused") {
  const directory_lock nowhere(posix{}, "/nonexistent/directory");
  CHECK_FALSE(nowhere.held());
  const gradus::testing::faulty_files fs;
  const directory_lock without(fs, "x");
  CHECK_FALSE(without.held());
}

TEST_CASE("a directory that was moved away and made again is locked again, or refused if another has it") {
  const temp_dir dir;
  const std::string run = dir / "run", old = dir / "old";
  make_directories(posix{}, run);
  directory_lock mine(posix{}, run);
  CHECK(mine.renew() == 0);
  REQUIRE(::rename(run.c_str(), old.c_str()) == 0);
  CHECK(mine.renew() == 0);  // there is no directory in which a lock file could be
  make_directories(posix{}, run);
  CHECK(refusal(run).empty());  // nobody has noticed
  CHECK(mine.renew() == 1);
  CHECK(refused_elsewhere(run, ::getpid()));
  CHECK(refusal(old).empty());
  CHECK(mine.is_of(dir / "old/../run"));
  CHECK_FALSE(mine.is_of(old));
  CHECK(mine.renew() == 1);

  const std::string older = dir / "older";
  REQUIRE(::rename(run.c_str(), older.c_str()) == 0);
  make_directories(posix{}, run);
  const pid_t other = start_holder(run);
  for (int twice = 0; twice < 2; ++twice)
    CHECK_THROWS_WITH_AS(
        mine.renew(),
        text("expected to be the only process that writes into \"", run, "\", but process ", other, " does (it holds ",
             run,
             "/.gradus-lock); stop that one, or choose another directory; the directory that this training had "
             "locked was removed or moved away meanwhile, and made again")
            .c_str(),
        failed_precondition);
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
  CHECK(mine.renew() == 2);
  // Where only the lock file was removed, it is the same.
  REQUIRE(::unlink((run + "/.gradus-lock").c_str()) == 0);
  CHECK(mine.renew() == 3);
  CHECK(refused_elsewhere(run, ::getpid()));
}

TEST_CASE("one owner locks a directory once, by whatever path, and gives all of them free") {
  const temp_dir dir;
  detail::held_directories mine;
  const auto first = mine.hold(posix{}, dir / "run");
  REQUIRE(first != nullptr);
  CHECK(mine.hold(posix{}, dir / "run/../run") == first);
  const auto second = mine.hold(posix{}, dir / "other");
  CHECK(second != first);
  detail::held_directories others;
  CHECK_THROWS_AS(others.hold(posix{}, dir / "run"), failed_precondition);
  const std::weak_ptr<detail::held_directory> seen = first;
  mine.release();
  CHECK_FALSE(seen.expired());  // whoever has it, keeps it
  CHECK(mine.hold(gradus::testing::faulty_files{}, "run") == nullptr);
}

namespace {
// What a user who owns nothing here finds: the exit code of a process.
int as_another_user(auto find) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(100);
    ::_exit(find());
  }
  int how = -1;
  ::waitpid(child, &how, 0);
  return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
}
}  // namespace

TEST_CASE("a lock file that may only be read is locked all the same, against writers and against other readers") {
  const temp_dir dir;
  const std::string run = dir.path(), file = dir / directory_lock_name;
  publish(posix{}, file, "999999\n");  // a holder that has ended
  REQUIRE(::chmod(run.c_str(), 0777) == 0);
  REQUIRE(::chmod(file.c_str(), 0444) == 0);
  CHECK(as_another_user([&] {
          const directory_lock lock(posix{}, run);
          if (!lock.held()) return 1;
          // This process's second, and another process's that may only read too. Neither is told of the old number.
          if (refusal(run).find("but another one does") == std::string::npos) return 2;
          return as_another_user(
              [&] { return refusal(run).find("but another one does") != std::string::npos ? 0 : 3; });
        }) == 0);
  CHECK(refusal(run).empty());

  // Against a process that may write it, in both orders.
  int ends[2], back[2];
  REQUIRE((::pipe(ends) == 0 && ::pipe(back) == 0));
  const pid_t reader = ::fork();
  if (reader == 0) {
    ::close(back[1]);
    ::_exit(as_another_user([&] {
      const directory_lock lock(posix{}, run);
      char c = lock.held() ? 'y' : 'n';
      return ::write(ends[1], &c, 1) == 1 && ::read(back[0], &c, 1) == 0 ? 0 : 1;
    }));
  }
  ::close(ends[1]), ::close(back[0]);
  char said = 0;
  REQUIRE(::read(ends[0], &said, 1) == 1);
  CHECK(said == 'y');
  if (::geteuid() == 0) CHECK(refusal(run).find("but another one does") != std::string::npos);
  ::close(ends[0]), ::close(back[1]);
  ::waitpid(reader, nullptr, 0);
  if (::geteuid() == 0) {
    const directory_lock lock(posix{}, run);
    REQUIRE(lock.held());
    const std::string told = text("process ", ::getpid(), " does");
    CHECK(as_another_user([&] { return refusal(run).find(told) != std::string::npos ? 0 : 1; }) == 0);
  }
}

TEST_CASE("a lock file that may not even be read is an error, unless nothing can be written beside it anyway") {
  const temp_dir dir;
  const std::string run = dir.path(), file = dir / directory_lock_name;
  publish(posix{}, file, "1\n");
  REQUIRE(::chmod(run.c_str(), 0777) == 0);
  REQUIRE(::chmod(file.c_str(), 0) == 0);
  CHECK(as_another_user([&] {
          try {
            const directory_lock lock(posix{}, run);
          } catch (const permission_denied& e) {
            return e.what() == text("expected to lock ", file, ", so that no other process writes into \"", run,
                                    "\" meanwhile, but this user may not (Permission denied): let this user write that "
                                    "file, remove it while nobody trains there, or choose another directory")
                       ? 0
                       : 2;
          }
          return 1;
        }) == 0);
  REQUIRE(::chmod(run.c_str(), 0555) == 0);
  CHECK(as_another_user([&] { return directory_lock(posix{}, run).held() ? 1 : 0; }) == 0);
  REQUIRE(::chmod(file.c_str(), 0444) == 0);
  CHECK(as_another_user([&] { return directory_lock(posix{}, run).held() ? 1 : 0; }) == 0);
  REQUIRE(::chmod(run.c_str(), 0777) == 0);
}
