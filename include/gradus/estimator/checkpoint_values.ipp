// The bodies of checkpoint_values.hpp.
#pragma once
#include <algorithm>

#include "../base/body.hpp"
#include "../checkpoint/folder.hpp"
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

// Raises data_loss if a directory's state file calls the checkpoint its newest, and the checkpoint is of another step
// than its name says. One that is opened by a path of its own may be called anything.
inline void refuse_wrong_step(const std::string& path, const snapshot& content) {
  const std::string problem = wrong_step(path, content);
  if (!problem.empty() && is_newest_checkpoint(any_file_system(), directory_of(path), path))
    raise(status::data_loss, text("the checkpoint \"", path, "\" is the newest of its directory, and ", problem));
}

GRADUS_BODY opened_files opened(const found_checkpoint& found, const reader_limits& limits) {
  opened_files files(found.codec, any_file_system(), found.path, UINT64_MAX, 1, limits);
  if (!files.result().ok())
    raise(files.result().kind, text("cannot read the checkpoint \"", found.path, "\": ", files.result().problem));
  refuse_wrong_step(found.path, files.result().content);
  return files;
}
GRADUS_BODY opened_files opened(const std::string& path, const checkpoint_reading& how) {
  return opened(find_checkpoint(path, how.own), how.limits);
}

GRADUS_BODY std::vector<std::string> variables_in(const std::string& path, const checkpoint_reading& how) {
  const opened_files files = opened(path, how);
  std::vector<std::string> names;
  for (const record& r : files.result().content.records)
    if (!r.blob) names.push_back(r.name);
  std::sort(names.begin(), names.end());
  return names;
}

GRADUS_BODY std::vector<std::pair<std::string, owned_tensor>> tensors_in(const std::string& path,
                                                                         const checkpoint_reading& how) {
  const opened_files files = opened(path, how);
  std::vector<std::pair<std::string, owned_tensor>> all;
  for (const record& r : files.result().content.records)
    if (!r.blob && !r.opaque) all.emplace_back(r.name, const_tensor_view(r.type, r.dims, r.bytes.data()));
  return all;
}

GRADUS_BODY owned_tensor tensor_in(const opened_files& files, const std::string& path, std::string_view name) {
  std::vector<std::string> names;
  for (const record& r : files.result().content.records) {
    if (r.blob) continue;
    if (r.name == name && r.opaque)
      raise(status::invalid_argument,
            text("\"", name, "\" in the checkpoint \"", path, "\" is ", opaque_text(*r.opaque),
                 ", a type that this library carries and does not compute with; convert it where it was made"));
    if (r.name == name) return owned_tensor(const_tensor_view(r.type, r.dims, r.bytes.data()));
    names.push_back(r.name);
  }
  std::sort(names.begin(), names.end());
  raise(status::not_found,
        text("the checkpoint \"", path, "\" has no variable \"", name, "\"; it has: ", listed(names)));
}
GRADUS_BODY owned_tensor variable_in(const std::string& path, std::string_view name, const checkpoint_reading& how) {
  return tensor_in(opened(path, how), path, name);
}

GRADUS_BODY std::shared_ptr<held_directory> hold_role(const std::string& directory, const std::string& model_dir,
                                                      const std::string& role) {
  try {
    return hold_directory(any_file_system(), directory);
  } catch (const failed_precondition& e) {
    raise(status::failed_precondition, text("the role \"", role, "\" in \"", model_dir, "\" is taken: ", e.what()));
  }
}

GRADUS_BODY std::int64_t step_in_directory(const std::string& directory, const checkpoint_reading& how) {
  try {
    const std::string path = latest_checkpoint(any_file_system(), directory);
    if (path.empty()) return 0;
    std::optional<found_checkpoint> found;
    try {
      found = find_checkpoint(path, how.own);
    } catch (const failed_precondition&) {
      return checkpoint_step(path).value_or(0);
    }
    return step_in(tensor_in(opened(*found, how.limits), path, "global_step"));
  } catch (const error&) {
    return 0;
  }
}

GRADUS_BODY void restore_variables(base_session& s, const std::string& path, std::uint64_t seed,
                                   const checkpoint_reading& how) {
  const found_checkpoint found = find_checkpoint(path, how.own);
  std::vector<std::string> random;
  state_list list;
  s.of().for_each_in(collection::global_variables, [&](value v) {
    const std::string name(s.of().name_of(v.id));
    if (name == "random_seed" || name == "random_step") return random.push_back(name);
    const tensor_view to = s.mutable_variable(name);
    list.tensor(name, to.type, to.dims, to.mutable_bytes());
  });
  if (!random.empty()) {
    const auto there = variables_in(found.path, {found.codec, how.limits});
    for (const std::string& name : random)
      if (std::binary_search(there.begin(), there.end(), name)) {
        const tensor_view to = s.mutable_variable(name);
        list.tensor(name, to.type, to.dims, to.mutable_bytes());
      }
  }
  if (checkpoint_step(found.path)) opened(found, how.limits);  // raises before anything is changed
  any_saver({.limits = how.limits}, found.codec, any_file_system(), system_clock())
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
