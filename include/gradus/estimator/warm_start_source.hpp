// An estimator's new variables take their values from this source, as with tf.estimator.Estimator's warm_start_from
// (1.15). For a compiled estimator, and for a trainer, it is a policy whose source is chosen at run time.
//
//   make_estimator<model>(adam{}, estimator_warm_start(old), run_config{.model_dir = "runs/after"});
#pragma once
#include "../base/build.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../train/warm_start.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// How a program reads checkpoints: those of its own codec by that codec, with its settings; others by the one that is
// detected.
struct checkpoint_reading {
  any_codec own = flat_binary{};
  reader_limits limits = {};
};
// find_checkpoint finds a checkpoint by its path, and the codec that reads it: `own` if it wrote it, else flat_binary,
// safetensors, TensorFlow's, or one of these sharded. It raises the errors of detect_checkpoint.
struct found_checkpoint {
  std::string path;
  any_codec codec;
};
found_checkpoint find_checkpoint(const std::string& path, const any_codec& own = flat_binary{});
}  // namespace detail

// Given a path (of a checkpoint, of a directory with checkpoints, or of an exported SavedModel), it restores the
// trainable variables; given settings, those that they choose. The format at a path is detected, or is that of the
// estimator's codec; the policy warm_start_from{path, codec} names another one.
class estimator_warm_start {
public:
  using policy_for = kind::warm_start;
  estimator_warm_start() = default;
  estimator_warm_start(const char* path) : estimator_warm_start(std::string(path)) {}
  estimator_warm_start(std::string path) : settings_(warm_start_settings{.ckpt_to_initialize_from = std::move(path)}) {}
  estimator_warm_start(warm_start_settings s) : settings_(std::move(s)) {}
  template <codec Codec>
  estimator_warm_start(warm_start_from<Codec> w) : settings_(std::move(w.settings)), codec_(std::move(w.from)) {}

  explicit operator bool() const { return settings_.has_value(); }
  const warm_start_settings& settings() const { return *settings_; }
  const std::optional<any_codec>& given_codec() const { return codec_; }
  // Returns the same source, read by a program with this codec of its own.
  estimator_warm_start read_with(any_codec own) const {
    estimator_warm_start w = *this;
    w.own_ = std::move(own);
    return w;
  }

  // Returns the settings with the path of the checkpoint, and the codec that reads it. Raises invalid_argument for an
  // empty path, and the errors of detect_checkpoint.
  std::pair<warm_start_settings, any_codec> source() const;
  // The function of the policy. It restores nothing where there is no source.
  template <class Trainable, file_system F>
  warm_started apply(const state_list& list, Trainable&& trainable, const F& fs) const {
    if (!settings_) return {};
    const auto [settings, from] = source();
    std::vector<warm_start_target> targets;
    for (const auto& e : list.entries())
      if (e.dynamic == nullptr) targets.push_back({e.name, e.type, e.dims, e.bytes, trainable(e.name), std::nullopt});
    return warm_start(targets, settings, from, fs);
  }

private:
  std::optional<warm_start_settings> settings_;
  std::optional<any_codec> codec_;
  any_codec own_ = flat_binary{};
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "warm_start_source.ipp"
#endif
