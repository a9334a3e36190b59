// What a function of devices sees of a node that is being made (TensorFlow's device functions see an Operation), and
// the type of such functions.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "../base/dtype.hpp"
#include "../base/shape.hpp"

namespace gradus::inline GRADUS_BUILD {

struct placed_op {
  std::string_view name = {};    // with its scope; empty if it has none of its own
  std::string_view type = {};    // the op's name: "variable", "matmul"
  std::string_view device = {};  // asked for by g.device inside; empty: none was
  dtype output = dtype::none;
  shape dims = {};
};

// Gives the device string that the node gets.
using device_function = std::function<std::string(const placed_op& op)>;

}  // namespace gradus
