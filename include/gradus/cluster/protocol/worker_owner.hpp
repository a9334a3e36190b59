// The owner of a worker's half of the protocol computes; this header has its callbacks, and the options.
#pragma once
#include <string>

#include "message.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// The callbacks of a worker's owner. Calls come out of receive() and advance(); push() and leave() may be called in
// them.
class worker_owner {
public:
  // The worker has joined, and is one that begins: call begin_with(), in this call or later.
  virtual void begin() {}
  // Values of a shard, as they are after so many updates: to be copied, or used, now.
  virtual void values(std::uint32_t shard, std::uint64_t order, std::span<const wire_slice> parts) = 0;
  // All shards' values are there; compute a gradient at this step, and push it.
  virtual void compute(std::uint64_t step) = 0;
  // Reports the outcome of a push, which is final.
  virtual void concluded(token_verdict verdict, std::uint64_t order) = 0;
  // The same, of the push that was under way when the worker had to join again. False: nothing of it is or will be
  // applied anywhere.
  virtual void outcome(bool decided) = 0;
  // The whole state of a shard, as it is after so many updates: to be copied, or written, now. Where decisions could
  // not be held long enough, some come again, of a later order; those before are of no use.
  virtual void fetched(std::uint32_t /*shard*/, std::uint64_t /*order*/, std::span<const wire_slice> /*parts*/) {}
  // Every shard's was there, of this order. The worker computes again: push(), leave() or fetch() may be called.
  virtual void fetched_all(std::uint64_t /*order*/) {}
  // Nothing of the push that is under way will be applied: too many workers have left for another synchronous round.
  // fetch() and leave() may be called, and nothing else.
  virtual void over() {}
  // A wait passed its deadline.
  virtual void expired(const std::string& what) = 0;

protected:
  ~worker_owner() = default;
};

struct worker_options {
  std::uint64_t number = 0;
  cluster_shape shape = {};
  nanos retry = 100 * one_millisecond;  // until a message is said again, doubled each time up to retry_most
  nanos retry_most = 2'000 * one_millisecond;
  nanos deadline = 30'000 * one_millisecond;  // of every wait
  nanos heartbeat = 1'000 * one_millisecond;
  bool begins = false;  // it brings initial values, where shards have none
};

}  // namespace gradus::detail
