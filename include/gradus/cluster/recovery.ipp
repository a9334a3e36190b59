// The bodies of recovery.hpp.
#pragma once
#include "../base/body.hpp"
#include "recovery.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::optional<recovery::log> log_of(const recovery::log& p) {
  if (p.directory.empty())
    raise(
        status::invalid_argument,
        "recovery::log: expected a directory for the logs of parameter servers, such as .directory = \"/disk/run-a\"");
  return p;
}

GRADUS_BODY std::unique_ptr<server_log> open_log(const std::optional<recovery::log>& p, const cluster_fingerprint& of,
                                                 const decider_options& decides, std::uint32_t shard) {
  if (!p) return nullptr;
  return std::make_unique<server_log>(any_file_system(), join_path(p->directory, text("ps-", shard)), p->durable, of,
                                      decides, shard);
}

}  // namespace gradus::detail
