// A waiting_line lists the workers that wait on a shard for an order, with one place for each. A wait ends when the
// order is there, when the worker requests something else, or by its deadline.
#pragma once
#include "../../base/build.hpp"

#include <algorithm>
#include <vector>

#include "message.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

class waiting_line {
public:
  struct place {
    std::uint64_t incarnation = 0, sequence = 0, order = 0;
    nanos since = 0, until = never_due;
    bool is_taken() const { return until != never_due; }
  };
  explicit waiting_line(std::uint32_t workers) : places_(workers), expired_(workers) {}

  // Adds a wait. If the request is sent again, the wait counts from the first time.
  void wait(const contribution_id& id, std::uint64_t order, nanos now, nanos deadline) {
    place& p = places_[id.worker];
    const bool same = p.is_taken() && p.incarnation == id.incarnation && p.sequence == id.sequence;
    const nanos since = same ? p.since : now;
    p = {id.incarnation, id.sequence, order, since, since + deadline};
  }
  // Calls `serve(id)` for each worker that waited for this order or one before it.
  template <class Serve>
  void reached(std::uint64_t order, Serve serve) {
    for (std::uint64_t worker = 0; worker < places_.size(); ++worker) {
      place& p = places_[worker];
      if (!p.is_taken() || p.order > order) continue;
      p.until = never_due;
      serve(contribution_id{worker, p.incarnation, p.sequence});
    }
  }
  // Ends the waits whose deadline has passed, and returns their number.
  std::uint64_t expire(nanos now) {
    std::uint64_t n = 0;
    for (std::size_t k = 0; k < places_.size(); ++k) {
      if (places_[k].until > now) continue;
      if (n++ == 0) std::ranges::fill(expired_, place{});
      places_[k].until = never_due, expired_[k] = places_[k];
    }
    return n;
  }
  // Returns, by worker, the waits that were ended by the last call of expire() which ended any; others have order 0.
  std::span<const place> expired() const { return expired_; }
  nanos next() const {
    nanos at = never_due;
    for (const place& p : places_) at = std::min(at, p.until);
    return at;
  }
  // Calls `see(worker, place)` for each worker that waits.
  template <class See>
  void each(See see) const {
    for (std::uint64_t worker = 0; worker < places_.size(); ++worker)
      if (places_[worker].is_taken()) see(worker, places_[worker]);
  }

private:
  std::vector<place> places_;   // by worker
  std::vector<place> expired_;  // by worker
};

}  // namespace gradus::detail
