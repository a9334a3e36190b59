// What the logs of a run's parameter servers say about its updates: what a replay repeats (replay_network.hpp).
//
//   gradus::detail::replay_plan plan(fs, "/disk/run-a");       // the folder that recovery::log was given
//   plan.must_be(fingerprint, decides, 0);                     // or failed_precondition, with the first difference
//   for (std::uint64_t order = plan.first(); order <= plan.last(); ++order) use(plan.at(order, 0));
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "hello.hpp"
#include "order_log.hpp"
#include "protocol/staleness.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

class replay_plan {
public:
  // Errors: not_found where there are no logs of orders; those of order_log.
  replay_plan(const any_file_system& fs, const std::string& directory);

  const std::string& directory() const { return directory_; }
  const cluster_shape& shape() const { return shape_; }
  // Updates that all parameter servers have logged; none: last() < first().
  std::uint64_t first() const { return first_; }
  std::uint64_t last() const { return last_; }
  std::uint32_t of_update() const { return logs_[0].of().of_update; }              // contributions
  std::uint32_t logs() const { return static_cast<std::uint32_t>(logs_.size()); }  // of orders

  // Error: failed_precondition for another run than the one that was logged.
  void must_be(const cluster_fingerprint& of, const decider_options& decides, std::uint32_t shard) const;

  // Contribution i of an update. Error: data_loss where two parameter servers do not say the same.
  order_entry at(std::uint64_t order, std::uint32_t i) const;
  // From which of a shard's values it was computed.
  std::uint64_t read(std::uint64_t order, std::uint32_t i, std::uint32_t shard) const;

  // A contribution of a worker: number i of update `order`.
  struct place {
    std::uint64_t order = 0;
    std::uint32_t i = 0;
    friend bool operator==(const place&, const place&) = default;
  };
  // The first one of this worker from p on, up to update `until`. False: there is none.
  bool find(std::uint64_t worker, place& p, std::uint64_t until) const;
  place behind(place p) const { return p.i + 1 < of_update() ? place{p.order, p.i + 1} : place{p.order + 1, 0}; }

private:
  std::string directory_;
  std::vector<cluster_fingerprint> of_;  // by shard
  std::vector<order_log> logs_;          // of every shard, or, of rounds, of the first alone
  cluster_shape shape_;
  std::uint64_t first_ = 1, last_ = 0;
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "replay_plan.ipp"
#endif
