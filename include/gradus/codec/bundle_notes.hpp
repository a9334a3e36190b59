// A tensor bundle of this library holds notes beside its tensors, in one string scalar that TensorFlow never reads.
#pragma once
#include "../base/build.hpp"

#include <charconv>
#include <cstring>
#include <optional>

#include "codec.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// ".data-00001-of-00004"
std::string bundle_data_suffix(std::int64_t shard, int shards);

// The string scalar for data for which TensorFlow has no place: "step 7" and lines of key=value, where \\, \n and \e
// stand for a backslash, a new line, and an equals sign in a key.
struct bundle_notes {
  static constexpr std::string_view name = "_gradus";
  // Metadata "strings names" -> "[2]": the blob "names" is a string tensor of these extents, in the bytes of its file.
  static constexpr std::string_view strings_key = "strings ";

  static std::string escaped(std::string_view s, bool key);
  static bool unescape(std::string_view s, std::string& out);
  static std::string write(const std::int64_t* step, const metadata& about);
  static bool read(std::string_view s, std::optional<std::int64_t>& step, metadata& about);
};

// Returns the value of a scalar that counts steps, of type int64, int32 or float32; nothing if the record is none.
std::optional<std::int64_t> step_of(const record& r);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "bundle_notes.ipp"
#endif
