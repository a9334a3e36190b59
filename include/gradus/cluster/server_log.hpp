// What a parameter server keeps on disk, in a folder of its own:
//
//   of            what the run is made from: a log is of no use to another model, rule or cluster
//   snapshot-*, log-*   what its machines have written (node_log.hpp)
//   orders        ps 0 of an asynchronous run: which worker's which update was the order-th
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "../store/file.hpp"
#include "hello.hpp"
#include "node_log.hpp"
#include "protocol/message.hpp"
#include "protocol/staleness.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Order entries behind one another, 16 bytes each, each order once. Whoever writes says the last ones again after a
// restart; they are passed over.
class order_file {
public:
  // What stands there and is no whole line of consecutive orders goes away.
  order_file(const any_file_system& fs, const std::string& path);
  // Error: data_loss for an entry that is not the next one.
  void add(const order_entry& e);
  // To the operating system, or (`durable`) to the disk.
  void sync(bool durable);
  std::uint64_t last() const { return last_; }  // 0: it is empty

private:
  std::optional<appended_file> file_;
  std::uint64_t last_ = 0;
  bool is_synced_ = true;
};

struct server_log {
  // Error: failed_precondition for a folder that another run has written, with the first difference.
  server_log(const any_file_system& fs, const std::string& directory, bool durable, cluster_fingerprint of,
             const decider_options& decides, std::uint32_t shard);

  node_log log;
  std::optional<order_file> orders;
  bool is_durable;

  // The same as node_log's. Orders are written before: a snapshot takes the records away that would say them again.
  void snapshot(const std::function<void(bytes_out)>& save) {
    if (orders) orders->sync(is_durable);
    log.snapshot(save);
  }
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "server_log.ipp"
#endif
