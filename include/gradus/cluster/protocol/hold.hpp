// A worker holds decisions, so that all shards come to the same order and stay there while it fetches their state. A
// hold ends when its worker releases it, goes on, leaves, is replaced or dies, or by its deadline. It is not saved: if
// the decider restarts, the hold is over, and a worker that finds a shard at a later order holds again.
#pragma once
#include "../../base/build.hpp"

#include <algorithm>
#include <vector>

#include "message.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

class hold_place {
public:
  explicit hold_place(std::uint32_t workers) : done_(workers) {}
  bool is_held() const { return is_held_; }
  // Returns the worker that holds; its sequence counts the holds of that worker.
  const contribution_id& holder() const { return holder_; }

  // Begins a hold. `update` is the last one that the worker has pushed. Returns true if the worker holds now, or did
  // already; false if another worker holds, or if this hold is over, and the message came late.
  bool take(const contribution_id& id, std::uint64_t update, nanos now) {
    if (is_held_ && holder_.worker != id.worker) return false;
    if (id <= done_[id.worker]) return false;
    if (is_held_ && id <= holder_) return id == holder_;
    is_held_ = true, holder_ = id, update_ = update, since_ = now;
    return true;
  }
  void release(const contribution_id& id) {
    contribution_id& done = done_[id.worker];
    done = std::max(done, id);
    if (is_held_ && holder_.worker == id.worker && holder_ <= done) is_held_ = false;
  }
  // To be called when a worker requests a token. If its update is later than the hold, the release was lost, and the
  // hold ends.
  void goes_on(std::uint64_t worker, std::uint64_t incarnation, std::uint64_t update) {
    if (is_held_ && holder_.worker == worker && holder_.incarnation == incarnation && update > update_)
      release(holder_);
  }
  // To be called when the worker left, was replaced, or died.
  void forget(std::uint64_t worker) {
    if (is_held_ && holder_.worker == worker) is_held_ = false;
  }
  void expire(nanos now, nanos deadline) {
    if (is_held_ && since_ + deadline <= now) release(holder_);
  }
  nanos next(nanos deadline) const { return is_held_ ? since_ + deadline : never_due; }

private:
  bool is_held_ = false;
  contribution_id holder_;
  std::uint64_t update_ = 0;
  nanos since_ = 0;
  std::vector<contribution_id> done_;  // by worker: the last hold that is over
};

}  // namespace gradus::detail
