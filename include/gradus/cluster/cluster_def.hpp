// ClusterDef and ServerDef are TensorFlow's protocol buffers of a cluster and of a task in it; here they are structs,
// protobuf's bytes, and its text format.
//
//   const auto def = gradus::cluster_def::from_pbtxt(R"(job { name: "ps" tasks { key: 0 value: "ps0:2222" } })");
//   gradus::cluster_spec cluster(def);
//   const std::vector<std::byte> bytes = cluster.as_cluster_def().to_proto();
//   gradus::server_def here = gradus::server_def_from_proto(bytes_of_a_server_def);
//
// The bytes are those of the official writers, with the tasks of a job in the order of their indices. Bytes need
// protozero (store/wire.hpp), text does not. Both may come from untrusted sources: the readers raise data_loss for
// malformed input and invalid_argument for a cluster that makes no sense, and skip unknown fields.
#pragma once
#include "../base/build.hpp"

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "spec.hpp"

namespace gradus::inline GRADUS_BUILD {

struct job_def {
  std::string name = {};
  std::map<int, std::string> tasks = {};

  friend bool operator==(const job_def&, const job_def&) = default;
};

struct cluster_def {
  std::vector<job_def> job = {};

  static cluster_def from_proto(std::span<const std::byte> bytes);
  static cluster_def from_pbtxt(std::string_view text);
  std::vector<std::byte> to_proto() const;
  std::string to_pbtxt() const;

  friend bool operator==(const cluster_def&, const cluster_def&) = default;
};

// A task_index that was left out is written as 0, as protobuf does, and read as 0.
std::vector<std::byte> to_proto(const server_def& def);
std::string to_pbtxt(const server_def& def);
server_def server_def_from_proto(std::span<const std::byte> bytes);
server_def server_def_from_pbtxt(std::string_view text);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "cluster_def.ipp"
#endif
