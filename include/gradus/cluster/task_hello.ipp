// The bodies of task_hello.hpp.
#pragma once
#include <random>

#include "../base/body.hpp"
#include "plain_bytes.hpp"
#include "task_hello.hpp"
#include "wire.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY cluster_nodes::cluster_nodes(const server_def& def) : task(text(def.job_name, " ", def.task_index)) {
  bool found = false;
  for (const std::string_view job : {"ps", "chief", "master", "worker"}) {
    if (!def.cluster.has(job)) continue;
    for (const int index : def.cluster.task_indices(job)) {
      if (def.job_name == job && def.task_index == index) me = static_cast<std::uint32_t>(names.size()), found = true;
      names.push_back(text(job, " ", index));
      addresses.push_back(def.cluster.task_address(job, index));
      all += text(all.empty() ? "" : ", ", names.back(), " at ", addresses.back());
    }
    if (job == "ps") shards = static_cast<std::uint32_t>(names.size());
  }
  workers = static_cast<std::uint32_t>(names.size()) - shards;
  if (!found) raise(status::not_found, text("the task ", task, " is no node of its cluster: ", all));
}

GRADUS_BODY std::uint64_t draw_boot() {
  std::random_device chance;
  std::uint64_t boot = 0;
  while (boot == 0) boot = std::uint64_t{chance()} << 32 | chance();
  return boot;
}

GRADUS_BODY std::vector<std::byte> hello_frame(const task_hello& h) {
  std::vector<std::byte> bytes, frame;
  bytes_out out(bytes);
  put_plain(out, h);
  message_encoder encoder;
  for (const auto piece : encoder.encode({.kind = message_kind::hello, .sender = h.node},
                                         {{"hello", dtype::uint8, 0, std::span<const std::byte>(bytes)}}))
    frame.insert(frame.end(), piece.begin(), piece.end());
  return frame;
}
GRADUS_BODY std::vector<std::byte> own_hello(const cluster_nodes& here, std::uint64_t boot, task_hello h) {
  h.node = here.me, h.boot = boot, h.task = here.task, h.cluster = here.all;
  return hello_frame(h);
}
GRADUS_BODY task_hello read_hello(std::span<const std::byte> frame) {
  message_decoder decoder;
  const decoded_message& m = decoder.decode(frame);
  if (m.head.kind != message_kind::hello || m.slices.size() != 1)
    raise(status::data_loss, text("the first message of a peer: expected hello, found ", kind_name(m.head.kind)));
  bytes_in in(m.slices[0].bytes, "hello of a peer");
  kept_texts texts;
  task_hello h = take_plain<task_hello>(in, texts);
  in.end();
  return h;
}
GRADUS_BODY task_hello read_welcome(std::span<const std::byte> answer, std::uint32_t node, const cluster_nodes& here) {
  task_hello h = read_hello(answer);
  if (h.node != node || h.cluster != here.all)
    raise(status::failed_precondition,
          text("at ", here.addresses[node], " answers ", h.task, h.cluster != here.all ? " of another cluster" : "",
               "; expected ", here.names[node], h.cluster != here.all ? text(" of ", here.all) : ""));
  return h;
}

GRADUS_BODY void check_hello(const task_hello& h, const transport_peer& from, const cluster_nodes& here) {
  if (h.version != GRADUS_VERSION)
    raise(status::failed_precondition, text("the library of ", here.task, " is ", GRADUS_VERSION, ", that of ", h.task,
                                            " is ", h.version, "; start all tasks from one build"));
  if (h.cluster != here.all)
    raise(status::failed_precondition,
          text("the clusters of two tasks differ: ", here.task, " has ", here.all, "; ", h.task, " has ", h.cluster,
               "; give all tasks the same TF_CONFIG but for its \"task\""));
  if (h.node >= here.names.size() || here.names[h.node] != h.task || h.node == here.me)
    raise(status::failed_precondition,
          text("a task that calls itself ", h.task, " has said hello to ", here.task, ", and is none that could"));
  const bool is_chief = h.node == here.shards;
  if (const std::string& role = from.role; !role.empty()) {
    const bool fits = h.node < here.shards ? role == "ps" : role == "chief" || (role == "worker" && !is_chief);
    if (!fits)
      raise(status::permission_denied,
            text("the certificate of ", h.task, " is one of the role \"", role, "\"; expected \"",
                 h.node < here.shards ? "ps"
                 : is_chief           ? "chief"
                                      : "worker",
                 '"'));
  }
}

}  // namespace gradus::detail
