// The bodies of shared_state.hpp.
#pragma once
#include <cstring>

#include "../base/body.hpp"
#include "shared_state.hpp"
#include "store_variables.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY shared_state::shared_state(const state_list& list, const state_list& own, std::uint32_t shards,
                                       const std::function<int(std::string_view)>& shard_of,
                                       std::span<const store_variable> variables)
    : parts_(shards) {
  constexpr int everywhere = -3;
  std::vector<int> shard;  // of each place
  int last = nowhere;      // of the variable that was listed last
  std::string variable;    // its name
  for (const state_entry& e : list.entries()) {
    if (e.dynamic != nullptr || e.name == "global_step") continue;
    const bool is_own = own.find(e.name) != nullptr;
    const int at = is_own ? everywhere : shard_of(e.name);
    if (!is_own && at != beside_last) last = at, variable = e.name;
    const int to = at == beside_last ? last : at;
    if (to == nowhere) continue;
    bool is_cut = false;
    for (const store_variable& v : variables) {
      if (is_own || !v.is_part() || v.whole != variable) continue;
      const std::size_t row = e.bytes.size() / static_cast<std::size_t>(v.whole_dims[0]);
      shard.push_back(static_cast<int>(v.shard));
      places_.push_back({v.name + e.name.substr(variable.size()), e.type,
                         e.bytes.subspan(static_cast<std::size_t>(v.first_row) * row, v.row_count() * row)});
      is_cut = true;
    }
    if (is_cut) continue;
    shard.push_back(to);
    places_.push_back({e.name, e.type, e.bytes});
  }
  for (std::size_t i = 0; i < places_.size(); ++i)  // after the loop, since slices refer to the names of places
    for (std::uint32_t k = 0; k < shards; ++k)
      if (shard[i] == everywhere || shard[i] == static_cast<int>(k))
        parts_[k].push_back({places_[i].name, places_[i].type, 0, places_[i].bytes});
}

GRADUS_BODY shared_state::place* shared_state::find(std::string_view name) {
  if (name.starts_with(own_state_mark)) name.remove_prefix(1);
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (++found_ >= places_.size()) found_ = 0;
    if (places_[found_].name == name) return &places_[found_];
  }
  return nullptr;
}

GRADUS_BODY void shared_state::take(std::span<const wire_slice> from, write_guard* guard) {
  for (const wire_slice& s : from) {
    place* const p = find(s.name);
    if (p == nullptr)
      raise(status::data_loss, text("a shard tells \"", s.name,
                                    "\", which this worker does not have; start all tasks from one build of "
                                    "one program"));
    if (p->type != s.type || p->bytes.size() != s.bytes.size())
      raise(status::data_loss, text("a shard tells \"", s.name, "\" as ", name_of(s.type), " in ", s.bytes.size(),
                                    " bytes; expected ", name_of(p->type), " in ", p->bytes.size()));
    if (guard != nullptr && guard->active()) guard->before_write(p->bytes);
    if (!s.bytes.empty()) std::memcpy(p->bytes.data(), s.bytes.data(), s.bytes.size());
  }
}

}  // namespace gradus::detail
