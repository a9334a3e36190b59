// RunMetadata is TensorFlow's profile of a step, for TensorBoard's graph page and for tools that draw timelines.
//
//   step_profile p(stepper);                                  // run/profile.hpp; of one step, as TensorFlow's
//   stepper.train_step(p);
//   writer.add_run_metadata("step 100", step_times_of(p, stepper), 100);    // train/step_times.hpp
//
// TensorBoard's graph page colours nodes by it where the names are those of the graph that was written (step_times_of).
#pragma once
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

// One execution of one node. The name is the node's in the GraphDef; times are seconds from the step's begin.
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

// Converts a profile (basic_profile, run/profile.hpp): each call, or each part of a divided one, with its thread. The
// name of a call is in `names`, or else that of the profile's table.
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

// RunMetadata as bytes. Nodes stand in the order given; the nanosecond fields are written beside the microseconds.
void encode_run_metadata(std::vector<std::byte>& out, const step_times& step);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "run_metadata.ipp"
#endif
