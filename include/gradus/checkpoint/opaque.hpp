// Tensors of types or ranks that this library does not have, carried as they are: a file that holds one stays readable.
//
// A format that has no place for such a tensor keeps its bytes as a row of uint8, and beside it, among the metadata,
// what it is:
//
//   "opaque <name of the tensor>" -> "complex64[2, 3]"
#pragma once
#include "codec.hpp"

namespace gradus::detail {

inline record opaque_record(std::string name, std::string_view type, std::vector<std::int64_t> shape,
                            std::span<const std::byte> bytes) {
  record r;
  r.name = std::move(name), r.bytes = bytes;
  r.opaque = std::make_shared<opaque_kind>(opaque_kind{std::string(type), std::move(shape)});
  return r;
}

inline constexpr std::string_view opaque_note = "opaque ";

// A snapshot whose opaque tensors are rows of uint8 with a note, but for those that the format takes as they are
// (`takes(record)`). Raises invalid_argument for metadata that would be read as such a note.
template <class Takes>
snapshot with_opaque_hidden(const snapshot& content, Takes&& takes) {
  snapshot out = content;
  for (auto& r : out.records) {
    const std::string key = std::string(opaque_note) + r.name;
    const bool row = r.type == uint8 && r.dims.rank == 1 && !r.blob;
    opaque_kind read;
    if (const auto at = out.about.find(key);
        at != out.about.end() && (r.opaque || (row && opaque_kind_of(at->second, read))))
      raise(status::invalid_argument, text("this state cannot be saved: its metadata has the key \"", key,
                                           "\", which checkpoints need themselves; choose another"));
    if (!r.opaque || takes(r)) continue;
    out.about.emplace(key, opaque_text(*r.opaque));
    r.type = uint8, r.dims = {static_cast<std::int64_t>(r.bytes.size())}, r.opaque = nullptr;
  }
  return out;
}
inline bool has_opaque(const snapshot& content) {
  return std::any_of(content.records.begin(), content.records.end(), [](const record& r) { return r.opaque; }) ||
         std::any_of(content.about.begin(), content.about.end(),
                     [](const auto& pair) { return pair.first.starts_with(opaque_note); });
}
// What was read, with what its notes say. A note that does not fit is somebody's metadata.
inline void take_opaque_notes(snapshot& content) {
  const auto first = content.about.lower_bound(std::string(opaque_note));
  if (first == content.about.end() || !first->first.starts_with(opaque_note)) return;
  std::map<std::string_view, record*> rows;
  for (auto& r : content.records)
    if (r.type == uint8 && r.dims.rank == 1 && !r.blob) rows.emplace(r.name, &r);
  for (auto at = first; at != content.about.end() && at->first.starts_with(opaque_note);) {
    const auto row = rows.find(std::string_view(at->first).substr(opaque_note.size()));
    opaque_kind kind;
    if (row == rows.end() || !opaque_kind_of(at->second, kind)) {
      ++at;
      continue;
    }
    record r = opaque_record(row->second->name, kind.type, std::move(kind.shape), row->second->bytes);
    const bool good = problem_of(r).empty();
    if (good) *row->second = std::move(r);
    rows.erase(row);
    at = good ? content.about.erase(at) : std::next(at);
  }
}

}  // namespace gradus::detail
