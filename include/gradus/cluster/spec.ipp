// The bodies of spec.hpp.
#pragma once
#include "../base/body.hpp"
#include "spec.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY task_address::task_address(int i, std::string at) : index(i), address(std::move(at)) {
  if (i < 0 || i > max_task_index)
    raise(status::invalid_argument, text("a task's index must be from 0 to ", max_task_index, ", got ", i));
}

GRADUS_BODY cluster_spec::cluster_spec(std::initializer_list<gradus::job_tasks> jobs) {
  for (const auto& j : jobs) add(j);
}

GRADUS_BODY cluster_spec::cluster_spec(const std::vector<gradus::job_tasks>& jobs) {
  for (const auto& j : jobs) add(j);
}

GRADUS_BODY void cluster_spec::add(const gradus::job_tasks& job) {
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

GRADUS_BODY void cluster_spec::add(const std::string& name, const std::vector<std::string>& addresses) {
  gradus::job_tasks job{name, {}};
  for (const std::string& at : addresses) job.tasks.emplace_back(at);
  add(job);
}

GRADUS_BODY void cluster_spec::add(const std::string& name, const tasks& by_index) {
  gradus::job_tasks job{name, {}};
  for (const auto& [index, where] : by_index) job.tasks.emplace_back(index, where);
  add(job);
}

GRADUS_BODY std::vector<std::string> cluster_spec::jobs() const {
  std::vector<std::string> names;
  for (const auto& j : jobs_) names.push_back(j.first);
  return names;
}

GRADUS_BODY std::vector<int> cluster_spec::task_indices(std::string_view job) const {
  std::vector<int> indices;
  for (const auto& t : at(job)) indices.push_back(t.first);
  return indices;
}

GRADUS_BODY const std::string& cluster_spec::task_address(std::string_view job, int index) const {
  const tasks& t = at(job);
  const auto found = t.find(index);
  if (found == t.end())
    raise(status::not_found, text("the cluster's job \"", job, "\" has no task ", index, "; it has ", list_of(t)));
  return found->second;
}

GRADUS_BODY std::vector<or_none<std::string>> cluster_spec::job_tasks(std::string_view job) const {
  const tasks& t = at(job);
  std::vector<or_none<std::string>> list(t.empty() ? 0 : static_cast<std::size_t>(t.rbegin()->first) + 1);
  for (const auto& [index, where] : t) list[static_cast<std::size_t>(index)] = where;
  return list;
}

GRADUS_BODY cluster_spec::dict cluster_spec::as_dict() const {
  dict all;
  for (const auto& [name, t] : jobs_) {
    if (t.empty() || !is_dense(name)) {
      all.emplace(name, t);
      continue;
    }
    std::vector<std::string> list;
    for (const auto& task : t) list.push_back(task.second);
    all.emplace(name, std::move(list));
  }
  return all;
}

GRADUS_BODY bool cluster_spec::is_dense(std::string_view job) const {
  const tasks& t = at(job);
  return t.empty() || t.rbegin()->first + 1 == static_cast<int>(t.size());
}

GRADUS_BODY bool cluster_spec::is_job_name(std::string_view s) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (s.empty() || !letter(s[0])) return false;
  for (char c : s)
    if (!letter(c) && !(c >= '0' && c <= '9') && c != '_') return false;
  return true;
}

GRADUS_BODY std::string cluster_spec::list_of(const tasks& t) {
  std::string out;
  for (const auto& [index, where] : t) out += text(out.empty() ? "" : ", ", index);
  return out.empty() ? "none" : out;
}

GRADUS_BODY const cluster_spec::tasks* cluster_spec::find(std::string_view job) const {
  for (const auto& j : jobs_)
    if (j.first == job) return &j.second;
  return nullptr;
}

GRADUS_BODY const cluster_spec::tasks& cluster_spec::at(std::string_view job) const {
  if (const tasks* t = find(job)) return *t;
  std::string known;
  for (const auto& j : jobs_) known += text(known.empty() ? "" : ", ", j.first);
  raise(status::not_found,
        text("the cluster has no job \"", job, "\"; it has ", known.empty() ? std::string("none") : known));
}

GRADUS_BODY server_def resolve(server_def def) {
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
  def.cluster.task_address(def.job_name, def.task_index);
  return def;
}

}  // namespace gradus
