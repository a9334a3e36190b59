// step_times_of returns the times of a training step under the names that its nodes have in TensorBoard, whose graph
// page colours the nodes by their times.
//
//   auto times = step_times_of(trainer.profile(data, 1), trainer.steps());
//   writer.add_run_metadata("step 100", times, 100);
#pragma once
#include "../base/build.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../graph/show.hpp"
#include "../ops/fused.hpp"
#include "../ops/gather.hpp"
#include "../run/profile.hpp"
#include "../summary/run_metadata.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// Returns, for each node of the graph that runs, its name in the graph that is shown: a fused node has the name of its
// last op. Nodes are matched by scope, op, type and extents, and in their order if several have these in common; a node
// without a match has the name that `describe` gives.
std::vector<std::string> shown_names(const graph_parts& runs, const graph_parts& shown, const char* names);
}  // namespace detail

// Returns the times of a profiled step (trainer.profile(data, 1), or train_step with a step_profile) for
// add_run_metadata, under the names that the graph has in TensorBoard. `began` is in seconds since the epoch.
template <class Profile, class Stepper>
step_times step_times_of(const Profile& profile, Stepper& steps, double began = 0) {
  const auto& r = steps.template graph<mode::train>();
  std::vector<std::string> of_calls;
  steps.model().template show<mode::train>([&](const graph_parts& parts, const char* names) {
    const auto of_nodes = detail::shown_names(r.graph, parts, names);
    for (int i = 0; i < r.program.call_count; ++i)
      of_calls.push_back(of_nodes[static_cast<std::size_t>(r.program.calls[i].node)]);
  });
  return to_step_times(profile, began, of_calls);
}

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "step_times.ipp"
#endif
