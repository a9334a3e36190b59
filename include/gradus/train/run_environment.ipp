// The bodies of run_environment.hpp.
#pragma once
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

#include "../base/body.hpp"
#include "../store/json.hpp"
#include "run_environment.hpp"

// --- TF_CONFIG

namespace gradus::inline GRADUS_BUILD::detail {

// These are the contents of a TF_CONFIG.
struct tf_config_text {
  std::vector<job_tasks> cluster;
  or_none<std::string> task_type, session_master, eval_session_master, model_dir, environment, service;
  or_none<int> task_index;
};

[[noreturn]] GRADUS_BODY void refuse_tf_config(const std::string& why) {
  raise(status::invalid_argument, text("TF_CONFIG: ", why));
}

class tf_config_reader {
public:
  explicit tf_config_reader(std::string_view json) : json_(json), in_(json, 64) {}

  tf_config_text read() {
    if (json_.size() > max_tf_config_bytes)
      refuse_tf_config(text("it has ", json_.size(), " bytes; expected at most ", max_tf_config_bytes));
    in_.begin_object();
    for (std::string key; in_.next_key(key);) {
      if (key == "cluster")
        read_cluster();
      else if (key == "task")
        read_task();
      else if (key == "service")
        read_service();
      else if (key == "session_master")
        read_text(key, out_.session_master);
      else if (key == "eval_session_master")
        read_text(key, out_.eval_session_master);
      else if (key == "model_dir")
        read_text(key, out_.model_dir);
      else if (key == "environment")
        read_text(key, out_.environment);
      else
        in_.skip();
    }
    in_.finish();
    complete();
    return std::move(out_);
  }

private:
  std::string_view json_;
  json_reader in_;
  tf_config_text out_;

  void complete() const {
    if (!in_.ok()) refuse_tf_config(text("it is no JSON object that can be read: ", in_.problem()));
  }
  void need(char first, std::string_view what, std::string_view kind) {
    complete();
    if (const char found = in_.peek(); found != first && found != '\0')
      refuse_tf_config(text(what, " must be ", kind, "; at byte ", in_.position(), " stands ", found));
  }
  void read_text(const std::string& key, or_none<std::string>& out) {
    if (in_.null()) return;
    need('"', text('"', key, '"'), "a string");
    std::string words;
    if (in_.string(words)) out = words;
  }
  // Returns the index that a whole number has, or a string that contains one.
  int index_of(std::string_view digits, std::string_view of) const {
    std::int64_t n = 0;
    const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
    const bool whole = end == digits.data() + digits.size() && !digits.empty();
    if (problem == std::errc::result_out_of_range || (problem == std::errc{} && whole && (n > max_task_index)))
      refuse_tf_config(text(of, " must be at most ", max_task_index, ", got ", shortened(digits)));
    if (problem != std::errc{} || !whole)
      refuse_tf_config(text(of, " must be a whole number, got \"", shortened(digits), '"'));
    return static_cast<int>(std::max<std::int64_t>(n, std::numeric_limits<int>::min()));
  }
  static std::string shortened(std::string_view s) {
    return s.size() <= 40 ? std::string(s) : text(s.substr(0, 40), "...");
  }
  void read_task() {
    if (in_.null()) return;
    need('{', "\"task\"", "an object with \"type\" and \"index\"");
    in_.begin_object();
    for (std::string key; in_.next_key(key);) {
      if (key == "type") {
        read_text(key, out_.task_type);
      } else if (key == "index") {
        if (in_.null()) continue;
        if (in_.peek() == '"') {
          std::string digits;
          if (in_.string(digits)) out_.task_index = index_of(digits, "the task's index");
        } else {
          const auto from = in_.position();
          if (!in_.skip()) return;
          out_.task_index = index_of(json_.substr(from, in_.position() - from), "the task's index");
        }
      } else {
        in_.skip();
      }
    }
  }
  void read_service() {
    if (in_.null()) return;
    complete();
    if (in_.peek() != '{' && in_.peek() != '\0')
      refuse_tf_config(
          text("if \"service\" is set, it must be an object; at byte ", in_.position(), " stands ", in_.peek()));
    const auto from = in_.position();
    if (in_.skip()) out_.service = std::string(json_.substr(from, in_.position() - from));
  }
  std::string read_address(const std::string& job) {
    need('"', text("a task of the job \"", shortened(job), "\" has an address that"), "a string \"host:port\"");
    std::string address;
    if (!in_.string(address)) return {};
    const auto colon = address.rfind(':');
    if (colon == std::string::npos) return address;
    const std::string_view port = std::string_view(address).substr(colon + 1);
    std::uint16_t n = 0;
    const bool is_number = !port.empty() && port.find_first_not_of("-0123456789") == std::string_view::npos;
    const auto [end, problem] = std::from_chars(port.data(), port.data() + port.size(), n);
    if (is_number && (problem != std::errc{} || end != port.data() + port.size()))
      refuse_tf_config(text("the job \"", shortened(job), "\" has the address \"", shortened(address),
                            "\", whose port is not from 0 to 65535"));
    return address;
  }
  void read_cluster() {
    if (in_.null()) return;
    need('{', "\"cluster\"", "an object of jobs");
    in_.begin_object();
    for (std::string name; in_.next_key(name);) {
      job_tasks job{name, {}};
      if (in_.peek() == '{') {
        in_.begin_object();
        for (std::string index; in_.next_key(index);) {
          const int i = index_of(index, text("an index of the job \"", shortened(name), '"'));
          if (i < 0)
            refuse_tf_config(text("an index of the job \"", shortened(name), "\" is below 0: ", shortened(index)));
          std::string at = read_address(name);
          if (!in_.ok()) break;
          job.tasks.emplace_back(i, std::move(at));
        }
      } else {
        need('[', text("the job \"", shortened(name), '"'), "a list of addresses, or an object of them by index");
        in_.begin_array();
        while (in_.next_element()) {
          std::string at = read_address(name);
          if (!in_.ok()) break;
          job.tasks.emplace_back(std::move(at));
        }
      }
      if (!in_.ok()) return;
      out_.cluster.push_back(std::move(job));
    }
  }
};

// Global ids are counted in this order: the chief, other jobs by their names, ps.
GRADUS_BODY or_none<int> global_id_of(const cluster_spec& cluster, const std::string& chief, const run_place& task) {
  std::vector<std::string> order = cluster.jobs();
  const auto rank = [&](const std::string& job) { return job == chief ? 0 : job == "ps" ? 2 : 1; };
  std::sort(order.begin(), order.end(),
            [&](const std::string& a, const std::string& b) { return rank(a) != rank(b) ? rank(a) < rank(b) : a < b; });
  int before = 0;
  for (const std::string& job : order) {
    const auto& tasks = cluster.job(job);
    if (job == task.task_type) return before + static_cast<int>(std::distance(tasks.begin(), tasks.find(task.task_id)));
    before += static_cast<int>(tasks.size());
  }
  return none;
}

GRADUS_BODY int tasks_of(const cluster_spec& cluster, std::string_view job) {
  return cluster.has(job) ? cluster.num_tasks(job) : 0;
}

GRADUS_BODY void place_alone(run_place& p, const tf_config_text& said) {
  if (said.task_type.has_value() && said.task_type.value() != "worker")
    refuse_tf_config(text("without \"cluster\" the task's type must be \"worker\", got \"", said.task_type.value(),
                          "\"; give the cluster, or leave the task out"));
  if (said.task_index.has_value() && said.task_index.value() != 0)
    refuse_tf_config(text("without \"cluster\" the task's index must be 0, got ", said.task_index.value()));
  p.master = said.session_master.value(), p.evaluation_master = said.eval_session_master.value();
}

GRADUS_BODY void place_in_cluster(run_place& p, const tf_config_text& said, const cluster_spec& cluster) {
  const bool legacy = cluster.has("master");
  const std::string chief = legacy ? "master" : "chief";
  if (legacy && cluster.has("chief"))
    refuse_tf_config("if the cluster has a job \"master\", the job \"chief\" is not supported; keep one of the two");
  if (tasks_of(cluster, chief) == 0) refuse_tf_config("if \"cluster\" is set, it must have one \"chief\" node");
  if (tasks_of(cluster, chief) > 1)
    refuse_tf_config(text("the cluster must have only one \"", chief, "\" node, got ", cluster.num_tasks(chief)));
  if (!said.task_type.has_value() || said.task_type.value().empty())
    refuse_tf_config("if \"cluster\" is set, the task's type must be set");
  if (!said.task_index.has_value()) refuse_tf_config("if \"cluster\" is set, the task's index must be set");
  p.task_type = said.task_type.value(), p.task_id = said.task_index.value();
  if (p.task_id < 0) refuse_tf_config("the task's index must be at least 0");
  if (p.task_type == "evaluator") {
    if (legacy) refuse_tf_config("if the cluster has a job \"master\", the task type \"evaluator\" is not supported");
    p.is_chief = false, p.num_worker_replicas = 0, p.global_id = none;
    p.evaluation_master = said.eval_session_master.value();
    return;
  }
  const auto list = [](const auto& all) {
    std::string out;
    for (const auto& one : all) out += text(out.empty() ? "" : ", ", one);
    return out;
  };
  if (!cluster.has(p.task_type))
    refuse_tf_config(text('"', p.task_type, "\" is not a valid task type; the cluster has ", list(cluster.jobs())));
  const auto& tasks = cluster.job(p.task_type);
  const auto mine = tasks.find(p.task_id);
  if (mine == tasks.end())
    refuse_tf_config(text(p.task_id, " is not a valid task index of \"", p.task_type, "\", which has ",
                          list(cluster.task_indices(p.task_type))));
  p.is_chief = p.task_type == chief;
  const bool single = cluster.jobs().size() == 1 && tasks.size() == 1;
  p.master = said.session_master.has_value() ? said.session_master.value()
             : single                        ? std::string()
                                             : text("grpc://", mine->second);
  p.num_ps_replicas = tasks_of(cluster, "ps");
  p.num_worker_replicas = tasks_of(cluster, "worker") + cluster.num_tasks(chief);
  p.global_id = global_id_of(cluster, chief, p);
  p.cluster = std::make_shared<const cluster_spec>(cluster);
}

// Returns session options with the devices that a session of this role reaches; with `none` it reaches all, and there
// are no options.
GRADUS_BODY or_none<session_options> options_of_role(const run_place& p) {
  if (p.cluster == nullptr) return none;
  session_options o{.allow_soft_placement = true};
  if (p.task_type == "chief" || p.task_type == "master")
    o.device_filters = {"/job:ps", text("/job:", p.task_type)};
  else if (p.task_type == "worker")
    o.device_filters = {"/job:ps", text("/job:worker/task:", p.task_id)};
  else if (p.task_type == "ps")
    o.device_filters = {"/job:ps", "/job:worker", "/job:chief", "/job:master"};
  else
    return none;
  return o;
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY run_config run_config::from_tf_config(std::string_view json, run_config given) {
  const detail::tf_config_text said = detail::tf_config_reader(json).read();
  auto p = std::make_shared<detail::run_place>();
  p->service = said.service, p->environment = said.environment.value();
  const gradus::cluster_spec cluster(said.cluster);
  if (cluster)
    detail::place_in_cluster(*p, said, cluster);
  else
    detail::place_alone(*p, said);
  if (said.model_dir.has_value()) {
    if (said.model_dir.value().empty()) detail::refuse_tf_config("\"model_dir\" must not be empty");
    if (given.model_dir.given() && given.model_dir != said.model_dir.value())
      detail::refuse_tf_config(text("\"model_dir\" is \"", said.model_dir.value(), "\", and run_config's is \"",
                                    given.model_dir, "\"; they must be the same if both are set"));
    given.model_dir = said.model_dir.value();
  }
  if (!given.session_config.has_value()) given.session_config = detail::options_of_role(*p);
  given.place = std::move(p);
  validate(given);
  return given;
}

GRADUS_BODY run_config run_config::from_environment(run_config given) {
  const char* const config = std::getenv("TF_CONFIG");
  return from_tf_config(config == nullptr ? "{}" : config, std::move(given));
}
GRADUS_BODY run_config run_config::from_environment() { return from_environment(run_config{}); }

GRADUS_BODY device_function device_function_of(const run_config& c) {
  if (c.device_fn.has_value()) return c.device_fn.value();
  if (c.num_ps_replicas() == 0) return nullptr;
  return replica_device_setter({.ps_tasks = c.num_ps_replicas(),
                                .worker_device = text("/job:", c.task_type(), "/task:", c.task_id()),
                                .cluster = c.cluster_spec()});
}

GRADUS_BODY const gradus::cluster_spec& run_config::cluster_spec() const {
  static const gradus::cluster_spec alone;
  return place != nullptr && place->cluster != nullptr ? *place->cluster : alone;
}

}  // namespace gradus

// --- replace

namespace gradus::inline GRADUS_BUILD::detail {

// This is one parameter that is replaced.
class replacement {
public:
  explicit replacement(const config_change& c) : name_(c.name), held_(&c.value.held()) {}

  bool is_none() const { return std::holds_alternative<none_given>(*held_); }
  template <class T>
  void into(or_none<T>& setting) const {
    if (is_none())
      setting = none;
    else if constexpr (std::is_arithmetic_v<T>)
      setting = number<T>();
    else
      setting = exactly<T>();
  }
  void into(interval& setting) const {
    if (is_none())
      setting = none;
    else
      setting = number<double>();
  }
  void into(folder_setting& setting) const {
    if (is_none())
      setting = none;
    else
      setting = exactly<std::string>();
  }
  void into(bool& setting) const { setting = exactly<bool>(); }

private:
  std::string_view name_;
  const config_value::alternatives* held_;

  [[noreturn]] void refuse(std::string_view expected) const {
    constexpr std::string_view kinds_of_values[] = {
        "none",   "a truth value",   "a whole number",      "a whole number",    "a number",
        "a text", "session options", "a distribute_config", "a device function", "a strategy"};
    raise(status::invalid_argument,
          text("run_config: ", name_, " must be ", expected, ", got ", kinds_of_values[held_->index()]));
  }
  template <class T>
  T exactly() const {
    if (const T* v = std::get_if<T>(held_)) return *v;
    if constexpr (std::is_same_v<T, distribution_strategy>)
      if (const auto* name = std::get_if<std::string>(held_)) return distribution_strategy(*name);
    refuse(std::is_same_v<T, bool>                    ? "a truth value"
           : std::is_same_v<T, std::string>           ? "a text"
           : std::is_same_v<T, session_options>       ? "session options"
           : std::is_same_v<T, distribute_config>     ? "a distribute_config"
           : std::is_same_v<T, distribution_strategy> ? "a strategy such as sync_replicas{}"
                                                      : "callable with one argument, `const placed_op& op`");
  }
  template <class T, class N>
  T in_range(N n) const {
    if (!std::in_range<T>(n))
      raise(status::invalid_argument, text("run_config: ", name_, " must be from ", std::numeric_limits<T>::min(),
                                           " to ", std::numeric_limits<T>::max(), ", got ", n));
    return static_cast<T>(n);
  }
  template <class T>
  T number() const {
    if constexpr (std::is_same_v<T, double>) {
      if (const auto* v = std::get_if<double>(held_)) return *v;
      if (const auto* v = std::get_if<std::int64_t>(held_)) return static_cast<double>(*v);
      if (const auto* v = std::get_if<std::uint64_t>(held_)) return static_cast<double>(*v);
      refuse("a number");
    } else {
      if (const auto* v = std::get_if<std::int64_t>(held_)) return in_range<T>(*v);
      if (const auto* v = std::get_if<std::uint64_t>(held_)) return in_range<T>(*v);
      refuse("a whole number");
    }
  }
};

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY run_config run_config::replace(std::initializer_list<config_change> changes) const {
  run_config c = *this;
  const checkpoint_interval in_force = checkpoint_interval_of(c);  // setting one to none does not change the other
  c.save_checkpoints_steps = in_force.steps, c.save_checkpoints_secs = in_force.secs;
  bool steps = false, secs = false;
  for (const config_change& change : changes) {
    const detail::replacement r(change);
    const auto is = [&](std::string_view name) { return change.name == name; };
    if (is("save_checkpoints_steps"))
      r.into(c.save_checkpoints_steps), steps = !r.is_none();
    else if (is("save_checkpoints_secs"))
      r.into(c.save_checkpoints_secs), secs = !r.is_none();
    else if (is("model_dir"))
      r.into(c.model_dir);
    else if (is("tf_random_seed"))
      r.into(c.tf_random_seed);
    else if (is("save_summary_steps"))
      r.into(c.save_summary_steps);
    else if (is("session_config"))
      r.into(c.session_config);
    else if (is("keep_checkpoint_max"))
      r.into(c.keep_checkpoint_max);
    else if (is("keep_checkpoint_every_n_hours"))
      r.into(c.keep_checkpoint_every_n_hours);
    else if (is("log_step_count_steps"))
      r.into(c.log_step_count_steps);
    else if (is("train_distribute"))
      r.into(c.train_distribute);
    else if (is("device_fn"))
      r.into(c.device_fn);
    else if (is("protocol"))
      r.into(c.protocol);
    else if (is("eval_distribute"))
      r.into(c.eval_distribute);
    else if (is("experimental_distribute"))
      r.into(c.experimental_distribute);
    else if (is("experimental_max_worker_delay_secs"))
      r.into(c.experimental_max_worker_delay_secs);
    else if (is("session_creation_timeout_secs"))
      r.into(c.session_creation_timeout_secs);
    else if (is("checkpoint_save_graph_def"))
      r.into(c.checkpoint_save_graph_def);
    else
      raise(status::invalid_argument,
            text("run_config: replacing ", change.name,
                 " is not supported; the parameters of tf.estimator.RunConfig can be replaced, and nothing else"));
  }
  if (steps && secs)
    raise(status::invalid_argument,
          "run_config: save_checkpoints_steps and save_checkpoints_secs cannot both be replaced by numbers; keep one");
  if (steps) c.save_checkpoints_secs = none;
  if (secs) c.save_checkpoints_steps = none;
  validate(c);
  return c;
}

}  // namespace gradus
