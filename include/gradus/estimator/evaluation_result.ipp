// The bodies of evaluation_result.hpp.
#pragma once
#include <vector>

#include "../base/body.hpp"
#include "evaluation_result.hpp"
#include "named_tensors.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY const owned_tensor& evaluation_result::tensor(std::string_view name) const {
  const auto found = all_.find(name);
  if (found != all_.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [n, v] : all_) names.push_back(n);
  raise(status::not_found, text("the evaluation has no \"", name, "\"; there are: ", detail::listed(names)));
}
GRADUS_BODY void evaluation_result::set_global_step(std::int64_t step) {
  step_ = step;
  set("global_step", const_tensor_view(std::span<const std::int64_t>(&step, 1), {}));
}

}  // namespace gradus
