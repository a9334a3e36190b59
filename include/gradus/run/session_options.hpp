// session_options are the settings of TensorFlow's ConfigProto that a run of this library uses.
#pragma once
#include "../base/build.hpp"

#include <string>
#include <vector>

namespace gradus::inline GRADUS_BUILD {

struct session_options {
  // A node whose device is missing is computed elsewhere. This is kept for the cluster: one process has one device.
  bool allow_soft_placement = false;
  // The tasks that the session needs ("/job:ps", "/job:worker/task:1"); empty: all of them. A worker of a cluster
  // reaches the parameter servers and no other worker; filters that leave out one of these are refused.
  std::vector<std::string> device_filters = {};
  // The session has variables of its own, on a server whose sessions otherwise share theirs.
  bool isolate_session_state = false;

  friend bool operator==(const session_options&, const session_options&) = default;
};

}  // namespace gradus
