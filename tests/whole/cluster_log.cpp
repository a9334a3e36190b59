// costs: 120
// runs: cluster_log
// A cluster of threads with logs is killed by SIGKILL, again and again: no update that was acknowledged is lost, and
// none is made twice; a synchronous run ends with the bits of one that was left alone. GRADUS_LONG takes more kills.
#include <gradus/cluster/order_log.hpp>
#include <gradus/store/file.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <cstdlib>
#include <cstring>
#include <random>

#include "../train/run_files.hpp"

extern char** environ;

namespace {
using gradus::join_path;
using gradus::text;
using gradus::detail::order_entry;
using gradus::testing::temp_dir;

constexpr int workers = 3;

std::string diary(const std::string& dir, int worker) { return join_path(dir, text("worker-", worker)); }
long letters(const std::string& dir) {
  long all = 0;
  for (int w = 0; w < workers; ++w) {
    struct stat s {};
    if (::stat(diary(dir, w).c_str(), &s) == 0) all += static_cast<long>(s.st_size);
  }
  return all;
}
std::string slurp(const std::string& path) {
  const auto bytes = gradus::read_file(gradus::posix{}, path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Runs the program until its workers have written so many letters (-1: to its end), and kills it then. True: it was
// killed.
bool live(const std::string& mode, const std::string& dir, long steps, long letters_more) {
  const char* bin = std::getenv("GRADUS_BIN");
  std::vector<std::string> words{join_path(bin != nullptr ? bin : "build/bin", "cluster_log"), mode, dir, text(steps)};
  std::vector<char*> argv;
  for (auto& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  const std::string output = join_path(dir, "output");
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0666);
  ::posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t pid = -1;
  const long before = letters(dir);
  const int e = ::posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (e != 0) gradus::raise({e, "start", words[0]});
  int status = 0;
  if (letters_more < 0) {
    ::waitpid(pid, &status, 0);
  } else {
    pid_t ended = 0;
    while (letters(dir) - before < letters_more && (ended = ::waitpid(pid, &status, WNOHANG)) == 0) ::sched_yield();
    if (ended == 0) ::kill(pid, SIGKILL), ::waitpid(pid, &status, 0);
  }
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) return true;
  INFO(slurp(output));
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == 0);
  return false;
}

std::vector<order_entry> orders_of(const std::string& dir, int shard = 0) {
  const gradus::detail::order_log log(gradus::posix{}, join_path(dir, text("logs/ps-", shard, "/orders")));
  std::vector<order_entry> all;
  for (std::uint64_t order = log.first(); order <= log.last(); ++order) all.push_back(log.at(order, 0));
  return all;
}

int kills() { return std::getenv("GRADUS_LONG") != nullptr ? 100 : 24; }

}  // namespace

TEST_CASE("asynchronous, and killed: each acknowledged update is there, once") {
  const temp_dir place;
  std::mt19937 dice(4711);
  int lives = 0;
  for (int k = 0; k < kills(); ++k, ++lives)
    REQUIRE(
        live("asynchronous", place.path(), 1'000'000'000, static_cast<long>(k % 6 == 0 ? dice() % 4 : dice() % 3000)));
  const long so_far = static_cast<long>(orders_of(place.path()).size());
  REQUIRE(!live("asynchronous", place.path(), so_far + 60, -1));
  ++lives;

  const auto orders = orders_of(place.path());
  CHECK(orders.size() >= static_cast<std::size_t>(so_far) + 60);
  std::uint32_t made[workers] = {}, number[workers] = {};
  for (std::size_t i = 0; i < orders.size(); ++i) {
    const order_entry& e = orders[i];
    REQUIRE(e.order == i + 1);
    REQUIRE(e.worker < workers);
    ++made[e.worker];
    const bool is_anew = e.number == 1;  // a life begins
    REQUIRE((is_anew || e.number == number[e.worker] + 1));
    number[e.worker] = e.number;
  }
  const auto beside = orders_of(place.path(), 1);
  REQUIRE(beside.size() >= orders.size());
  for (std::size_t i = 0; i < orders.size(); ++i)
    REQUIRE((beside[i].worker == orders[i].worker && beside[i].number == orders[i].number));
  // The chief saves when it ends; another may make its last update behind that. So the values are those after the first
  // n updates, of which as many are each worker's as the orders say.
  const auto end = run_files::newest_checkpoint(gradus::posix{}, place / "model");
  for (const char* name : {"a float32 [3, 1]", "b float32 [3, 1]"}) {
    const auto found = end.records.find(name);
    REQUIRE(found != end.records.end());
    float v[workers];
    REQUIRE(found->second.size() == sizeof v);
    std::memcpy(v, found->second.data(), sizeof v);
    const auto n = static_cast<std::size_t>(-(v[0] + v[1] + v[2]));
    REQUIRE(n <= orders.size());
    CHECK(n + workers > orders.size());
    CHECK(end.step <= static_cast<std::int64_t>(n));
    CHECK(end.step + workers > static_cast<std::int64_t>(n));
    float expected[workers] = {};
    for (std::size_t i = 0; i < n; ++i) expected[orders[i].worker] -= 1;
    for (int w = 0; w < workers; ++w) CHECK(v[w] == expected[w]);
  }
  std::uint64_t all_acknowledged = 0;
  for (int w = 0; w < workers; ++w) {
    const std::string said = slurp(diary(place.path(), w));
    std::uint32_t acknowledged = 0, unknown = 0;
    for (std::size_t i = 0; i < said.size(); ++i) {
      if (said[i] == 'a') ++acknowledged;
      if (said[i] == 't' && (i + 1 == said.size() || said[i + 1] != 'a')) ++unknown;
    }
    CHECK(made[w] >= acknowledged);
    CHECK(made[w] <= acknowledged + unknown);
    CHECK(unknown <= static_cast<std::uint32_t>(lives));
    all_acknowledged += acknowledged;
  }
  MESSAGE("behind ", lives, " lives: ", all_acknowledged, " updates acknowledged, ", orders.size(), " made");
}

TEST_CASE("synchronous, and killed: the bits of a run that was left alone") {
  const temp_dir place, alone;
  std::mt19937 dice(42);
  constexpr long steps = 900;
  REQUIRE(!live("synchronous", alone.path(), steps, -1));
  int killed = 0;
  for (; killed < kills(); ++killed)
    if (!live("synchronous", place.path(), steps, static_cast<long>(dice() % (killed % 6 == 0 ? 5 : 70)))) break;
  CHECK(killed >= 20);
  live("synchronous", place.path(), steps, -1);
  const auto trained = [](const std::string& dir) {
    auto found = run_files::newest_checkpoint(gradus::posix{}, join_path(dir, "model"));
    std::erase_if(found.records, [](const auto& r) { return r.first.starts_with("input "); });
    return found;
  };
  CHECK(trained(place.path()).step == steps);
  CHECK(run_files::difference(trained(place.path()), trained(alone.path())) == "");
}
