// A manifest is a small text file beside a checkpoint whose format has no checksums of its own (safetensors, npz), or
// that is more than one file. It holds the size and the CRC-32C of every file, and its own checksum in its last line:
//
//   gradus manifest 1
//   codec: safetensors
//   library: gradus 0.4.0
//   file: ".safetensors" 1234 89abcdef           the suffix of the file's name, bytes, CRC-32C
//   crc32c: 01234567                             of all bytes before this line
//
// It is published after the files that it names. A checkpoint without one comes from elsewhere; unless its codec has a
// checksum for every tensor, it is read with a warning that its bytes could not be checked.
#pragma once
#include "../base/build.hpp"

#include "codec.hpp"
#include "state_file.hpp"

namespace gradus::inline GRADUS_BUILD {

inline constexpr std::string_view manifest_suffix = ".manifest";

// Returns the suffix of the manifest: "model-150.safetensors" has "model-150.safetensors.manifest", TensorFlow's
// "model-150" has "model-150.manifest".
inline std::string manifest_suffix_of(std::string_view extension) { return text(extension, manifest_suffix); }

struct manifest_entry {
  std::string suffix;
  std::uint64_t bytes = 0;
  std::uint32_t crc = 0;
};

struct checkpoint_manifest {
  int version = 1;
  std::string codec;
  std::string writer;
  std::string model;  // fingerprint; empty: none was given
  std::vector<manifest_entry> files;

  const manifest_entry* find(std::string_view suffix) const;
};

namespace detail {

// Returns true for the suffixes that may follow the stem of a checkpoint in the names of its files: only such files are
// ever deleted.
bool is_checkpoint_suffix(std::string_view suffix, std::string_view extension);
// Returns true for a shard's name without its extension, such as "model-150-00000-of-00002".
bool is_shard_of_several(std::string_view stem);
// Returns true for the name of a file of any checkpoint with this extension: "model-150.ckpt",
// "model-150.data-00000-of-00002".
bool is_checkpoint_file(std::string_view name, std::string_view extension);

std::uint32_t crc_of(const encoded_file& file, std::uint64_t& bytes);

}  // namespace detail

std::string to_text(const checkpoint_manifest& m);

// Makes the manifest of an encoded checkpoint.
checkpoint_manifest manifest_of(std::string_view codec, const metadata& about, const encoded& checkpoint);

// Returns the reason why the text is no manifest, or an empty text; then `out` is the manifest. `kind` distinguishes a
// damaged manifest (data_loss) from one that a newer library wrote (failed_precondition).
std::string parse_manifest(std::string_view content, checkpoint_manifest& out, status& kind,
                           const reader_limits& limits = {});

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "manifest.ipp"
#endif
