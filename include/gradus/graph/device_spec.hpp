// A device_spec holds the parts of TensorFlow's device strings: "/job:ps/replica:0/task:1/device:CPU:0". As
// tf.DeviceSpec (1.15).
//
//   auto spec = gradus::device_spec::from_string("/job:ps/cpu:0");   // also the older "/cpu:0" and "/gpu:*"
//   spec.task = 3;
//   spec.to_string();                                                // "/job:ps/task:3/device:CPU:0"
#pragma once
#include "../base/build.hpp"

#include <string>
#include <string_view>

#include "../base/or_none.hpp"

namespace gradus::inline GRADUS_BUILD {

struct device_spec {
  std::string job = {};  // empty: not given
  or_none<int> replica = {}, task = {};
  std::string device_type = {};    // "CPU", "GPU"; empty: not given
  or_none<int> device_index = {};  // not given: "*", any

  // Raises invalid_argument for a text that is no device string.
  static device_spec from_string(std::string_view text);
  std::string to_string() const;
  // Returns `other`, with the parts of this object where `other` has none.
  device_spec merged(const device_spec& other) const;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "device_spec.ipp"
#endif
