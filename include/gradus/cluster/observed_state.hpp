// An observed_state is the state of the schedules of an update that observe values (reduce_on_plateau), as bytes. Only
// the chief of a cluster observes: what its schedules made of a value goes to all that make the updates, with the
// chief's next gradient. So a value is observed once, between the same two updates everywhere, and a message that is
// repeated changes nothing.
#pragma once
#include "../base/build.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../base/state.hpp"
#include "wire.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

class observed_state {
public:
  // The name of its slice in a push; no variable has it (store_variables.hpp).
  static constexpr std::string_view name = ":observed";

  observed_state() = default;
  // Of an update without such schedules it is empty, and the functions below do nothing. The update must stay where it
  // is. Raises unimplemented for a schedule whose state has no fixed size.
  template <class Update>
  explicit observed_state(Update& update) {
    if constexpr (Update::watches) update.remembers_observed(list_);
    check();
  }

  // Keeps a copy of the update's present state, or of another's; drop() forgets it.
  void keep();
  void keep(std::span<const std::byte> bytes) { kept_.assign(bytes.begin(), bytes.end()); }
  void drop() { kept_.clear(); }
  bool is_kept() const { return !kept_.empty(); }
  std::vector<std::byte>& kept() { return kept_; }
  wire_slice slice() const { return {name, uint8, 0, kept_}; }
  // Returns the problem of a received slice, as a sentence; empty if there is none.
  std::string problem_of(const wire_slice& s) const;

  // Gives the update what is kept, if anything is. The guard, unless it is null, is called before.
  void put_back(write_guard* guard = nullptr);
  // Gives the update what is kept if that is `of_this_step` and the update has it not yet; otherwise forgets it.
  void settle(bool of_this_step, write_guard* guard);
  // Gives the update what is kept until the end of this object's life.
  class in_place {
  public:
    explicit in_place(observed_state& s) : of_(s) { of_.exchange(); }
    ~in_place() { of_.exchange(); }
    in_place(const in_place&) = delete;

  private:
    observed_state& of_;
  };

private:
  state_list list_;
  std::vector<std::byte> kept_;

  void check() const;
  void exchange();
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "observed_state.ipp"
#endif
