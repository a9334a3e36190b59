// Does a snapshot fit the state that lives here? Everything that does not is named, in one error; nothing is written
// into live state unless all of it fits.
#pragma once
#include <cstring>

#include "../base/state.hpp"
#include "../store/parallel.hpp"
#include "codec.hpp"

namespace gradus {

// Which snapshots a restore takes.
struct restore_options {
  std::string model = {};     // the fingerprint to find in the metadata; empty: any
  bool ignore_extra = false;  // take what is listed here, leave the rest of the file (TensorFlow always does)
  bool fallback = false;      // if the checkpoint is damaged, take the newest intact one beside it
  int threads = 1;            // that check and copy large tensors
  // Where checkpoints lie in a directory without a state file: take the newest intact one. Otherwise that is an error.
  bool restore_newest = false;
  std::string prefix = {};  // there, only names that begin so count as checkpoints
};

namespace detail {

struct mismatch {
  status kind = status::invalid_argument;
  std::string problem;  // empty: it fits
};

inline std::string kind_of(const state_entry& e) {
  return e.dynamic != nullptr ? std::string("a blob") : text(name_of(e.type), to_text(e.dims));
}

// status::not_found if anything listed here is missing in the file, else invalid_argument.
inline mismatch compare(const state_list& list, const snapshot& content, const restore_options& options) {
  std::map<std::string_view, const record*> records;
  for (const auto& r : content.records) records.emplace(r.name, &r);
  std::string missing, extra, other, model;
  const auto add = [](std::string& line, std::string_view name) {
    line += text(line.empty() ? "" : ", ", '"', name, '"');
  };
  for (const auto& e : list.entries()) {
    const auto found = records.find(e.name);
    if (found == records.end()) {
      add(missing, e.name);
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
  if (!options.ignore_extra)
    for (const auto& r : content.records)
      if (records.count(r.name) != 0) add(extra, r.name);
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

// Copies a snapshot that fits. A blob may still refuse (it raises): then the blobs before it get back what they held,
// and no tensor has been touched.
inline void copy_into(const state_list& list, const snapshot& content, int threads = 1) {
  std::map<std::string_view, const record*> records;
  for (const auto& r : content.records) records.emplace(r.name, &r);
  std::vector<std::pair<blob*, std::vector<std::byte>>> loaded;
  const auto load_blobs = [&] {
    for (const auto& e : list.entries()) {
      if (e.dynamic == nullptr) continue;
      std::vector<std::byte> before;
      e.dynamic->save(before);
      e.dynamic->load(records.find(e.name)->second->bytes);
      loaded.emplace_back(e.dynamic, std::move(before));
    }
  };
#if defined(__cpp_exceptions)
  try {
    load_blobs();
  } catch (...) {
    for (auto it = loaded.rbegin(); it != loaded.rend(); ++it) it->first->load(it->second);
    throw;
  }
#else
  load_blobs();
#endif
  for (const auto& e : list.entries())
    if (e.dynamic == nullptr && !e.bytes.empty()) copy_bytes(e.bytes, records.find(e.name)->second->bytes, threads);
}

}  // namespace detail
}  // namespace gradus
