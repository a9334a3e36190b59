// costs: 300
// one thread: it traces processes, and ThreadSanitizer's own calls would be counted with ours
// A process that saves on the real disk, killed with SIGKILL as it enters a system call: every one that touches files,
// counted over all its threads. After that the directory holds the last acknowledged step or the one after it.
// GRADUS_LONG takes every codec, every way to save, every call; an ordinary run some of each.
#include <doctest/doctest.h>

#include <unistd.h>
#include <cstdlib>

#include "../checkpoint/all_codecs.hpp"
#include "gradus/testing/temp_dir.hpp"
#include "killed_at_calls.hpp"

using namespace saving;
using gradus::testing::temp_dir;

namespace {

bool is_long() { return std::getenv("GRADUS_LONG") != nullptr; }

// Two saves that keep one, each acknowledged through a pipe when it is on the disk.
int save_twice(const codec_case<posix>& c, const way_to_save& way, const std::string& directory, int pipe_end) {
  auto s = way.make(c.make({}, {.max_to_keep = 1}));
  model m(2000);
  const auto tell = [&] {
    while (const auto done = s->next_done()) {
      const auto step = static_cast<char>(done->step);
      if (::write(pipe_end, &step, 1) != 1) ::_exit(4);
    }
  };
  for (int step = 2; step <= 3; ++step) {
    m.at(step);
    s->save(m.list, join_path(directory, "m"), step);
    tell();
    s->before_step();
    m.at(100 + step);
  }
  s->finish();
  tell();
  return 0;
}

struct tally {
  long kills = 0, ended_by_itself = 0;
};

// Kills at every `stride`-th counted call from `first` on.
void kill_everywhere(const codec_case<posix>& c, const way_to_save& way, long first, long stride, tally& all) {
  CAPTURE(c.name);
  CAPTURE(way.name);
  bool killed = true;
  for (long n = first; killed; n += stride) {
    const temp_dir dir;
    const std::string directory = dir / "d";
    model m(2000);
    m.at(1);
    c.make({}, {.max_to_keep = 1}).save(m.list, join_path(directory, "m"), 1);
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const auto e = run_and_kill(n, [&] {
      ::close(ends[0]);
      return save_twice(c, way, directory, ends[1]);
    });
    ::close(ends[1]);
    int acknowledged = 1;
    for (char step; ::read(ends[0], &step, 1) == 1;) acknowledged = step;
    ::close(ends[0]);
    killed = e.killed;
    CAPTURE(n);
    if (killed) {
      ++all.kills;
    } else {
      ++all.ended_by_itself;
      CHECK(e.exit_code == 0);
      CHECK(acknowledged == 3);
    }
    model found(2000);
    auto s = c.make({}, {.max_to_keep = 1});
    const auto r = s.restore_latest(found.list, directory);
    REQUIRE(r);
    CHECK(latest_checkpoint(posix{}, directory) == r->path);
    CHECK(r->step >= acknowledged);
    CHECK(r->step <= acknowledged + 1);
    CHECK(found.is_at(r->step));
    found.at(9);
    s.save(found.list, join_path(directory, "m"), 9);
    names files;
    REQUIRE(posix{}.list(directory, files) == 0);
    for (const auto& file : files) CHECK_MESSAGE(!is_temporary(file), file);
    CHECK(s.restore_latest(found.list, directory)->step == 9);
  }
}

}  // namespace

TEST_CASE("killed with SIGKILL at system calls") {
  tally all;
  std::size_t which = 0;
  for (const auto& c : codec_cases<posix>())
    for (const auto& way : all_ways) {
      ++which;
      if (is_long())
        kill_everywhere(c, way, 0, 1, all);
      else if (which % 7 == 1)
        kill_everywhere(c, way, static_cast<long>(which % 5), 9, all);
    }
  MESSAGE(all.kills, " kills at system calls");
  CHECK(all.kills >= (is_long() ? 1000 : 20));
}
