// With bounded staleness (SSP) a worker that begins a step has made at most `bound` updates more than the slowest of
// the workers that take part. Bound 0 is lockstep; without a bound no worker waits. A clock counts a worker's updates.
// A worker that is dead or has left holds up no other; one that comes back goes on from the slowest of the others, if
// it was behind.
#pragma once
#include "../../base/build.hpp"

#include <algorithm>
#include <vector>

#include "bytes.hpp"
#include "message.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

template <class Faults = no_faults>
class ssp_gate {
public:
  static constexpr std::uint64_t unbounded = ~std::uint64_t{0};

  // All workers take part from the start, so that the first cannot get ahead of those that start later by more than the
  // bound.
  ssp_gate(std::uint32_t workers, std::uint64_t bound) : bound_(bound), clocks_(workers) {}

  void enter(std::uint64_t worker) {
    clock& c = clocks_[worker];
    if (c.takes_part) return;
    c.updates = std::max(c.updates, slowest());
    c.takes_part = true;
  }
  void leave(std::uint64_t worker) { clocks_[worker].takes_part = false; }
  bool takes_part(std::uint64_t worker) const { return clocks_[worker].takes_part; }
  void count(std::uint64_t worker) { ++clocks_[worker].updates; }
  std::uint64_t updates_of(std::uint64_t worker) const { return clocks_[worker].updates; }
  // Returns the least number of updates of those that take part; 0 if none does.
  std::uint64_t slowest() const {
    std::uint64_t least = unbounded;
    for (const clock& c : clocks_)
      if (c.takes_part) least = std::min(least, c.updates);
    return least == unbounded ? 0 : least;
  }
  bool may_begin(std::uint64_t worker) const {
    if (bound_ == unbounded) return true;
    const std::uint64_t most = slowest() + bound_ + (Faults::on(protocol_fault::lead_one_too_far) ? 1 : 0);
    return clocks_[worker].updates <= most;
  }

  void save(bytes_out out) const {
    for (const clock& c : clocks_) out.number(c.updates), out.number(static_cast<std::uint8_t>(c.takes_part));
  }
  void load(bytes_in& in) {
    for (clock& c : clocks_) c.updates = in.number<std::uint64_t>(), c.takes_part = in.number<std::uint8_t>() != 0;
  }

private:
  struct clock {
    std::uint64_t updates = 0;
    bool takes_part = true;
  };
  std::uint64_t bound_;
  std::vector<clock> clocks_;
};

}  // namespace gradus::detail
