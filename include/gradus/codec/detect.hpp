// This header detects the codec that wrote the checkpoint at a path, and gives it as a type.
//
//   with_codec<flat_binary, safetensors, tensor_bundle>("runs/digits", posix{}, [&](auto codec, const std::string&
//   path) {
//     opened_checkpoint checkpoint(codec, posix{}, path);
//     ...
//   });
//
// The path may be a file of a checkpoint (for a TensorFlow checkpoint any of them), a checkpoint's name without its
// extension, or a directory with a state file, of which the newest checkpoint is meant. The contents of a file and its
// manifest count; its extension counts where those do not decide, so that a damaged file still goes to the codec that
// can name the damage. A sharded checkpoint is found as sharded<C> for each C of the list.
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
  std::string each;   // of a sharded one: the codec of its shards
  std::string path;   // as that codec names it: stem and extension
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

// Returns a file's last 8 bytes; nothing where files cannot be read from their middle.
std::string tail_of(const any_file_system& fs, const std::string& path);

// The formats of this library, whether or not the caller knows their codecs: one line each, from which follow the files
// that are looked for at a stem, the recognition of a file by its name or its first bytes, and the messages.
struct known_codec {
  std::string_view name;
  std::string_view extension, proof;                // as the codec's own; of several with one, a file's frame tells
  bool (*begins)(std::string_view head) = nullptr;  // whether a file that begins so may be one, whatever its name
  std::string_view or_another = {};                 // others' files begin so too
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
// Of a file without our frame: whose name ends so, or else whose first bytes are such.
const known_codec* find_known_codec(std::string_view path, std::string_view head);
// ".ckpt", ".safetensors", ...: each once.
std::vector<std::string_view> known_proofs();
// ".ckpt, .safetensors, .npz, .index or .shards", or another word before the last.
std::string list_of_proofs(std::string_view last = " or ");

// "runs/model.data-00001-of-00004" -> "runs/model", nothing for other names.
std::optional<std::string> bundle_stem(std::string_view path);

// Returns the codec that a file with our frame names. One whose header is damaged goes to flat_binary, which says so.
std::string codec_in_frame(std::string_view head);

// "gradus shards 4 of safetensors\n" -> "safetensors". Where that cannot be read, sharded<flat_binary> says so.
std::string codec_of_shards(std::string_view said);

std::string first_bytes(std::string_view begin);

// Detects a regular file by its name and first bytes.
detected_checkpoint detect_file(const any_file_system& fs, const std::string& path, const file_head& head);

// Without an extension, or with only a manifest: what is there with this stem.
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

// A directory may also be TensorFlow's SavedModel, whose variables are meant. Raises
//   not_found            nothing is there, or the directory has no state file
//   failed_precondition  it is no checkpoint, it could be several, or it has a name that its codec cannot take
// and the errors of the file system.
detected_checkpoint detect_checkpoint(const std::string& path, const any_file_system& fs);

// Calls visit(codec, path) with the codec of `Codecs` that wrote it, or sharded<one of them>; all calls have to return
// the same type. Raises the errors of detect_checkpoint, and failed_precondition for a codec that is not in the list.
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
