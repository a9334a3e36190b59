// The kind of cluster that a program runs in, by what the environment says.
#include <gradus/train/from_environment.hpp>

#include <gradus/cluster/local_cluster.hpp>
#include <gradus/cluster/remote_network.hpp>
#include <gradus/cluster/simulated.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <string>

#include "../message.hpp"

namespace {
using namespace gradus;

// Variables of the environment, for the life of this object; those that are not named are unset.
struct environment {
  std::map<std::string, std::string> before;
  environment(const environment&) = delete;
  explicit environment(const std::map<std::string, std::string>& now) {
    for (const char* name : {"GRADUS_CLUSTER", "TF_CONFIG", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}) {
      if (const char* found = std::getenv(name)) before[name] = found;
      ::unsetenv(name);
    }
    for (const auto& [name, value] : now) ::setenv(name.c_str(), value.c_str(), 1);
  }
  ~environment() {
    for (const char* name : {"GRADUS_CLUSTER", "TF_CONFIG", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"})
      ::unsetenv(name);
    for (const auto& [name, value] : before) ::setenv(name.c_str(), value.c_str(), 1);
  }
};
// What the program is told of its choice.
struct ranks {
  static constexpr std::string_view protocol = "mpi";
  int* runs = nullptr;
  void run(const std::function<void(server&)>&) const { ++*runs; }
};
struct wires {
  static constexpr std::string_view protocol = "wires";
  std::unique_ptr<detail::transport> make(const task_system&) const {
    raise(status::unavailable, "the wires are not connected");
  }
};
struct other_wires : wires {
  static constexpr std::string_view protocol = "other";
};
const std::string worker_of_two =
    R"({"cluster": {"ps": ["a:1"], "chief": ["b:2"], "worker": ["c:3", "d:4"]}, "task": {"type": "worker", "index": 1}})";

template <class... Ways>
std::string chosen(const std::map<std::string, std::string>& env, const Ways&... ways) {
  const environment here(env);
  return std::string(from_environment(ways...).protocol());
}
}  // namespace

TEST_CASE("what decides: GRADUS_CLUSTER, a launcher of MPI, TF_CONFIG, and what starts its tasks itself") {
  const local_cluster local;
  const simulated history;
  const ranks mpi;
  const wires by;
  CHECK(chosen({}, local, by, mpi) == "in_process");
  CHECK(chosen({}, by, mpi, history, local) == "simulated");
  CHECK(chosen({}, by, mpi) == "alone");
  CHECK(chosen({{"TF_CONFIG", worker_of_two}}, local, by, mpi) == "wires");
  CHECK(chosen({{"TF_CONFIG", worker_of_two}}, other_wires{}, by) == "other");
  CHECK(chosen({{"TF_CONFIG", R"({"task": {"type": "worker", "index": 0}})"}}, local, by) == "in_process");
  for (const char* rank : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}) {
    CHECK(chosen({{rank, "0"}, {"TF_CONFIG", worker_of_two}}, local, by, mpi) == "mpi");
    CHECK(chosen({{rank, "0"}}, local, by) == "in_process");
  }
  for (const char* asked : {"in_process", "simulated", "mpi", "wires", "alone"})
    CHECK(chosen({{"GRADUS_CLUSTER", asked}, {"PMI_RANK", "1"}, {"TF_CONFIG", worker_of_two}}, local, history, by,
                 mpi) == asked);
  CHECK(
      message_of(status::not_found,
                 [&] {
                   chosen({{"GRADUS_CLUSTER", "grpc"}}, local, mpi);
                 }) ==
      "GRADUS_CLUSTER is \"grpc\", and this program offers in_process, mpi; set it to one of these or to \"alone\", or "
      "unset it");
  CHECK(
      message_of(status::not_found,
                 [&] {
                   chosen({{"TF_CONFIG", worker_of_two}}, local, history);
                 }) ==
      "TF_CONFIG names a cluster of processes, and this program offers in_process, simulated; give from_environment a "
      "transport such as gradus::grpc{}, or unset TF_CONFIG");
}

TEST_CASE("the program runs as what was chosen") {
  std::atomic<int> ps = 0, workers = 0, alone = 0;
  const auto program = [&](server& here) {
    if (!here.is_ps()) return void(++(here.workers() < 2 ? alone : workers));
    ++ps;
    here.join();
  };
  const local_cluster local{.ps = 1, .workers = 3};
  {
    const environment here(std::map<std::string, std::string>{});
    from_environment(local, wires{}).run(program);
    CHECK((ps == 1 && workers == 3 && alone == 0));
    from_environment<wires, other_wires>().run(program);
    CHECK(alone == 1);
    from_environment<wires, local_cluster>().run(program);  // of one parameter server and one worker
    CHECK((ps == 2 && alone == 2));
  }
  {
    const environment here(std::map<std::string, std::string>{{"GRADUS_CLUSTER", "simulated"}});
    from_environment(local, simulated{.seed = 3, .ps = 2, .workers = 2}).run(program);
    CHECK((ps == 4 && workers == 5 && alone == 2));
  }
  {
    int runs = 0;
    const environment here(std::map<std::string, std::string>{{"PMIX_RANK", "2"}});
    from_environment(local, ranks{&runs}).run(program);
    CHECK(runs == 1);
  }
  {
    const environment here(std::map<std::string, std::string>{{"TF_CONFIG", worker_of_two}});
    const auto found = from_environment(local, wires{});
    CHECK(found.config().task_id() == 1);
    CHECK(message_of(status::unavailable, [&] { found.run(program); }) == "the wires are not connected");
  }
  {  // a transport, and nobody else: alone, as without it
    const environment here(std::map<std::string, std::string>{{"GRADUS_CLUSTER", "wires"}});
    from_environment(local, wires{}).run(program);
    CHECK(alone == 3);
  }
}
