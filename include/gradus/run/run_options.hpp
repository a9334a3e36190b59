// run_options define how a session's run is made, and run_metadata holds its trace, as tf.RunOptions and tf.RunMetadata
// (1.15).
//
//   gradus::run_metadata meta;
//   s.run(train, feeds, {.timeout_secs = 5, .trace = gradus::trace_level::full_trace}, &meta);
#pragma once
#include "../base/build.hpp"

#include <optional>
#include <string>
#include <vector>

namespace gradus::inline GRADUS_BUILD {

class cancellation;

// This is TensorFlow's RunOptions.TraceLevel. Every level above no_trace measures every node.
enum class trace_level : int { no_trace = 0, software_trace = 1, hardware_trace = 2, full_trace = 3 };

struct run_options {
  // The longest time that the run may wait in each queue; after it the run raises deadline_exceeded. Unset means no
  // limit.
  std::optional<double> timeout_secs = {};
  trace_level trace = trace_level::no_trace;
  // If this is cancelled, a run that waits in a queue raises an error of its kind; a coordinator's stopping() is such
  // an object. It must outlive the run. A monitored session and a supervisor add their own.
  cancellation* stop = nullptr;
};

// Merges the options of several callers of one run: the longer timeout, the higher trace level, the first stop.
// tf.train.MonitoredSession merges the options of hooks in the same way.
constexpr run_options merged_options(const run_options& a, const run_options& b) {
  run_options both = a;
  if (!a.timeout_secs || (b.timeout_secs && *b.timeout_secs > *a.timeout_secs)) both.timeout_secs = b.timeout_secs;
  if (b.trace > a.trace) both.trace = b.trace;
  if (a.stop == nullptr) both.stop = b.stop;
  return both;
}

struct run_metadata {
  struct node_time {
    std::string op, name;  // a node without a name has an empty one
    int thread = 0;
    double start_secs = 0, end_secs = 0;  // since the run began
  };
  std::vector<node_time> nodes;  // of a traced run, in the order of their starts; empty otherwise
};

}  // namespace gradus
