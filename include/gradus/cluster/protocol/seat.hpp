// A seat is the state that the decider keeps for a worker, besides its window.
#pragma once
#include "../../base/build.hpp"

#include <algorithm>

#include "window.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

struct worker_seat {
  std::uint64_t owner = 0, last = 0;                // the incarnation that joined, and its last decided sequence
  std::uint64_t owner_before = 0, last_before = 0;  // of the last incarnation before it with decided sequences
  std::uint64_t process = 0;                        // the number that the owner chose for itself
  std::uint64_t record = 0;                         // the record for which messages about the worker wait
  std::uint64_t owed = 0, lost = 0;                 // owed: the sequence whose token it waits for
  bool is_owed = false, has_left = false;

  void owe(std::uint64_t sequence) { is_owed = true, owed = sequence; }
  void decided(const contribution_id& id) {
    if (id.incarnation == owner) last = std::max(last, id.sequence);
  }
  // Takes another incarnation. If nothing of the present one was decided, the one before it is kept, since the message
  // `joined` with it may have been lost; not so with `forgets`.
  void take(std::uint64_t incarnation, std::uint64_t chosen, bool forgets) {
    if (last != 0 && !forgets) owner_before = owner, last_before = last;
    owner = incarnation, process = chosen, last = 0, has_left = false;
  }

  void save(bytes_out out) const {
    out.number(owner), out.number(last), out.number(process);
    out.number(owner_before), out.number(last_before);
    out.number(static_cast<std::uint8_t>(has_left));
  }
  void load(bytes_in& in) {
    owner = in.number<std::uint64_t>(), last = in.number<std::uint64_t>(), process = in.number<std::uint64_t>();
    owner_before = in.number<std::uint64_t>(), last_before = in.number<std::uint64_t>();
    has_left = in.number<std::uint8_t>() != 0;
  }
};

}  // namespace gradus::detail
