// The owner of a worker's half of the protocol computes the gradients; this header has its callbacks, and the options.
#pragma once
#include "../../base/build.hpp"

#include <string>

#include "message.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// The callbacks of a worker's owner. They are called by receive() and advance(), and may call push() and leave().
class worker_owner {
public:
  // Called when a worker with `begins` has joined: call begin_with(), in this call or later.
  virtual void begin() {}
  // Called with values of a shard, as they are after `order` updates; they have to be copied, or used, in this call.
  virtual void values(std::uint32_t shard, std::uint64_t order, std::span<const wire_slice> parts) = 0;
  // Called when all shards' values are there: compute a gradient at this step, and push it.
  virtual void compute(std::uint64_t step) = 0;
  // Reports the outcome of a push, which is final.
  virtual void concluded(token_verdict verdict, std::uint64_t order) = 0;
  // Reports the outcome of the push that was under way when the worker had to join again. False means that nothing of
  // it is or will be applied anywhere.
  virtual void outcome(bool decided) = 0;
  // Called with the whole state of a shard, as it is after `order` updates; it has to be copied, or written, in this
  // call. If decisions could not be held long enough, states of a later order follow, and those before are of no use.
  virtual void fetched(std::uint32_t /*shard*/, std::uint64_t /*order*/, std::span<const wire_slice> /*parts*/) {}
  // Called when the state of every shard was there, of this order. The worker computes again: push(), leave() or
  // fetch() may be called.
  virtual void fetched_all(std::uint64_t /*order*/) {}
  // Called when nothing of the push that is under way will be applied, since too few workers are left for another
  // synchronous round. Only fetch() and leave() may be called from now on.
  virtual void over() {}
  // Called when a wait has taken as long as worker_options::patience, then again whenever it has taken twice as long as
  // at the call before. The wait goes on. `what` names it, as a sentence that begins with the worker.
  virtual void waits_long(const std::string& what) = 0;

protected:
  ~worker_owner() = default;
};

struct worker_options {
  std::uint64_t number = 0;
  cluster_shape shape = {};
  nanos retry = 100 * one_millisecond;  // until a message is sent again, doubled each time up to retry_most
  nanos retry_most = 2'000 * one_millisecond;
  // Until a wait is reported, and what may be lost is sent again: a hold, a start, a question about a push that was
  // kept. A wait for a shard that says it has no values ends with an error then.
  nanos patience = 30'000 * one_millisecond;
  nanos heartbeat = 1'000 * one_millisecond;
  bool begins = false;  // it provides initial values if shards have none
};

}  // namespace gradus::detail
