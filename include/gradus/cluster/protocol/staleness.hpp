// The options of the decider, which follow from how stale the values may be from which a gradient was computed.
//
//   asynchronous   every push is an update of its own, no worker waits
//   bounded        the same, but a worker that begins leads the slowest by at most `bound` updates (ssp)
//   synchronous    N of M contributions of one step are one update
//
// Bound 0 is the synchronous round of all workers, which is one update of their sum, and not N updates in a row. So it
// gives the bits of one process.
#pragma once
#include "membership.hpp"
#include "round.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

enum class staleness : std::uint8_t { asynchronous, bounded, synchronous };

struct decider_options {
  cluster_shape shape = {};
  std::uint32_t width = 4;  // as the shards'
  staleness mode = staleness::asynchronous;
  std::uint64_t bound = 0;   // of bounded
  round_options round = {};  // of synchronous
  membership_options members = {};
  bool needs_begin = false;                        // no token before a worker has reported that every shard has values
  nanos hold_deadline = 30'000 * one_millisecond;  // of a worker that holds decisions while it fetches

  // Returns whether the order of arrival changes the bits, so that a run can be repeated only from its log.
  bool goes_by_arrival() const {
    const decider_options o = settled();
    return o.mode != staleness::synchronous || o.round.total > o.round.aggregate || o.round.wasted_first_round;
  }
  // Returns whether a shard logs the orders of that. A round is computed from the values of the same order on all
  // shards, so only one shard logs its set.
  bool logs_orders(std::uint32_t shard) const {
    return goes_by_arrival() && (settled().mode != staleness::synchronous || shard == cluster_shape::decider);
  }
  // Returns the number of contributions of an update.
  std::uint32_t contributions() const {
    const decider_options o = settled();
    return o.mode == staleness::synchronous ? o.round.aggregate : 1;
  }
  // Returns the options with all that follows from these filled in. Raises invalid_argument for options that contradict
  // each other.
  decider_options settled() const {
    decider_options o = *this;
    if (mode == staleness::bounded && bound == 0) o.mode = staleness::synchronous, o.round = {shape.workers, 0, false};
    if (o.mode != staleness::synchronous) return o;
    if (o.round.total == 0) o.round.total = o.round.aggregate;
    if (o.round.total != shape.workers)
      raise(status::invalid_argument,
            text("a synchronous round of ", o.round.total, " workers in a cluster of ", shape.workers));
    return o;
  }
};

}  // namespace gradus::detail
