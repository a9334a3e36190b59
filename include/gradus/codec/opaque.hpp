// Tensors of types or ranks that this library does not have are kept as they are: a file that holds one stays readable.
//
// A format that has no place for such a tensor keeps its bytes as a row of uint8, and its type and shape among the
// metadata:
//
//   "opaque <name of the tensor>" -> "complex64[2, 3]"
#pragma once
#include "codec.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

record opaque_record(std::string name, std::string_view type, std::vector<std::int64_t> shape,
                     std::span<const std::byte> bytes);

// Returns why a tensor of a known type has to be opaque too: it is of bool with a byte that is neither 0 nor 1, or its
// extents beside a 0 have a product of 2^64 or more. Empty if it need not. For formats of other programs, whose files
// stay readable; in a format of this library such a tensor is damage.
std::string_view reason_to_be_opaque(const record& r);
// Adds to a warning that this tensor is opaque for this reason.
void warn_of_opaque(std::string& warning, std::string_view name, std::string_view reason);

inline constexpr std::string_view opaque_note = "opaque ";

// Returns a snapshot whose opaque tensors are rows of uint8 with a note, except those that the format can store as they
// are (`takes(record)`). Raises invalid_argument for metadata that would be read as such a note.
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
bool has_opaque(const snapshot& content);
// Applies its notes to a snapshot that was read. A note that does not fit is taken for another program's metadata.
void take_opaque_notes(snapshot& content);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "opaque.ipp"
#endif
