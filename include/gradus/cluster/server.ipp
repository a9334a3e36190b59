// The bodies of server.hpp.
#pragma once
#include <algorithm>
#include <atomic>

#include "../base/body.hpp"
#include "server.hpp"
#include "transport.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// Arguments besides a definition replace its parts; a session's settings are merged as protobuf merges messages.
GRADUS_BODY server_def with_arguments(server_def def, const server_arguments& a) {
  if (a.job_name.has_value()) def.job_name = a.job_name.value();
  if (a.task_index.has_value()) def.task_index = a.task_index.value();
  if (a.protocol.has_value()) def.protocol = a.protocol.value();
  session_options& o = def.default_session_config;
  o.allow_soft_placement = o.allow_soft_placement || a.config.allow_soft_placement;
  o.isolate_session_state = o.isolate_session_state || a.config.isolate_session_state;
  o.device_filters.insert(o.device_filters.end(), a.config.device_filters.begin(), a.config.device_filters.end());
  return def;
}
}  // namespace detail

namespace detail {
GRADUS_BODY server_def with_protocol(server_def def, std::string_view protocol) {
  if (!def.protocol.empty() && def.protocol != protocol)
    raise(status::invalid_argument, text("a server of the protocol \"", def.protocol,
                                         "\" was given the transport of \"", protocol, "\"; leave one of the two out"));
  def.protocol = protocol;
  return def;
}
GRADUS_BODY server_def task_of(const cluster_spec& cluster, const std::string& job, int index,
                               std::string_view protocol, const or_none<std::string>& wanted) {
  if (wanted.has_value() && wanted.value() != protocol)
    raise(status::invalid_argument, text("run_config: the protocol is \"", wanted.value(),
                                         "\", and the server has the "
                                         "transport of \"",
                                         protocol, "\"; leave one of the two out"));
  if (job == "evaluator")
    return {.cluster = {{"evaluator", {"localhost:0"}}}, .job_name = "evaluator", .task_index = 0};
  if (!cluster) return server::local_def();
  return {.cluster = cluster, .job_name = job, .task_index = index};
}
GRADUS_BODY bool is_cluster(const server_def& def) {
  int nodes = 0;
  for (const char* job : {"ps", "chief", "master", "worker"})
    if (def.cluster.has(job)) nodes += def.cluster.num_tasks(job);
  return nodes > 1;
}
}  // namespace detail

GRADUS_BODY server::server(server_def def, bool start_now, const task_system& run)
    : server(std::move(def), nullptr, run) {
  state_ = made;
  if (def_.protocol != own_protocol)
    raise(status::unimplemented, text("the protocol \"", def_.protocol,
                                      "\" takes a transport, and this server was given none: give it one, as "
                                      "server(gradus::grpc{...}, def), or serve sessions of its own process, protocol "
                                      "\"in_process\""));
  if (start_now) start();
}

GRADUS_BODY server::server(server_def def, const server_arguments& a)
    : server(detail::with_arguments(std::move(def), a), a.start, a.tasks) {}

GRADUS_BODY server::server(server_def def, std::shared_ptr<detail::task_network> network, const task_system& run)
    : def_(resolve(std::move(def))),
      tasks_(run),
      changed_(run),
      state_(running),
      network_(std::move(network)),
      resources_(std::make_shared<session_resources>(run)) {
  if (def_.protocol.empty()) def_.protocol = own_protocol;
}

GRADUS_BODY server::~server() { stop(); }

namespace detail {
// Jobs whose tasks train, in the order in which they are numbered.
inline constexpr std::string_view training_jobs[] = {"chief", "master", "worker"};
}  // namespace detail

GRADUS_BODY bool server::is_chief() const {
  if (def_.job_name == "chief" || def_.job_name == "master") return true;
  if (def_.cluster.has("chief") || def_.cluster.has("master")) return false;
  return def_.job_name != "worker" ? !is_ps() && def_.job_name != "evaluator" : worker() == 0;
}

GRADUS_BODY int server::workers() const {
  int n = 0;
  for (const std::string_view job : detail::training_jobs)
    if (def_.cluster.has(job)) n += def_.cluster.num_tasks(job);
  return n == 0 ? 1 : n;
}

GRADUS_BODY int server::worker() const {
  int before = 0;
  for (const std::string_view job : detail::training_jobs) {
    if (!def_.cluster.has(job)) continue;
    const std::vector<int> tasks = def_.cluster.task_indices(job);
    if (job == def_.job_name)
      return before + static_cast<int>(std::find(tasks.begin(), tasks.end(), def_.task_index) - tasks.begin());
    before += static_cast<int>(tasks.size());
  }
  if (is_ps() || def_.job_name == "evaluator" || before != 0)
    raise(status::failed_precondition, text("the task ", def_.job_name, " ", def_.task_index,
                                            " is no worker: chief, master and workers train, and have a number"));
  return 0;  // alone
}

GRADUS_BODY int server::shards() const { return def_.cluster.has("ps") ? def_.cluster.num_tasks("ps") : 0; }

GRADUS_BODY server_def server::local_def() {
  return {.cluster = {{"local", {"localhost:0"}}}, .job_name = "local", .task_index = 0};
}

GRADUS_BODY server server::create_local_server(const session_options& config, bool start_now, const task_system& run) {
  static std::atomic<unsigned> made_so_far{0};
  const unsigned number = made_so_far++ % 65535 + 1;  // the range of port numbers
  server_def def{.cluster = {{"local", {text("localhost:", number)}}}, .job_name = "local", .task_index = 0};
  def.default_session_config = config;
  return server(std::move(def), start_now, run);
}

GRADUS_BODY std::string server::target() const {
  return text(def_.protocol, "://", def_.cluster.task_address(def_.job_name, def_.task_index));
}

GRADUS_BODY void server::start() {
  const std::lock_guard lock(mutex_);
  if (state_ == stopped)
    raise(status::failed_precondition, text("the server \"", target(), "\" was stopped and cannot start again"));
  state_ = running;
}

GRADUS_BODY void server::stop() {
  const std::string why = text("the server \"", target(), "\" was stopped");
  std::vector<std::shared_ptr<session_resources>> all;
  std::shared_ptr<detail::task_network> network;
  {
    const std::lock_guard lock(mutex_);
    state_ = stopped;
    all = all_resources(), network = network_;
    changed_.notify_all();  // under the mutex, since the caller of join may destroy the server
  }
  for (const auto& r : all) r->mark_sessions(why, status::cancelled);
  for (const auto& r : all) r->end_marked_sessions();
  if (network != nullptr) network->server_stopped();
}

GRADUS_BODY void server::join() const {
  std::unique_lock lock(mutex_);
  if (state_ == made) raise(status::failed_precondition, text("the server \"", target(), "\" was not started"));
  if (network_ != nullptr && is_ps()) {
    lock.unlock();
    const std::vector<int> shards = def_.cluster.task_indices("ps");
    return network_->serve(
        static_cast<std::uint32_t>(std::find(shards.begin(), shards.end(), def_.task_index) - shards.begin()));
  }
  changed_.wait(lock, [&] { return state_ == stopped; });
}

GRADUS_BODY void server::finish() const {
  if (network_ != nullptr && !is_ps()) network_->finish();
}

GRADUS_BODY bool server::was_stopped() const {
  const std::lock_guard lock(mutex_);
  return state_ == stopped;
}
GRADUS_BODY bool server::is_running() const {
  const std::lock_guard lock(mutex_);
  return state_ == running;
}

GRADUS_BODY std::vector<std::shared_ptr<session_resources>> server::all_resources() const {
  std::vector<std::shared_ptr<session_resources>> all{resources_};
  for (const auto& known : isolated_)
    if (auto alive = known.lock()) all.push_back(std::move(alive));
  return all;
}

GRADUS_BODY std::shared_ptr<session_resources> server::resources_for(const or_none<session_options>& config) const {
  const session_options& o = config.has_value() ? config.value() : def_.default_session_config;
  if (!o.isolate_session_state) return resources_;
  auto own = std::make_shared<session_resources>(tasks_);
  const std::lock_guard lock(mutex_);
  if (state_ == stopped) own->close_sessions(text("the server \"", target(), "\" was stopped"));
  std::erase_if(isolated_, [](const auto& known) { return known.expired(); });
  isolated_.push_back(own);
  return own;
}

GRADUS_BODY std::vector<cluster_member> server::members() const {
  if (network_ != nullptr)
    if (auto known = network_->known_members(); !known.empty()) return known;
  std::vector<cluster_member> all;
  for (const auto& job : def_.cluster.jobs())
    for (const int index : def_.cluster.task_indices(job))
      all.push_back({text(job, " ", index), def_.cluster.task_address(job, index), cluster_member::alive, 0});
  return all;
}

GRADUS_BODY std::unique_ptr<detail::transport> server::make_transport() const {
  return make_transport_ ? make_transport_() : nullptr;
}

GRADUS_BODY void server::reset(const std::vector<std::string>& containers) const {
  const bool takes_default =
      containers.empty() || std::any_of(containers.begin(), containers.end(),
                                        [](std::string_view c) { return c.empty() || c == "localhost"; });
  std::vector<std::shared_ptr<session_resources>> all;
  {
    const std::lock_guard lock(mutex_);
    all = all_resources();
  }
  for (const auto& r : all) r->mark_sessions(text("the server \"", target(), "\" was reset"), status::aborted);
  for (const auto& r : all) r->end_marked_sessions();
  if (takes_default)
    for (const auto& r : all) r->reset();
}

}  // namespace gradus
