// A shard_store is the store of a shard, as its machine sees it: variables, their slots and averages, and the rule that
// changes them. A store has no log and sends nothing: the machine controls it.
//
// An update is begin, then for each round that it wants measure and settle, then apply. A round is what depends on
// variables of all shards: the norm of a clip, whether something is not finite, the loss scale. Each shard measures its
// own, and each receives the lists of all, so all settle the same. Shards must want the same rounds, so how many there
// are may follow from the order and from what was settled, and from nothing else. The old values are sent until apply.
#pragma once
#include <concepts>
#include <string>

#include "parts.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

template <class S>
concept shard_store =
    requires(S& s, const S& c, std::span<const wire_slice> parts, std::uint64_t order, std::span<const staged_part> set,
             std::size_t round, std::span<const std::span<const double>> by_shard, bytes_out out, bytes_in& in) {
      { c.problem_of(parts) } -> std::convertible_to<std::string>;  // empty: they fit what is stored here
      // Sums the parts, by worker, then sequence: the order of arrival never reaches the result. Changes nothing that
      // values(), state() or save() show; an update that was begun and not applied may be begun again.
      s.begin(order, set);
      { c.rounds() } -> std::convertible_to<std::size_t>;  // that it wants; asked again after each settle
      // Returns the numbers that this shard's variables add to a round: as many each time. They are valid until the
      // next call.
      { s.measure(round) } -> std::convertible_to<std::span<const double>>;
      // Takes the lists of all, in the order of shards. Lists that cannot be used are an `error`, and change nothing.
      s.settle(round, by_shard);
      s.apply();                                                           // now values change
      { c.values() } -> std::convertible_to<std::span<const wire_slice>>;  // what a worker computes from
      // All that changes: values, slots, averages, the optimizer's own. Good until the store changes.
      { c.state() } -> std::convertible_to<std::span<const wire_slice>>;
      // Takes a `state` of another store, as it is after so many updates. A state that does not fit is an `error`, and
      // changes nothing.
      s.restore(order, parts);
      c.save(out);
      s.load(in);
    };

struct shard_options {
  std::uint32_t number = 0;
  cluster_shape shape = {};
  std::uint32_t width = 4;                    // contributions under way, per worker
  nanos retry = 200 * one_millisecond;        // until what the decider has not answered is said again
  nanos deadline = 30'000 * one_millisecond;  // of a pull that waits for an order
  bool needs_begin = false;                   // its values are nothing before a worker has given them
};

// The counts of messages that a shard has refused and dropped, which any thread may read.
struct shard_counts {
  std::uint64_t applied = 0, repeated = 0, stale = 0, replayed = 0, forged = 0, misfits = 0, dropped = 0, expired = 0,
                full = 0, not_begun = 0, incomplete = 0;
};

}  // namespace gradus::detail
