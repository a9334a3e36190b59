// A replay_plan holds the updates in the logs of a run's parameter servers, which a replay repeats
// (replay_network.hpp).
//
//   gradus::detail::replay_plan plan(fs, "/disk/run-a");       // the folder that recovery::log was given
//   plan.must_be(fingerprint, decides, 0);                     // raises failed_precondition, with the first difference
//   for (std::uint64_t order = plan.first(); order <= plan.last(); ++order) use(plan.at(order, 0));
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include "hello.hpp"
#include "order_log.hpp"
#include "protocol/staleness.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

class replay_plan {
public:
  // Raises not_found if there are no logs of orders, and the errors of order_log.
  replay_plan(const any_file_system& fs, const std::string& directory);

  const std::string& directory() const { return directory_; }
  const cluster_shape& shape() const { return shape_; }
  // Return the first and the last update that all parameter servers have logged; if there are none, last() < first().
  std::uint64_t first() const { return first_; }
  std::uint64_t last() const { return last_; }
  std::uint32_t of_update() const { return logs_[0].of().of_update; }              // number of contributions
  std::uint32_t logs() const { return static_cast<std::uint32_t>(logs_.size()); }  // number of logs of orders

  // Raises failed_precondition for another run than the one that was logged.
  void must_be(const cluster_fingerprint& of, const decider_options& decides, std::uint32_t shard) const;

  // Returns contribution i of an update. Raises data_loss if the logs of two parameter servers differ.
  order_entry at(std::uint64_t order, std::uint32_t i) const;
  // Returns the order of the shard's values from which it was computed.
  std::uint64_t read(std::uint64_t order, std::uint32_t i, std::uint32_t shard) const;

  // This is a contribution of a worker: number i of update `order`.
  struct place {
    std::uint64_t order = 0;
    std::uint32_t i = 0;
    friend bool operator==(const place&, const place&) = default;
  };
  // Sets p to the first contribution of this worker from p on, up to update `until`. Returns false if there is none.
  bool find(std::uint64_t worker, place& p, std::uint64_t until) const;
  place behind(place p) const { return p.i + 1 < of_update() ? place{p.order, p.i + 1} : place{p.order + 1, 0}; }

private:
  std::string directory_;
  std::vector<cluster_fingerprint> of_;  // by shard
  std::vector<order_log> logs_;          // of every shard; in a run with rounds only of the first
  cluster_shape shape_;
  std::uint64_t first_ = 1, last_ = 0;
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "replay_plan.ipp"
#endif
