// The files of a parameter server's log, in a folder of its own:
//
//   of                  the fingerprint of the run: a log is of no use to another model, rule or cluster
//   snapshot-*, log-*   the records that its machines have written (node_log.hpp)
//   orders              of a run that depends on the order of arrival: the gradients of each update (order_log.hpp)
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "hello.hpp"
#include "node_log.hpp"
#include "order_log.hpp"
#include "protocol/message.hpp"
#include "protocol/staleness.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Returns the fingerprint of a parameter server's folder: that of the run, with its cluster and the server's number.
cluster_fingerprint logged_run(cluster_fingerprint of, const decider_options& decides, std::uint32_t shard);

// The longest file `of`: a fingerprint has a name and extents for each variable.
inline constexpr std::uint64_t most_of_fingerprint = std::uint64_t{1} << 26;

struct server_log {
  // Raises failed_precondition for a folder that another run has written, with the first difference.
  server_log(const any_file_system& fs, const std::string& directory, bool durable, cluster_fingerprint of,
             const decider_options& decides, std::uint32_t shard);

  node_log log;
  std::optional<order_file> orders;
  bool is_durable;

  // The same as node_log's. Orders are written first, since a snapshot removes the records from which they could be
  // written again.
  void snapshot(const std::function<void(bytes_out)>& save) {
    if (orders) orders->sync(is_durable);
    log.snapshot(save);
  }
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "server_log.ipp"
#endif
