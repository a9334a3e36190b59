#include "gradus/store/lock_table.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>

#include <atomic>
#include <string>
#include <thread>

#include "gradus/testing/temp_dir.hpp"

using gradus::detail::lock_table;
using gradus::testing::temp_dir;

namespace {
// Whether a descriptor is open in a forked child.
bool open_in_child(int descriptor) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::fcntl(descriptor, F_GETFD) >= 0 ? 1 : 0);
  int how = -1;
  ::waitpid(child, &how, 0);
  return WIFEXITED(how) && WEXITSTATUS(how) == 1;
}
int open_file(const std::string& path) { return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600); }
}  // namespace

TEST_CASE("a forked child has none of the files of the table, and all others") {
  const temp_dir dir;
  const int held = open_file(dir / "held"), other = open_file(dir / "other");
  REQUIRE((held >= 0 && other >= 0));
  CHECK(open_in_child(held));
  lock_table::without_forks().add(held);
  CHECK_FALSE(open_in_child(held));
  CHECK_FALSE(open_in_child(held));  // here it stays
  CHECK(open_in_child(other));
  lock_table::without_forks().remove(held);
  CHECK(open_in_child(held));
  ::close(held), ::close(other);
}

TEST_CASE("a number that has become another file's is left alone") {
  const temp_dir dir;
  const int held = open_file(dir / "held");
  lock_table::without_forks().add(held);
  ::close(held);
  const int other = open_file(dir / "other");
  REQUIRE(other == held);
  CHECK(open_in_child(other));
  lock_table::without_forks().remove(held);
  ::close(other);
}

TEST_CASE("a file is locked and listed in one piece: no fork comes between") {
  const temp_dir dir;
  const int held = open_file(dir / "held");
  std::atomic<int> begins{0};
  std::atomic<bool> forked{false};
  bool inherited = true;
  std::thread other;
  {
    lock_table::without_forks here;
    other = std::thread([&] {
      begins = 1;
      inherited = open_in_child(held);
      forked = true;
    });
    while (begins == 0) std::this_thread::yield();
    for (int i = 0; i < 2000; ++i) std::this_thread::yield();  // a fork that does not wait would come now
    CHECK_FALSE(forked);
    here.add(held);
  }
  other.join();
  CHECK_FALSE(inherited);
  lock_table::without_forks().remove(held);
  ::close(held);
}
