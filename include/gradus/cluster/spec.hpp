// Who is in a cluster: jobs, each a list of tasks with their addresses. TensorFlow's ClusterSpec and ServerDef.
//
//   gradus::cluster_spec cluster{{"ps", {"ps0:2222", "ps1:2222"}},
//                                {"worker", {"worker0:2222", "worker1:2222"}}};
//   gradus::cluster_spec some{{"worker", {{1, "worker1:2222"}, {7, "worker7:2222"}}}};   // sparse: by index
#pragma once
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../base/error.hpp"

namespace gradus {

// A task of a job, by number or in order. Its address is text that the transport understands, such as "host:port".
struct task_address {
  int index = -1;  // -1: the next one
  std::string address;

  task_address(const char* at) : address(at) {}
  task_address(std::string at) : address(std::move(at)) {}
  task_address(int i, std::string at) : index(i), address(std::move(at)) {
    if (i < 0) raise(status::invalid_argument, text("a task's index must be at least 0, got ", i));
  }
};
struct job_tasks {
  std::string name;
  std::vector<task_address> tasks;
};

// A value: two are equal if they name the same tasks at the same addresses, however they were written.
class cluster_spec {
public:
  using tasks = std::map<int, std::string>;  // by index; dense if the indices are 0, 1, ... without a hole

  cluster_spec() = default;
  cluster_spec(std::initializer_list<job_tasks> jobs) {
    for (const auto& j : jobs) add(j);
  }
  explicit cluster_spec(const std::vector<job_tasks>& jobs) {
    for (const auto& j : jobs) add(j);
  }

  // Errors: invalid_argument for a job without a name, with a name that a device string cannot hold, or given twice;
  // for a task given twice or without an address, for indices mixed with none.
  void add(const job_tasks& job) {
    const auto refuse = [&](const std::string& why) {
      raise(status::invalid_argument, text("cluster: the job \"", job.name, "\" ", why));
    };
    if (!is_job_name(job.name))
      refuse("has no name that a device can carry (\"/job:ps/task:0\"): a letter, then letters, digits and '_'");
    if (find(job.name) != nullptr) refuse("is given twice");
    tasks known;
    bool numbered = false, ordered = false;
    for (const auto& t : job.tasks) {
      (t.index < 0 ? ordered : numbered) = true;
      const int index = t.index < 0 ? static_cast<int>(known.size()) : t.index;
      if (t.address.empty()) refuse(text("has no address for task ", index));
      if (!known.emplace(index, t.address).second) refuse(text("has task ", index, " twice"));
    }
    if (numbered && ordered) refuse("gives some tasks an index and others none; give all or none");
    jobs_.emplace_back(job.name, std::move(known));
  }

  explicit operator bool() const { return !jobs_.empty(); }
  // Names, in the order of their mention.
  std::vector<std::string> jobs() const {
    std::vector<std::string> names;
    for (const auto& j : jobs_) names.push_back(j.first);
    return names;
  }
  bool has(std::string_view job) const { return find(job) != nullptr; }
  // Errors of all below: not_found for a job or a task that is not there.
  int num_tasks(std::string_view job) const { return static_cast<int>(at(job).size()); }
  std::vector<int> task_indices(std::string_view job) const {
    std::vector<int> indices;
    for (const auto& t : at(job)) indices.push_back(t.first);
    return indices;
  }
  const std::string& address(std::string_view job, int index) const {
    const tasks& t = at(job);
    const auto found = t.find(index);
    if (found == t.end())
      raise(status::not_found, text("the cluster's job \"", job, "\" has no task ", index, "; it has ", list_of(t)));
    return found->second;
  }
  const tasks& job(std::string_view name) const { return at(name); }
  bool is_dense(std::string_view job) const {
    const tasks& t = at(job);
    return t.empty() || t.rbegin()->first + 1 == static_cast<int>(t.size());
  }

  friend bool operator==(const cluster_spec& a, const cluster_spec& b) {
    if (a.jobs_.size() != b.jobs_.size()) return false;
    for (const auto& [name, t] : a.jobs_)
      if (const tasks* other = b.find(name); other == nullptr || *other != t) return false;
    return true;
  }

private:
  std::vector<std::pair<std::string, tasks>> jobs_;

  static bool is_job_name(std::string_view s) {
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    if (s.empty() || !letter(s[0])) return false;
    for (char c : s)
      if (!letter(c) && !(c >= '0' && c <= '9') && c != '_') return false;
    return true;
  }
  static std::string list_of(const tasks& t) {
    std::string out;
    for (const auto& [index, where] : t) out += text(out.empty() ? "" : ", ", index);
    return out.empty() ? "none" : out;
  }
  const tasks* find(std::string_view job) const {
    for (const auto& j : jobs_)
      if (j.first == job) return &j.second;
    return nullptr;
  }
  const tasks& at(std::string_view job) const {
    if (const tasks* t = find(job)) return *t;
    std::string known;
    for (const auto& j : jobs_) known += text(known.empty() ? "" : ", ", j.first);
    raise(status::not_found,
          text("the cluster has no job \"", job, "\"; it has ", known.empty() ? std::string("none") : known));
  }
};

// Which task of which cluster a server is.
struct server_def {
  cluster_spec cluster = {};
  std::string job_name = {};  // may be left out if the cluster has one job
  int task_index = -1;        // may be left out if the job has one task
  std::string protocol = {};  // empty: the server's own
};

// With what was left out filled in. Errors: invalid_argument if that takes a guess, not_found for a job or task that
// the cluster does not have.
inline server_def resolve(server_def def) {
  if (!def.cluster) raise(status::invalid_argument, "a server needs a cluster with at least one job, found none");
  if (def.job_name.empty()) {
    const auto jobs = def.cluster.jobs();
    if (jobs.size() != 1)
      raise(status::invalid_argument,
            text("the cluster has ", jobs.size(), " jobs; say by job_name which this server is of"));
    def.job_name = jobs[0];
  }
  if (def.task_index < 0) {
    const auto indices = def.cluster.task_indices(def.job_name);
    if (indices.size() != 1)
      raise(status::invalid_argument, text("the job \"", def.job_name, "\" has ", indices.size(),
                                           " tasks; say by task_index which this server is"));
    def.task_index = indices[0];
  }
  def.cluster.address(def.job_name, def.task_index);
  return def;
}

}  // namespace gradus
