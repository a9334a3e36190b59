// The bodies of prediction_range.hpp.
#pragma once
#include "../base/body.hpp"
#include "named_tensors.hpp"
#include "prediction_range.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY const_tensor_view prediction::operator[](std::string_view key) const {
  std::vector<std::string> names;
  for (const auto& [name, v] : items_) {
    if (name == key) return v;
    names.push_back(name);
  }
  raise(status::not_found, text("no prediction is called \"", key, "\"; there are: ", detail::listed(names)));
}

GRADUS_BODY prediction::operator const_tensor_view() const {
  if (items_.size() != 1)
    raise(status::failed_precondition, text("this prediction has ", items_.size(), " tensors; take one by its name"));
  return items_.front().second;
}

}  // namespace gradus
