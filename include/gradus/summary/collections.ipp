// The bodies of collections.hpp.
#pragma once
#include "../base/body.hpp"
#include "collections.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY void summary_collections::add(maker make, std::initializer_list<std::string_view> collections) {
  makers_.push_back(std::move(make));
  for (const std::string_view name : collections) members_.emplace_back(name, makers_.size() - 1);
}

GRADUS_BODY std::optional<summary_values> summary_collections::merge_all(std::string_view collection) const {
  std::vector<summary_values> made;
  for (const auto& [name, i] : members_)
    if (name == collection) made.push_back(makers_[i]());
  if (made.empty()) return std::nullopt;
  return merge_summaries(made);
}

GRADUS_BODY std::optional<summary_values> merge_all_summaries(const summary_collections& of, std::string_view key) {
  return of.merge_all(key);
}

}  // namespace gradus
