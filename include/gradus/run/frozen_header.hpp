// frozen_header writes layers of a trained model as one C++ header: their weights in 8 bits, as constants for
// frozen_dense, frozen_conv2d and frozen_depthwise_conv2d (ops/frozen.hpp). A program on a board includes it and trains
// the layers above.
//
//   std::ofstream("body.hpp") << gradus::frozen_header(
//       list, {.name = "body", .layers = {{"conv", "conv/batch_norm"}, {"block1/depthwise"}}});
//
// On the board:
//
//   #include "body.hpp"
//   auto h = frozen_conv2d<body::conv>(x, {.strides = 2, .activation = relu});
#pragma once
#include "../base/build.hpp"

#include <string>
#include <vector>

#include "../base/state.hpp"

namespace gradus::inline GRADUS_BUILD {

// A layer, named by the scope of its variables: "<name>/kernel" [in, units] or [height, width, in, filters], or
// "<name>/depthwise_kernel" [height, width, in, multiplier], and "<name>/bias" if there is one.
struct frozen_header_layer {
  std::string name;
  // The scope of a batch_norm that follows the layer directly, or "". Its moving statistics, gamma and beta become part
  // of the layer's weights and bias: kernel * gamma / sqrt(variance + epsilon) for each channel.
  std::string batch_norm = "";
  double epsilon = 1e-3;
};
struct frozen_header_options {
  // This is the namespace of the constants, a C++ identifier. Each constant has its layer's name, with '_' in place of
  // other characters and after a keyword of C++.
  std::string name = "body";
  // If empty, every layer whose kernel is in the list is written; it must not be empty for a list that holds a
  // batch_norm.
  std::vector<frozen_header_layer> layers = {};
};

// Returns the header with the values of the list, which is the list that a stepper, a trainer or a loaded checkpoint
// remembers. Raises invalid_argument for a name that is no identifier, two layers of one name, and weights that are not
// finite; not_found for a variable that is not in the list; failed_precondition for one of another type or shape.
std::string frozen_header(const state_list& values, const frozen_header_options& options = {});

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "frozen_header.ipp"
#endif
