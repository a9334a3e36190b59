// The bodies of cluster_def.hpp.
#pragma once
#include <algorithm>

#include "../base/body.hpp"
#include "../store/text_message.hpp"
#include "../store/wire.hpp"
#include "cluster_def.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY cluster_spec::cluster_spec(const cluster_def& def) {
  for (const job_def& j : def.job) add(j.name, j.tasks);
}

GRADUS_BODY cluster_def cluster_spec::as_cluster_def() const {
  cluster_def def;
  for (const auto& [name, t] : jobs_) def.job.push_back({name, t});
  std::sort(def.job.begin(), def.job.end(), [](const job_def& a, const job_def& b) { return a.name < b.name; });
  return def;
}

}  // namespace gradus

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY int index_in_message(std::int64_t n) {
  if (n < 0 || n > max_task_index)
    raise(status::invalid_argument, text("a task's index must be from 0 to ", max_task_index, ", got ", n));
  return static_cast<int>(n);
}

GRADUS_BODY job_def read_job(wire_reader in) {
  job_def job;
  while (in.next()) {
    if (in.key() == field(1, wire::length)) {
      job.name = in.string();
    } else if (in.key() == field(2, wire::length)) {
      std::int64_t key = 0;
      std::string value;
      for (wire_reader entry = in.message(); entry.next();) {
        if (entry.key() == field(1, wire::varint))
          key = entry.integer();
        else if (entry.key() == field(2, wire::length))
          value = entry.string();
      }
      job.tasks[index_in_message(key)] = value;  // the last value of a key counts, as in protobuf's maps
    }
  }
  return job;
}

GRADUS_BODY cluster_def read_cluster(wire_reader in) {
  cluster_def def;
  while (in.next())
    if (in.key() == field(1, wire::length)) def.job.push_back(read_job(in.message()));
  return def;
}

GRADUS_BODY session_options read_config(wire_reader in) {
  session_options o;
  while (in.next()) {
    if (in.key() == field(4, wire::length))
      o.device_filters.emplace_back(in.string());
    else if (in.key() == field(7, wire::varint))
      o.allow_soft_placement = in.boolean();
    else if (in.key() == field(15, wire::varint))
      o.isolate_session_state = in.boolean();
  }
  return o;
}

// Reads a text message that has been entered.
GRADUS_BODY job_def read_job(text_message_reader& in) {
  job_def job;
  for (in.enter(); in.next();) {
    if (in.name() == "name") {
      job.name = in.string();
    } else if (in.name() == "tasks") {
      std::int64_t key = 0;
      std::string value;
      for (in.enter(); in.next();) {
        if (in.name() == "key")
          key = in.integer();
        else if (in.name() == "value")
          value = in.string();
      }
      job.tasks[index_in_message(key)] = value;
    }
  }
  return job;
}

GRADUS_BODY cluster_def read_jobs(text_message_reader& in) {
  cluster_def def;
  while (in.next())
    if (in.name() == "job") def.job.push_back(read_job(in));
  return def;
}

GRADUS_BODY session_options read_config(text_message_reader& in) {
  session_options o;
  for (in.enter(); in.next();) {
    if (in.name() == "device_filters")
      o.device_filters.push_back(in.string());
    else if (in.name() == "allow_soft_placement")
      o.allow_soft_placement = in.boolean();
    else if (in.name() == "isolate_session_state")
      o.isolate_session_state = in.boolean();
  }
  return o;
}

GRADUS_BODY void write_cluster(wire_writer& out, const cluster_def& def) {
  for (const job_def& j : def.job)
    out.message(1, [&](wire_writer& job) {
      job.bytes_if(1, j.name);
      for (const auto& [index, where] : j.tasks)
        job.message(2, [&](wire_writer& entry) {  // entries of maps always have both fields
          entry.integer(1, index);
          entry.bytes(2, where);
        });
    });
}

GRADUS_BODY void write_cluster(text_message_writer& out, const cluster_def& def) {
  for (const job_def& j : def.job)
    out.message("job", [&](text_message_writer& job) {
      if (!j.name.empty()) job.string("name", j.name);
      for (const auto& [index, where] : j.tasks)
        job.message("tasks", [&](text_message_writer& entry) {
          entry.integer("key", index);
          entry.string("value", where);
        });
    });
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY cluster_def cluster_def::from_proto(std::span<const std::byte> bytes) {
  return detail::read_cluster(wire_reader(bytes));
}
GRADUS_BODY cluster_def cluster_def::from_pbtxt(std::string_view text) {
  text_message_reader in(text);
  return detail::read_jobs(in);
}
GRADUS_BODY std::vector<std::byte> cluster_def::to_proto() const {
  std::vector<std::byte> bytes;
  wire_writer out(bytes);
  detail::write_cluster(out, *this);
  return bytes;
}
GRADUS_BODY std::string cluster_def::to_pbtxt() const {
  std::string content;
  text_message_writer out(content);
  detail::write_cluster(out, *this);
  return content;
}

GRADUS_BODY std::vector<std::byte> to_proto(const server_def& def) {
  std::vector<std::byte> bytes;
  wire_writer out(bytes);
  if (def.cluster) out.message(1, [&](wire_writer& w) { detail::write_cluster(w, def.cluster.as_cluster_def()); });
  out.bytes_if(2, def.job_name);
  out.integer_if(3, std::max(def.task_index, 0));
  if (const session_options& o = def.default_session_config; !(o == session_options{}))
    out.message(4, [&](wire_writer& w) {
      for (const std::string& f : o.device_filters) w.bytes(4, f);
      w.boolean_if(7, o.allow_soft_placement);
      w.boolean_if(15, o.isolate_session_state);
    });
  out.bytes_if(5, def.protocol);
  return bytes;
}

GRADUS_BODY std::string to_pbtxt(const server_def& def) {
  std::string content;
  text_message_writer out(content);
  if (def.cluster)
    out.message("cluster", [&](text_message_writer& w) { detail::write_cluster(w, def.cluster.as_cluster_def()); });
  if (!def.job_name.empty()) out.string("job_name", def.job_name);
  if (def.task_index > 0) out.integer("task_index", def.task_index);
  if (const session_options& o = def.default_session_config; !(o == session_options{}))
    out.message("default_session_config", [&](text_message_writer& w) {
      for (const std::string& f : o.device_filters) w.string("device_filters", f);
      if (o.allow_soft_placement) w.boolean("allow_soft_placement", true);
      if (o.isolate_session_state) w.boolean("isolate_session_state", true);
    });
  if (!def.protocol.empty()) out.string("protocol", def.protocol);
  return content;
}

GRADUS_BODY server_def server_def_from_proto(std::span<const std::byte> bytes) {
  server_def def;
  def.task_index = 0;
  for (wire_reader in(bytes); in.next();) {
    if (in.key() == field(1, wire::length))
      def.cluster = cluster_spec(detail::read_cluster(in.message()));
    else if (in.key() == field(2, wire::length))
      def.job_name = in.string();
    else if (in.key() == field(3, wire::varint))
      def.task_index = detail::index_in_message(in.integer());
    else if (in.key() == field(4, wire::length))
      def.default_session_config = detail::read_config(in.message());
    else if (in.key() == field(5, wire::length))
      def.protocol = in.string();
  }
  return def;
}

GRADUS_BODY server_def server_def_from_pbtxt(std::string_view text) {
  server_def def;
  def.task_index = 0;
  for (text_message_reader in(text); in.next();) {
    if (in.name() == "cluster") {
      in.enter();
      def.cluster = cluster_spec(detail::read_jobs(in));
    } else if (in.name() == "job_name") {
      def.job_name = in.string();
    } else if (in.name() == "task_index") {
      def.task_index = detail::index_in_message(in.integer());
    } else if (in.name() == "default_session_config") {
      def.default_session_config = detail::read_config(in);
    } else if (in.name() == "protocol") {
      def.protocol = in.string();
    }
  }
  return def;
}

}  // namespace gradus
