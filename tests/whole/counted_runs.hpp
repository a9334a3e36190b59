// Clusters of processes that count their updates (tests/programs/counting_task.cpp), and what must hold at their end,
// whatever happened to them: each acknowledged update is there, once.
#pragma once
#include <gradus/cluster/order_log.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <sys/stat.h>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "../train/run_files.hpp"
#include "process_cluster.hpp"

namespace counted_runs {
using gradus::text;
using gradus::detail::order_entry;
using gradus::testing::temp_dir;
using processes::cluster;
using processes::slurp;

inline constexpr int workers = 2;

inline std::string diary(const temp_dir& place, int worker) { return place / text("worker-", worker); }
inline long letters(const temp_dir& place, int worker) {
  struct stat s {};
  return ::stat(diary(place, worker).c_str(), &s) == 0 ? static_cast<long>(s.st_size) : 0;
}

// A run that is killed, with what its workers have said and its servers have logged.
struct run {
  const temp_dir& place;
  cluster tasks;
  std::map<std::string, int> killed = {};

  explicit run(const temp_dir& at, processes::tasks_wanted wanted = {}, const std::vector<std::string>& more = {})
      : run(at, words(at, more), std::move(wanted)) {}
  run(const temp_dir& at, std::vector<std::string> words, processes::tasks_wanted wanted = {})
      : place(at), tasks(std::move(words), at / "output", std::move(wanted)) {}
  static std::vector<std::string> words(const temp_dir& at, const std::vector<std::string>& more = {}) {
    std::vector<std::string> all{processes::program("counting_task"), at.path()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  template <class Done>
  void until(const Done& done) {
    const double end = processes::seconds() + 120;
    while (!done()) {
      tasks.look();
      REQUIRE_MESSAGE(processes::seconds() < end, slurp(tasks.output("chief 0")), slurp(tasks.output("worker 0")),
                      slurp(tasks.output("ps 0")), slurp(tasks.output("ps 1")));
      ::usleep(1000);
    }
  }
  // Until each worker has said so much more.
  void go_on(long more) {
    long had[workers];
    for (int w = 0; w < workers; ++w) had[w] = letters(place, w);
    until([&] {
      bool all = true;
      for (int w = 0; w < workers; ++w) all = all && letters(place, w) >= had[w] + more;
      return all;
    });
  }
  void kill(const std::string& task) {
    REQUIRE(tasks.kill(task));
    ++killed[task];
  }
  // Ends worker 1, and behind it the chief, which saves: so all updates are in its last checkpoint.
  void end() {
    for (const int w : {1, 0}) {
      std::fclose(std::fopen((place / text("end-", w)).c_str(), "w"));
      until([&] { return slurp(diary(place, w)).ends_with('e'); });
    }
    until([&] { return !tasks.look(); });
  }
  std::vector<order_entry> orders(int shard) const {
    const gradus::detail::order_log log(gradus::posix{}, place / text("logs/ps-", shard, "/orders"));
    std::vector<order_entry> all;
    for (std::uint64_t order = log.first(); order <= log.last(); ++order) all.push_back(log.at(order, 0));
    return all;
  }
};

struct said {
  std::int64_t acknowledged = 0, unknown = 0, lives = 0;
};
inline said said_by(const temp_dir& place, int worker) {
  said all;
  const std::string letters = slurp(diary(place, worker));
  for (std::size_t i = 0; i < letters.size(); ++i) {
    all.lives += letters[i] == 'b';
    all.acknowledged += letters[i] == 'a';
    all.unknown += letters[i] == 't' && (i + 1 == letters.size() || letters[i + 1] != 'a');
  }
  return all;
}
// How many updates of each worker a variable of the last checkpoint holds.
inline std::vector<std::int64_t> held(const run_files::content& end, const std::string& name) {
  const auto found = end.records.find(name);
  REQUIRE(found != end.records.end());
  float v[workers];
  REQUIRE(found->second.size() == sizeof v);
  std::memcpy(v, found->second.data(), sizeof v);
  return {static_cast<std::int64_t>(-v[0]), static_cast<std::int64_t>(-v[1])};
}

// Ends the run: no acknowledged update is lost or doubled. A worker dies where it was killed, and with `ends_by_errors`
// where its cluster ended by an error.
inline void check(run& r, bool ends_by_errors = false) {
  r.go_on(20);
  r.end();

  // With the log no task has to begin again because another died.
  if (!ends_by_errors) CHECK(r.tasks.errors() == 0);
  const auto orders = r.orders(0), beside = r.orders(1);
  REQUIRE(beside.size() == orders.size());
  std::int64_t made[workers] = {};
  std::uint32_t number[workers] = {};
  for (std::size_t i = 0; i < orders.size(); ++i) {
    const order_entry& e = orders[i];
    REQUIRE(e.order == i + 1);
    REQUIRE(e.worker < workers);
    REQUIRE((beside[i].worker == e.worker && beside[i].number == e.number));
    REQUIRE((e.number == 1 || e.number == number[e.worker] + 1));
    number[e.worker] = e.number;
    ++made[e.worker];
  }
  const auto end = run_files::newest_checkpoint(gradus::posix{}, r.place / "model");
  CHECK(end.step == static_cast<std::int64_t>(orders.size()));
  std::int64_t acknowledged = 0, lost = 0, doubled = 0, unknown = 0;
  for (int w = 0; w < workers; ++w) {
    const said s = said_by(r.place, w);
    // An update is unknown to a worker that died between its push and the answer, and to no other.
    CHECK(s.unknown < s.lives);
    if (!ends_by_errors) CHECK(s.lives <= 1 + r.killed[w == 0 ? "chief 0" : "worker 0"]);
    for (const char* name : {"a float32 [2, 1]", "b float32 [2, 1]"}) {
      const std::int64_t found = held(end, name)[static_cast<std::size_t>(w)];
      CHECK(found == made[w]);
      lost += std::max<std::int64_t>(0, s.acknowledged - found);
      doubled += std::max<std::int64_t>(0, found - s.acknowledged - s.unknown);
    }
    acknowledged += s.acknowledged, unknown += s.unknown;
  }
  CHECK(lost == 0);
  CHECK(doubled == 0);
  std::string killed;
  for (const auto& [task, n] : r.killed) killed += text(", ", task, ' ', n, " times");
  MESSAGE("killed: " << (killed.empty() ? "none" : killed.substr(2)) << "; " << acknowledged
                     << " updates acknowledged, " << unknown << " unknown to a worker that died, " << lost << " lost, "
                     << doubled << " doubled");
}

}  // namespace counted_runs
