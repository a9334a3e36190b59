// The bodies of compiled_estimator.hpp.
#pragma once
#include <algorithm>

#include "../base/body.hpp"
#include "compiled_estimator.hpp"
#include "named_tensors.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void batch_of_predictions::next_batch() {
  if (!read(batch_)) {
    ended_ = true;
    return;
  }
  if (!keys_.empty()) {
    std::vector<std::string> names;
    for (const auto& [name, v] : batch_) names.push_back(name);
    std::erase_if(batch_, [&](const auto& p) { return std::find(keys_.begin(), keys_.end(), p.first) == keys_.end(); });
    if (batch_.empty())
      raise(status::invalid_argument,
            text("Expected to run at least one output from ", listed(names), ", provided ", listed(keys_), "."));
  }
  at_ = 0, length_ = -1;
  if (single_)
    for (const auto& [name, v] : batch_) {
      const std::int64_t n = v.dims.rank == 0 ? -1 : v.dims[0];
      if (n < 0 || (length_ >= 0 && n != length_))
        raise(status::invalid_argument, text("Batch length of predictions should be same. \"", name,
                                             "\" has different batch length than others; set yield_single_examples to "
                                             "false"));
      length_ = n;
    }
  show();
}

GRADUS_BODY void batch_of_predictions::show() {
  clear();
  for (const auto& [name, all] : batch_) {
    if (!single_) {
      add(name, all);
      continue;
    }
    const extents one = without_lead(all.dims);
    const std::size_t bytes = static_cast<std::size_t>(count(one)) * size_of(all.type);
    add(name, const_tensor_view(all.type, one, all.data + static_cast<std::size_t>(at_) * bytes));
  }
}

}  // namespace gradus::detail
