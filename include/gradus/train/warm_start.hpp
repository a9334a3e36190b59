// With warm_start_from a new run begins with the values of an earlier one. It is tf.estimator.Estimator's argument, as
// a policy.
//
//   make_trainer<model>(adam{}, warm_start_from{"runs/before"}, run_config{.model_dir = "runs/after"});
//   make_trainer<model>(adam{}, warm_start_from{warm_start_settings{.ckpt_to_initialize_from = "runs/before",
//                                                                   .vars_to_warm_start = "emb"}}, ...);
//   warm_start_from{"bert.safetensors", safetensors{}}             a checkpoint of another codec
//
// It takes the place of the initializers: if model_dir has a checkpoint, that is restored and nothing is warm-started.
// docs/warm_start.md says which values it may take over. It needs exceptions and <regex>.
#pragma once
#include "../base/contract.hpp"
#include "../checkpoint/warm_start.hpp"
#include "../codec/flat.hpp"

namespace gradus::inline GRADUS_BUILD {

// This policy takes values of a checkpoint, by name, for a run that has no checkpoint of its own.
template <codec Codec = flat_binary>
struct warm_start_from {
  using policy_for = kind::warm_start;

  warm_start_settings settings;
  Codec from;

  warm_start_from(warm_start_settings s, Codec c = {}) : settings(std::move(s)), from(std::move(c)) {}
  // Takes all trainable variables of a checkpoint, or of the newest one in a directory.
  warm_start_from(const char* checkpoint, Codec c = {}) : warm_start_from(std::string(checkpoint), std::move(c)) {}
  warm_start_from(std::string checkpoint, Codec c = {}) : from(std::move(c)) {
    settings.ckpt_to_initialize_from = std::move(checkpoint);
  }

  // Writes the values that the settings choose into the state; `trainable(name)` returns true for a trainable variable.
  template <class Trainable, file_system F>
  warm_started apply(const state_list& list, Trainable&& trainable, const F& fs) const {
    std::vector<warm_start_target> targets;
    for (const auto& e : list.entries())
      if (e.dynamic == nullptr) targets.push_back({e.name, e.type, e.dims, e.bytes, trainable(e.name), std::nullopt});
    return warm_start(targets, settings, from, fs);
  }
};
warm_start_from(const char*) -> warm_start_from<flat_binary>;
warm_start_from(std::string) -> warm_start_from<flat_binary>;
warm_start_from(warm_start_settings) -> warm_start_from<flat_binary>;
template <codec Codec>
warm_start_from(const char*, Codec) -> warm_start_from<Codec>;
template <codec Codec>
warm_start_from(std::string, Codec) -> warm_start_from<Codec>;
template <codec Codec>
warm_start_from(warm_start_settings, Codec) -> warm_start_from<Codec>;

}  // namespace gradus
