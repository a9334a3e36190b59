// The bodies of match.hpp.
#pragma once
#include "../base/body.hpp"
#include "../store/parallel.hpp"
#include "match.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::string kind_of(const state_entry& e) {
  return e.dynamic != nullptr ? std::string("a blob") : text(name_of(e.type), to_text(e.dims));
}

GRADUS_BODY mismatch compare(const state_list& list, const snapshot& content, const restore_options& options) {
  std::map<std::string_view, const record*> records;
  for (const auto& r : content.records) records.emplace(r.name, &r);
  bool foreign = false;  // whether the file is of another program: it lacks a blob that may be lacking
  for (const auto& e : list.entries())
    foreign = foreign || (e.may_lack && e.dynamic != nullptr && records.count(e.name) == 0);
  std::string missing, extra, other, model;
  const auto add = [](std::string& line, std::string_view name) {
    line += text(line.empty() ? "" : ", ", '"', name, '"');
  };
  for (const auto& e : list.entries()) {
    const auto found = records.find(e.name);
    if (found == records.end()) {
      if (!foreign || !e.may_lack) add(missing, e.name);
      continue;
    }
    const record& r = *found->second;
    const bool fits = r.blob == (e.dynamic != nullptr) &&
                      (r.blob || (r.type == e.type && r.dims == e.dims && r.bytes.size() == e.bytes.size()));
    if (!fits) {
      add(other, e.name);
      other += text(" (", kind_of(e), " here, ", kind_of(r), " in the file)");
    }
    records.erase(found);
  }
  // Entries that another library wrote and this one does not know are ignored.
  if (!options.ignore_extra && (!foreign || content.about.count("library") != 0))
    for (const auto& r : content.records)
      if (records.count(r.name) != 0 && r.name != options.may_be_extra) add(extra, r.name);
  const auto written = content.about.find("model");
  if (!options.model.empty() && written != content.about.end() && written->second != options.model)
    model = text('"', options.model, "\" here, \"", written->second, "\" in the file");

  mismatch out;
  if (!missing.empty()) out.kind = status::not_found, out.problem += text("\n  missing in the file: ", missing);
  if (!extra.empty()) out.problem += text("\n  in the file, but not in this model: ", extra);
  if (!other.empty()) out.problem += text("\n  of another type or shape: ", other);
  if (!model.empty()) out.problem += text("\n  the fingerprint of the model: ", model);
  return out;
}

// Returns the step at which the file was written; -1 if the file does not have it.
GRADUS_BODY std::int64_t step_of(const std::map<std::string_view, const record*>& records) {
  const auto found = records.find("global_step");
  std::int64_t step = -1;
  if (found != records.end() && found->second->type == int64 && found->second->bytes.size() == sizeof step)
    std::memcpy(&step, found->second->bytes.data(), sizeof step);
  return step;
}

// Returns a warning if the input is read from its beginning, since the saved position is one in another input.
GRADUS_BODY std::string load_blob(blob& state, const record& saved, std::int64_t step, const restore_options& options) {
  const bool is_input = state.may_start_anew();
  if (is_input && options.restore_input == saved_input::ignored) return {};
#if defined(__cpp_exceptions)
  try {
    state.load(saved.bytes);
  } catch (const error& e) {
    if (!is_input) throw;
    if (step == 0 || step >= options.input_until) return {};
    if (options.restore_input != saved_input::if_it_fits) throw;
    const std::string_view said = e.what();
    return text("the input is read from its beginning: ", said.substr(0, said.rfind("; ")));  // without the remedy
  }
#else
  (void)step, state.load(saved.bytes);
#endif
  return {};
}

GRADUS_BODY std::string copy_into(const state_list& list, const snapshot& content, const restore_options& options) {
  list.refresh();
  std::map<std::string_view, const record*> records;
  for (const auto& r : content.records) records.emplace(r.name, &r);
  std::vector<std::pair<blob*, std::vector<std::byte>>> loaded;
  std::string warning;
  const auto load_blobs = [&] {
    for (const auto& e : list.entries()) {
      if (e.dynamic == nullptr) continue;
      std::vector<std::byte> before;
      e.dynamic->save(before);
      const auto found = records.find(e.name);
      if (found != records.end()) {
        if (const auto about = load_blob(*e.dynamic, *found->second, step_of(records), options); !about.empty())
          warning += text(warning.empty() ? "" : "; ", about);
      } else
        e.dynamic->load_lacking(list);
      loaded.emplace_back(e.dynamic, std::move(before));
    }
  };
#if defined(__cpp_exceptions)
  try {
    load_blobs();
  } catch (...) {
    for (std::size_t i = loaded.size(); i-- > 0;) loaded[i].first->load(loaded[i].second);
    throw;
  }
#else
  load_blobs();
#endif
  for (const auto& e : list.entries()) {
    if (e.dynamic != nullptr || e.bytes.empty()) continue;
    if (const auto found = records.find(e.name); found != records.end())
      copy_bytes(e.bytes, found->second->bytes, options.threads);
  }
  return warning;
}

}  // namespace gradus::detail
