// Gradient accumulation makes one step of the rule for every k gradients, with their mean.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <string_view>

#include "../base/contract.hpp"
#include "setting.hpp"

namespace gradus::inline GRADUS_BUILD {

// This trains on a batch of k times the size in the memory of one. `apply` (or a training step) counts micro-batches:
// global_step goes up by one each time; the rule, its schedules and its clip act at every k-th micro-batch, on the mean
// of the k gradients (optax MultiSteps; PyTorch's habit of calling step() every k-th backward(), with the loss divided
// by k). The sum is kept beside the variable, "w/GradientAccumulator", so a run that stops between two micro-batches
// resumes exactly. A sparse gradient is added to its rows of that sum; the rule then sees a dense gradient. A variable
// is updated if any of the k micro-batches had a gradient for it; micro-batches without one count as zeros. If none
// had, it keeps its values and slots.
struct accumulate {
  using policy_for = kind::accumulation;
  static constexpr std::string_view name = "GradientAccumulator";
  std::int64_t every = 1;  // k
  static constexpr std::string_view called = "accumulate";
  static constexpr auto settings() {
    using line = setting<accumulate>;
    return std::array{line{"every", &accumulate::every, setting_range::one_or_more}};
  }

  constexpr std::int64_t steps(std::int64_t global_step) const { return global_step / every; }
  constexpr bool only_adds(std::int64_t global_step) const { return global_step % every != every - 1; }
  constexpr double share() const { return 1 / static_cast<double>(every); }
};

namespace detail {
struct no_accumulation {
  using policy_for = kind::accumulation;
  static constexpr std::string_view name = "no accumulation";
  constexpr std::int64_t steps(std::int64_t global_step) const { return global_step; }
  constexpr bool only_adds(std::int64_t) const { return false; }
  constexpr double share() const { return 1; }
};
}  // namespace detail

}  // namespace gradus
