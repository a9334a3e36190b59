// The mode is what a graph is built for, as in TensorFlow's model_fn. Dropout and batch_norm depend on it.
#pragma once
#include "../base/build.hpp"

#include <string_view>

namespace gradus::inline GRADUS_BUILD {

enum class mode : int { train, evaluate, predict };
constexpr std::string_view name_of(mode m) {
  return m == mode::train ? "train" : m == mode::evaluate ? "evaluate" : "predict";
}

}  // namespace gradus
