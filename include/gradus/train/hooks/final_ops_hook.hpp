// This hook runs ops once at the end of a monitored session and keeps their results. It corresponds to
// tf.train.FinalOpsHook (1.15).
#pragma once
#include "../../base/build.hpp"

#include <cstring>
#include <utility>
#include <vector>

#include "../../input/datum.hpp"
#include "../../run/base_session.hpp"
#include "../any_hook.hpp"
#include "needed_global_step.hpp"

namespace gradus::inline GRADUS_BUILD {

// Pass it by std::ref, to read the results afterwards.
class final_ops_hook {
public:
  explicit final_ops_hook(std::vector<value> final_ops, std::vector<feed> final_ops_feed_dict = {})
      : ops_(final_ops.begin(), final_ops.end()), feeds_(std::move(final_ops_feed_dict)) {}

  // Raises the errors of the run, out_of_range too.
  void end(hooked_session& s) {
    const run_results results = detail::needed_session(s, "final_ops_hook").run(ops_, feeds_);
    values_.clear();
    for (const const_tensor_view& v : results) {
      const tensor_view kept = values_.add(text("component_", values_.size()), v.type, v.dims);
      if (v.size_bytes() != 0) std::memcpy(kept.mutable_data(), v.data, v.size_bytes());
    }
  }
  // Returns one component for each op; none before the end.
  const datum& final_ops_values() const { return values_; }

private:
  std::vector<fetch> ops_;
  std::vector<feed> feeds_;
  datum values_;
};

}  // namespace gradus
