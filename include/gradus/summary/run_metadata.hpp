// Where a step's time went, for TensorBoard's graph page and for tools that draw timelines: TensorFlow's RunMetadata.
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

namespace gradus {

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

// What a profile saw (basic_profile, run/profile.hpp): each call, or each part of a divided one, with its thread. The
// name of a call is in `names`, or where there are none what the profile's table calls it.
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
inline void encode_run_metadata(std::vector<std::byte>& out, const step_times& step) {
  wire_writer w(out);
  w.message(1, [&](wire_writer& step_stats) {
    step_stats.message(1, [&](wire_writer& device) {
      device.bytes_if(1, step.device);
      const auto nanos = [](double seconds) { return static_cast<std::int64_t>(std::llround(seconds * 1e9)); };
      for (const auto& n : step.nodes)
        device.message(2, [&](wire_writer& node) {
          const std::int64_t base = nanos(step.began), start = base + nanos(n.start);
          const std::int64_t took = std::max<std::int64_t>(0, nanos(n.end) - nanos(n.start));
          node.bytes_if(1, n.name);
          node.integer_if(2, start / 1000);
          node.integer_if(4, took / 1000);
          node.integer_if(5, took / 1000);
          if (!n.op.empty()) node.bytes(8, text(n.name, " = ", n.op, "()"));
          node.integer_if(9, start / 1000);
          node.integer_if(10, n.thread);
          node.integer_if(13, start);
          node.integer_if(15, took);
          node.integer_if(16, took);
          node.integer_if(17, start);
        });
    });
  });
}

}  // namespace gradus
