// The bodies of state.hpp.
#pragma once
#include "body.hpp"
#include "state.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY void state_list::tensor(std::string_view name, dtype type, const extents& dims, std::span<std::byte> bytes,
                                    bool may_lack) {
  insert({std::string(name), type, dims, bytes, nullptr, may_lack});
}

GRADUS_BODY void state_list::dynamic(std::string_view name, blob& state, bool may_lack) {
  insert({std::string(name), dtype::uint8, {}, {}, &state, may_lack});
}

GRADUS_BODY void state_list::mirrored_by(state_mirror& m) {
  for (const state_mirror* known : mirrors_)
    if (known == &m) return;
  mirrors_.push_back(&m);
}

GRADUS_BODY void state_list::insert(state_entry entry) {
  if (find(entry.name) != nullptr)
    raise(status::already_exists,
          text("the state \"", entry.name, "\" is listed twice; give one of them another name"));
  entries_.push_back(std::move(entry));
}

}  // namespace gradus
