// This header keeps the data of this library's checkpoints for which the formats of others have no place: the step, and
// which tensors are blobs. Such formats have room for text by key; there the data are part of the metadata:
//
//   "step"       the step in decimal, unless it is 0
//   "blobs"      the names of the blobs, a JSON list of strings, unless there are none
//   "bfloat16", "float8_e4m3", "float8_e5m2"   the names of tensors of these types, for formats that do not have them
//   "opaque w"   the type and shape of w, whose type neither this library nor the format has (opaque.hpp)
//
// A file from elsewhere may use these keys for something of its own. That stays metadata, as it was.
#pragma once
#include "../base/build.hpp"

#include <bit>
#include <charconv>
#include <optional>
#include <unordered_map>

#include "../store/json.hpp"
#include "opaque.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

static_assert(std::endian::native == std::endian::little,
              "gradus: checkpoints are little-endian and are written from memory; this machine is big-endian.");

struct foreign_notes {
  static constexpr std::string_view step_key = "step", blobs_key = "blobs";
};

// Returns the number in a text, if the text has the form in which this library writes it.
std::optional<std::int64_t> step_in(std::string_view s);

std::string names_as_text(const std::vector<std::string_view>& names);
// Returns the names in such a text; nothing if it is not of that form, or if the list is empty.
std::optional<std::vector<std::string>> names_in(std::string_view s);

// Returns the metadata of a snapshot and these notes; `unknown` are the types that the format does not have. Raises
// invalid_argument for data that the format cannot hold: text that is no UTF-8, metadata that would be read as a note.
metadata with_notes(const snapshot& content, std::string_view codec_name, std::initializer_list<dtype> unknown = {});

// Applies the notes of a file: `content` has its records, and gets the metadata, the step and the blobs.
void take_notes(metadata&& notes, snapshot& content);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "foreign.ipp"
#endif
