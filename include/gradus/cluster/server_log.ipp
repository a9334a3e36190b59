// The bodies of server_log.hpp.
#pragma once
#include "../base/body.hpp"
#include "server_log.hpp"

#include <algorithm>
#include <utility>

#include "../store/file_bytes.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY cluster_fingerprint logged_run(cluster_fingerprint of, const decider_options& decides,
                                           std::uint32_t shard) {
  const auto add = [&](const char* name, std::uint64_t n) {
    of.settings.emplace_back(text("cluster: ", name), text(n));
  };
  add("number of ps", decides.shape.shards), add("number of workers", decides.shape.workers), add("this ps", shard);
  add("gradients of an update", decides.contributions());
  add("most updates that a worker leads by", decides.mode == staleness::bounded ? decides.bound : 0);
  std::sort(of.settings.begin(), of.settings.end());
  return of;
}

GRADUS_BODY server_log::server_log(const any_file_system& fs, const std::string& directory, bool durable,
                                   cluster_fingerprint of, const decider_options& decides, std::uint32_t shard)
    : log(fs, directory, {.durable = durable}), is_durable(durable) {
  of = logged_run(std::move(of), decides, shard);
  const std::string path = join_path(directory, "of");
  std::vector<std::byte> there;
  const auto p = try_read(fs, path, most_of_fingerprint, there);
  if (p && p.error != ENOENT) raise(p);
  if (!p) {
    const std::string difference = difference_of(of, "this run", cluster_fingerprint_from(there), "the log");
    if (!difference.empty())
      raise(status::failed_precondition,
            text("the log in \"", directory, "\" is of another run: ", difference,
                 "; go on as it was begun, or give another directory to go on from the last checkpoint"));
  } else {
    const std::vector<std::byte> bytes = to_bytes(of);
    const std::span<const std::byte> piece(bytes);
    publish(fs, path, byte_pieces(&piece, 1));
  }
  if (decides.logs_orders(shard))
    orders.emplace(fs, join_path(directory, "orders"), order_log_of{shard, decides.contributions()});
}

}  // namespace gradus::detail
