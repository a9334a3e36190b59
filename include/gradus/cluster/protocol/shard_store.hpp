// shard_store is the interface of a shard's store for its machine. A store has variables, their slots and averages, and
// the rule that changes them. It has no log and sends nothing: the machine controls it.
//
// An update is begin, then for each round that the store needs measure and settle, then apply. A round computes what
// depends on variables of all shards: the norm of a clip, whether something is not finite, the loss scale. Each shard
// measures its own variables and receives the lists of all shards, so all settle the same. Shards must need the same
// rounds, so their number may depend only on the order and on what was settled. The old values are sent until apply.
#pragma once
#include "../../base/build.hpp"

#include <concepts>
#include <string>

#include "parts.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

template <class S>
concept shard_store =
    requires(S& s, const S& c, std::span<const wire_slice> parts, std::uint64_t order, std::span<const staged_part> set,
             std::size_t round, std::span<const std::span<const double>> by_shard, bytes_out out, bytes_in& in) {
      { c.problem_of(parts) } -> std::convertible_to<std::string>;  // empty: they fit the variables of this store
      // Sums the parts, by worker, then sequence, so the order of arrival does not change the result. It does not
      // change what values(), state() or save() return; an update that was begun and not applied may be begun again.
      s.begin(order, set);
      { c.rounds() } -> std::convertible_to<std::size_t>;  // number that it needs; called again after each settle
      // Returns the numbers that this shard's variables add to a round; always the same count. They are valid until the
      // next call.
      { s.measure(round) } -> std::convertible_to<std::span<const double>>;
      // Takes the lists of all shards, in their order. Raises an `error` for lists that cannot be used; then nothing
      // has changed.
      s.settle(round, by_shard);
      s.apply();                                                           // now values change
      { c.values() } -> std::convertible_to<std::span<const wire_slice>>;  // what a worker computes from
      // Returns all that changes: values, slots, averages, the optimizer's own state. Valid until the store changes.
      { c.state() } -> std::convertible_to<std::span<const wire_slice>>;
      // Takes the `state` of another store, as it is after `order` updates. Raises an `error` for a state that does not
      // fit; then nothing has changed.
      s.restore(order, parts);
      c.save(out);
      s.load(in);
    };

struct shard_options {
  std::uint32_t number = 0;
  cluster_shape shape = {};
  std::uint32_t width = 4;                    // contributions under way, per worker
  nanos retry = 200 * one_millisecond;        // until a message that the decider has not answered is sent again
  nanos deadline = 30'000 * one_millisecond;  // of a pull that waits for an order
  bool needs_begin = false;                   // it has no values before a worker has given them
};

// The counts of messages that a shard has refused and dropped, which any thread may read.
struct shard_counts {
  std::uint64_t applied = 0, repeated = 0, stale = 0, replayed = 0, forged = 0, misfits = 0, dropped = 0, expired = 0,
                full = 0, not_begun = 0, incomplete = 0;
};

}  // namespace gradus::detail
