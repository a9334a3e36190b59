// RunMetadata is TensorFlow's profile of a step, for TensorBoard's graph page and for tools that draw timelines.
//
//   step_profile p(stepper); // run/profile.hpp; one step, as in TensorFlow
//   stepper.train_step(p);
//   writer.add_run_metadata("step 100", step_times_of(p, stepper), 100);    // train/step_times.hpp
//
// TensorBoard's graph page colours nodes by these times if the names are those of the graph that was written
// (step_times_of makes them so).
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../store/wire.hpp"

namespace gradus::inline GRADUS_BUILD {

// One execution of one node. The name is that of the node in the GraphDef; times are seconds from the start of the
// step.
struct node_times {
  std::string name, op;
  double start = 0, end = 0;
  int thread = 0;
};
struct step_times {
  double began = 0;  // seconds since the epoch; a display needs only differences
  std::string device = "/job:localhost/replica:0/task:0/device:CPU:0";
  std::vector<node_times> nodes;
};

// Converts a profile (basic_profile, run/profile.hpp): each call, or each part of a divided call, with its thread. The
// name of a call is in `names`, or else in the profile's table.
template <class Profile>
step_times to_step_times(const Profile& profile, double began = 0, std::span<const std::string> names = {}) {
  step_times s;
  s.began = began;
  const auto lines = profile.lines();
  for (const auto& e : profile.events()) {
    const auto& line = lines[static_cast<std::size_t>(e.call)];
    const auto at = static_cast<std::size_t>(e.call);
    s.nodes.push_back({at < names.size() ? names[at] : line.name, line.op, e.start, e.end, e.thread});
  }
  return s;
}

// Appends the bytes of a RunMetadata. Nodes are in the given order; the nanosecond fields are written beside the
// microseconds.
void encode_run_metadata(std::vector<std::byte>& out, const step_times& step);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "run_metadata.ipp"
#endif
