// The bodies of observed_state.hpp.
#pragma once
#include <algorithm>
#include <cstring>
#include <utility>

#include "../base/body.hpp"
#include "observed_state.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void observed_state::check() const {
  for (const state_entry& e : list_.entries())
    if (e.dynamic != nullptr)
      raise(status::unimplemented, text("the tasks of a cluster pass on the state of a schedule that observes values "
                                        "as tensors, and \"",
                                        e.name, "\" is a blob, whose size may change; list it as scalars or tensors"));
}

GRADUS_BODY void observed_state::keep() {
  kept_.clear();
  for (const state_entry& e : list_.entries()) kept_.insert(kept_.end(), e.bytes.begin(), e.bytes.end());
}

GRADUS_BODY std::string observed_state::problem_of(const wire_slice& s) const {
  std::size_t bytes = 0;
  for (const state_entry& e : list_.entries()) bytes += e.bytes.size();
  if (s.type == uint8 && s.role == slice_role::dense && s.begin == 0 && s.bytes.size() == bytes) return {};
  return text("the state of the schedules that observe values is ", s.bytes.size(), " bytes of ",
              gradus::name_of(s.type), " from element ", s.begin, "; expected ", bytes, " of uint8, dense, from 0");
}

GRADUS_BODY void observed_state::put_back(write_guard* guard) {
  if (!is_kept()) return;
  for (std::size_t at = 0; const state_entry& e : list_.entries()) {
    if (guard != nullptr && guard->active()) guard->before_write(e.bytes);
    if (!e.bytes.empty()) std::memcpy(e.bytes.data(), kept_.data() + at, e.bytes.size());
    at += e.bytes.size();
  }
}

GRADUS_BODY void observed_state::settle(bool of_this_step, write_guard* guard) {
  const std::vector<std::byte> mine = std::exchange(kept_, {});
  keep();
  if (!of_this_step || mine.empty() || mine == kept_) return drop();
  kept_ = mine;
  put_back(guard);
}

GRADUS_BODY void observed_state::exchange() {
  if (!is_kept()) return;
  for (auto at = kept_.begin(); const state_entry& e : list_.entries())
    at = std::swap_ranges(e.bytes.begin(), e.bytes.end(), at);
}

}  // namespace gradus::detail
