// Where an estimator's fresh variables take their values from: tf.estimator.Estimator's warm_start_from (1.15).
#pragma once
#include <optional>
#include <string>
#include <utility>

#include "../train/warm_start.hpp"

namespace gradus::inline GRADUS_BUILD {

// A path (of a checkpoint, of a directory with checkpoints, of an exported SavedModel): its trainable variables.
// Settings: what they choose. A path's format is found by itself; the policy warm_start_from{path, codec} says it.
class estimator_warm_start {
public:
  estimator_warm_start() = default;
  estimator_warm_start(const char* path) : estimator_warm_start(std::string(path)) {}
  estimator_warm_start(std::string path) : settings_(warm_start_settings{.ckpt_to_initialize_from = std::move(path)}) {}
  estimator_warm_start(warm_start_settings s) : settings_(std::move(s)) {}
  template <codec Codec>
  estimator_warm_start(warm_start_from<Codec> w) : settings_(std::move(w.settings)), codec_(std::move(w.from)) {}

  explicit operator bool() const { return settings_.has_value(); }
  const warm_start_settings& settings() const { return *settings_; }
  const std::optional<any_codec>& given_codec() const { return codec_; }

private:
  std::optional<warm_start_settings> settings_;
  std::optional<any_codec> codec_;
};

}  // namespace gradus
