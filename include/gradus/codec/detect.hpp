// This header detects the codec that wrote the checkpoint at a path, and passes it on as a type.
//
//   with_codec<flat_binary, safetensors, tensor_bundle>("runs/digits", posix{},
//                                                       [&](auto codec, const std::string& path) {
//     opened_checkpoint checkpoint(codec, posix{}, path);
//     ...
//   });
//
// The path may be a file of a checkpoint (for a TensorFlow checkpoint any of them), a checkpoint's name without its
// extension, or a directory with a state file, which stands for its newest checkpoint. The contents of a file and its
// manifest decide; where they do not, its extension does, so that a damaged file still goes to the codec that can name
// the damage. A sharded checkpoint is detected as sharded<C> for each C of the list.
//
// The codecs come from the caller, so that detection includes neither zlib nor cereal.
#pragma once
#include "frame.hpp"
#include "manifest.hpp"
#include "others.hpp"
#include "sharded.hpp"

namespace gradus::inline GRADUS_BUILD {

struct detected_checkpoint {
  std::string codec;  // its name: "flat_binary", "safetensors", "sharded", ...
  std::string each;   // of a sharded checkpoint: the codec of its shards
  std::string path;   // in the codec's form: stem and extension
  std::string warning = {};
};

namespace detail {

// Reads at most `most` bytes of the beginning of the file at a path.
struct file_head {
  int error = 0;  // errno
  std::uint64_t size = 0;
  std::string begin;
};
file_head head_of(const any_file_system& fs, const std::string& path, std::size_t most);

// Returns a file's last 8 bytes; an empty text where files cannot be read from their middle.
std::string tail_of(const any_file_system& fs, const std::string& path);

// The formats of this library, whether or not the caller has their codecs: one line each. From these lines follow the
// files that are looked for at a stem, the recognition of a file by its name or its first bytes, and the messages.
struct known_codec {
  std::string_view name;
  std::string_view extension, proof;                // as in the codec; where several share one, a file's frame decides
  bool (*begins)(std::string_view head) = nullptr;  // true if a file with this beginning may be one, whatever its name
  std::string_view or_another = {};                 // other formats' files begin in the same way
};
inline constexpr known_codec known_codecs[] = {
    {"flat_binary", ".ckpt", ".ckpt"},
    {"cereal_binary", ".ckpt", ".ckpt"},
    {"cereal_portable", ".ckpt", ".ckpt"},
    {"cereal_json", ".ckpt", ".ckpt"},
    {"safetensors", ".safetensors", ".safetensors",
     [](std::string_view head) {  // a length below 4 GiB, and JSON
       return head.size() > 8 && head[8] == '{' && head.substr(4, 4) == std::string_view("\0\0\0\0", 4);
     }},
    {"npz", ".npz", ".npz", [](std::string_view head) { return head.starts_with("PK\3\4"); },
     " or another ZIP archive"},
    {"tensor_bundle", "", ".index"},
    {"sharded", ".shards", ".shards"}};
const known_codec* find_known_codec(std::string_view name);
// Finds the codec of a file without this library's frame, by the end of its name, or else by its first bytes.
const known_codec* find_known_codec(std::string_view path, std::string_view head);
// Returns ".ckpt", ".safetensors", ...: each once.
std::vector<std::string_view> known_proofs();
// Returns ".ckpt, .safetensors, .npz, .index or .shards", or with another word before the last.
std::string list_of_proofs(std::string_view last = " or ");

// Returns the stem of a file of a bundle: "runs/model" for "runs/model.data-00001-of-00004", nothing for other names.
std::optional<std::string> bundle_stem(std::string_view path);

// Returns the codec that the frame of a file names. A file with a damaged header gets flat_binary, which reports the
// damage.
std::string codec_in_frame(std::string_view head);

// Returns "safetensors" for "gradus shards 4 of safetensors\n". If the text cannot be read, it returns flat_binary:
// sharded<flat_binary> then reports that.
std::string codec_of_shards(std::string_view said);

std::string first_bytes(std::string_view begin);

// Detects a regular file by its name and first bytes.
detected_checkpoint detect_file(const any_file_system& fs, const std::string& path, const file_head& head);

// Detects a checkpoint by a path without an extension, or one of which only the manifest was found: by the files with
// this stem.
detected_checkpoint detect_stem(const any_file_system& fs, const std::string& stem, const std::string& path);

template <codec First, codec... Rest, class Visitor>
decltype(auto) visit_codec(const detected_checkpoint& found, Visitor& visit, std::string_view asked) {
  if (found.codec == First::name) return visit(First{}, found.path);
  if (found.codec == sharded<First>::name && found.each == First::name) return visit(sharded<First>{}, found.path);
  if constexpr (sizeof...(Rest) > 0)
    return visit_codec<Rest...>(found, visit, asked);
  else
    raise(status::failed_precondition,
          text("\"", found.path, "\" was written by the codec \"", found.codec, found.each.empty() ? "" : "\" of \"",
               found.each, "\", which is not among those asked for (", asked,
               "); add it to with_codec's list, or convert the checkpoint with gradus-checkpoint"));
}

}  // namespace detail

// Detects the checkpoint at a path. A directory may also be TensorFlow's SavedModel, which stands for its variables.
// Raises
//   not_found            nothing is there, or the directory has no state file
//   failed_precondition  it is no checkpoint, it could be several, or it has a name that its codec cannot take
// and the errors of the file system.
detected_checkpoint detect_checkpoint(const std::string& path, const any_file_system& fs);

// Calls visit(codec, path) with the codec of `Codecs` that wrote the checkpoint, or sharded<one of them>; all calls
// have to return the same type. Raises the errors of detect_checkpoint, and failed_precondition for a codec that is not
// in the list.
template <codec... Codecs, class Visitor>
decltype(auto) with_codec(const detected_checkpoint& found, Visitor&& visit) {
  std::string asked;
  ((asked += text(asked.empty() ? "" : ", ", std::string_view(Codecs::name))), ...);
  return detail::visit_codec<Codecs...>(found, visit, asked);
}
template <codec... Codecs, class Visitor>
decltype(auto) with_codec(const std::string& path, const any_file_system& fs, Visitor&& visit) {
  return with_codec<Codecs...>(detect_checkpoint(path, fs), visit);
}

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "detect.ipp"
#endif
