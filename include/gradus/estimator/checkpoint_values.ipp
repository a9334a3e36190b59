// The bodies of checkpoint_values.hpp.
#pragma once
#include <algorithm>

#include "../base/body.hpp"
#include "../checkpoint/match.hpp"
#include "../checkpoint/saver.hpp"
#include "../codec/detect.hpp"
#include "../codec/safetensors.hpp"
#include "../codec/state_file.hpp"
#include "../codec/tensor_bundle.hpp"
#include "../session/global_step.hpp"
#include "checkpoint_values.hpp"
#include "named_tensors.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY const std::string& needed_checkpoint(const std::string& path, const std::string& directory) {
  if (path.empty())
    raise(status::not_found,
          text("could not find a trained model: \"", directory, "\" has no checkpoint; train first"));
  return path;
}

GRADUS_BODY opened_files opened(const std::string& path, const reader_limits& limits) {
  const found_checkpoint found = find_checkpoint(path);
  opened_files files(found.codec, any_file_system(), found.path, UINT64_MAX, 1, limits);
  if (!files.result().ok())
    raise(files.result().kind, text("cannot read the checkpoint \"", found.path, "\": ", files.result().problem));
  return files;
}

GRADUS_BODY std::vector<std::string> variables_in(const std::string& path, const reader_limits& limits) {
  const opened_files files = opened(path, limits);
  std::vector<std::string> names;
  for (const record& r : files.result().content.records)
    if (!r.blob) names.push_back(r.name);
  std::sort(names.begin(), names.end());
  return names;
}

GRADUS_BODY std::vector<std::pair<std::string, owned_tensor>> tensors_in(const std::string& path,
                                                                         const reader_limits& limits) {
  const opened_files files = opened(path, limits);
  std::vector<std::pair<std::string, owned_tensor>> all;
  for (const record& r : files.result().content.records)
    if (!r.blob) all.emplace_back(r.name, const_tensor_view(r.type, r.dims, r.bytes.data()));
  return all;
}

GRADUS_BODY owned_tensor variable_in(const std::string& path, std::string_view name, const reader_limits& limits) {
  const opened_files files = opened(path, limits);
  std::vector<std::string> names;
  for (const record& r : files.result().content.records) {
    if (r.blob) continue;
    if (r.name == name) return owned_tensor(const_tensor_view(r.type, r.dims, r.bytes.data()));
    names.push_back(r.name);
  }
  std::sort(names.begin(), names.end());
  raise(status::not_found,
        text("the checkpoint \"", path, "\" has no variable \"", name, "\"; it has: ", listed(names)));
}

GRADUS_BODY std::shared_ptr<held_directory> hold_role(const std::string& directory, const std::string& model_dir,
                                                      const std::string& role) {
  try {
    return hold_directory(any_file_system(), directory);
  } catch (const failed_precondition& e) {
    raise(status::failed_precondition, text("the role \"", role, "\" in \"", model_dir, "\" is taken: ", e.what()));
  }
}

GRADUS_BODY std::int64_t step_in_directory(const std::string& directory) {
  try {
    const std::string path = latest_checkpoint(any_file_system(), directory);
    if (path.empty()) return 0;
    return step_in(variable_in(path, "global_step", {}));
  } catch (const error&) {
    return 0;
  }
}

GRADUS_BODY void restore_variables(base_session& s, const std::string& path, std::uint64_t seed,
                                   const reader_limits& limits) {
  const found_checkpoint found = find_checkpoint(path);
  std::vector<std::string> random;
  state_list list;
  s.of().for_each_in(collection::global_variables, [&](value v) {
    const std::string name(s.of().name_of(v.id));
    if (name == "random_seed" || name == "random_step") return random.push_back(name);
    const tensor_view to = s.mutable_variable(name);
    list.tensor(name, to.type, to.dims, to.mutable_bytes());
  });
  if (!random.empty()) {
    const auto there = variables_in(found.path, limits);
    for (const std::string& name : random)
      if (std::binary_search(there.begin(), there.end(), name)) {
        const tensor_view to = s.mutable_variable(name);
        list.tensor(name, to.type, to.dims, to.mutable_bytes());
      }
  }
  any_saver({.limits = limits}, found.codec, any_file_system(), system_clock())
      .restore(list, found.path, {.ignore_extra = true});
  s.initialize(seed);
}

GRADUS_BODY std::function<void(base_session&)> warm_starter(const estimator_warm_start& from, graph& g,
                                                            std::function<void(const std::string&)> say) {
  if (!from) return nullptr;
  return [&from, &g, say = std::move(say)](base_session& s) {
    const auto [settings, codec] = from.source();
    std::vector<warm_start_target> targets;
    const auto is_trainable = [&](std::string_view name) {
      bool found = false;
      g.for_each_in(collection::trainable_variables, [&](value v) { found = found || g.name_of(v.id) == name; });
      return found;
    };
    state_list list;
    s.remembers(list);
    for (const state_entry& e : list.entries())
      if (e.dynamic == nullptr)
        targets.push_back({e.name, e.type, e.dims, e.bytes, is_trainable(e.name), std::nullopt});
    say(text("Warm-starting from: ", settings.ckpt_to_initialize_from));
    const warm_started done = warm_start(targets, settings, codec, any_file_system());
    say(text("Warm-started ", done.count, " variables."));
  };
}

}  // namespace gradus::detail
