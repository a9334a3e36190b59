// A cluster_spec lists the members of a cluster: jobs, each a list of tasks with their addresses. cluster_spec and
// server_def are TensorFlow's ClusterSpec and ServerDef.
//
//   gradus::cluster_spec cluster{{"ps", {"ps0:2222", "ps1:2222"}},
//                                {"worker", {"worker0:2222", "worker1:2222"}}};
//   gradus::cluster_spec some{{"worker", {{1, "worker1:2222"}, {7, "worker7:2222"}}}};   // sparse: by index
//
// It can also be made from maps, and from a cluster_def, the form of files and other programs
// (cluster/cluster_def.hpp).
#pragma once
#include "../base/build.hpp"

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "../base/error.hpp"
#include "../base/or_none.hpp"
#include "../run/session_options.hpp"

namespace gradus::inline GRADUS_BUILD {

struct cluster_def;

// The largest index of a task, which bounds the length of a list of a job's tasks.
inline constexpr int max_task_index = (1 << 20) - 1;

// A task of a job, by number or in order. Its address is text that the transport understands, such as "host:port".
struct task_address {
  int index = -1;  // -1: the next one
  std::string address;

  task_address(const char* at) : address(at) {}
  task_address(std::string at) : address(std::move(at)) {}
  task_address(int i, std::string at);
};
struct job_tasks {
  std::string name;
  std::vector<task_address> tasks;
};

// A value type: two are equal if they name the same tasks at the same addresses, however they were written.
class cluster_spec {
public:
  using tasks = std::map<int, std::string>;  // by index; dense if the indices are 0, 1, ... without a hole
  // Dense jobs are lists of addresses; others, and jobs without tasks, are maps by index.
  using dict = std::map<std::string, std::variant<std::vector<std::string>, tasks>>;

  cluster_spec() = default;
  cluster_spec(std::initializer_list<gradus::job_tasks> jobs);
  explicit cluster_spec(const std::vector<gradus::job_tasks>& jobs);
  explicit cluster_spec(const cluster_def& def);
  // From a map: a job's tasks are a vector of addresses, a map of addresses by index, or a variant of both (dict).
  template <class Tasks>
  explicit cluster_spec(const std::map<std::string, Tasks>& jobs) {
    for (const auto& [name, tasks_of_job] : jobs) add(name, tasks_of_job);
  }

  // Raises invalid_argument for a job without a name, with a name that a device string cannot hold, or given twice; for
  // a task given twice or without an address; if only some tasks have indices; for indices below 0 or above
  // max_task_index.
  void add(const gradus::job_tasks& job);

  explicit operator bool() const { return !jobs_.empty(); }
  // Returns the names of the jobs, in the order in which they were added.
  std::vector<std::string> jobs() const;
  bool has(std::string_view job) const { return find(job) != nullptr; }
  // All functions below raise not_found for a job or a task that is not there.
  int num_tasks(std::string_view job) const { return static_cast<int>(at(job).size()); }
  std::vector<int> task_indices(std::string_view job) const;
  const std::string& task_address(std::string_view job, int index) const;
  // The name of task_address before 0.6, kept for one version.
  const std::string& address(std::string_view job, int index) const { return task_address(job, index); }
  // Returns the addresses by index, with none where there is no task.
  std::vector<or_none<std::string>> job_tasks(std::string_view job) const;
  const tasks& job(std::string_view name) const { return at(name); }
  bool is_dense(std::string_view job) const;

  dict as_dict() const;
  // Has the jobs in the order of their names. It is defined in cluster/cluster_def.hpp.
  cluster_def as_cluster_def() const;

  friend bool operator==(const cluster_spec& a, const cluster_spec& b) {
    if (a.jobs_.size() != b.jobs_.size()) return false;
    for (const auto& [name, t] : a.jobs_)
      if (const tasks* other = b.find(name); other == nullptr || *other != t) return false;
    return true;
  }

private:
  std::vector<std::pair<std::string, tasks>> jobs_;

  void add(const std::string& name, const std::vector<std::string>& addresses);
  void add(const std::string& name, const tasks& by_index);
  void add(const std::string& name, const dict::mapped_type& either) {
    std::visit([&](const auto& t) { add(name, t); }, either);
  }
  static bool is_job_name(std::string_view s);
  static std::string list_of(const tasks& t);
  const tasks* find(std::string_view job) const;
  const tasks& at(std::string_view job) const;
};

// A server_def names a server's cluster and task. cluster/cluster_def.hpp has it as protobuf's bytes and text.
struct server_def {
  cluster_spec cluster = {};
  std::string job_name = {};                    // may be left out if the cluster has one job
  int task_index = -1;                          // may be left out if the job has one task
  std::string protocol = {};                    // empty: the server's own
  session_options default_session_config = {};  // of sessions without settings of their own

  friend bool operator==(const server_def&, const server_def&) = default;
};

// Returns the definition with its missing parts filled in. Raises invalid_argument if they are ambiguous, not_found for
// a job or task that the cluster does not have.
server_def resolve(server_def def);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "spec.ipp"
#endif
