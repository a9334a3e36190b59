// Which codec wrote what lies at a path, and that codec as a type.
//
//   with_codec<flat_binary, safetensors, tensor_bundle>("runs/digits", posix{}, [&](auto codec, const std::string&
//   path) {
//     opened_checkpoint checkpoint(codec, posix{}, path);
//     ...
//   });
//
// The path may be a file of a checkpoint (for a TensorFlow checkpoint any of them), a checkpoint's name without its
// extension, or a directory with a state file, of which the newest checkpoint is meant. What is in a file counts, and
// what its manifest says; its extension counts where that does not tell, so that a damaged file is still handed to the
// codec that can say what is damaged. A sharded checkpoint is found as sharded<C> for each C of the list.
//
// The codecs come from the caller, so that nobody includes zlib or cereal by asking.
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

// What lies at a path: at most `most` bytes of its beginning.
struct file_head {
  int error = 0;  // errno
  std::uint64_t size = 0;
  std::string begin;
};
template <file_system F>
file_head head_of(const F& fs, const std::string& path, std::size_t most) {
  file_head out;
  typename F::handle h{};
  out.error = uninterrupted([&] { return fs.open_read(path, h, out.size); });
  if (out.error != 0) return out;
  const closing<F> closing(fs, h);
  std::vector<std::byte> bytes(static_cast<std::size_t>(std::min<std::uint64_t>(most, out.size)));
  for (std::size_t at = 0; at < bytes.size();) {
    std::size_t moved = 0;
    out.error = uninterrupted([&] { return fs.read(h, std::span(bytes).subspan(at), moved); });
    if (out.error != 0) return out;
    if (moved == 0) bytes.resize(at);
    at += moved;
  }
  out.begin.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return out;
}

// A file's last 8 bytes; nothing where files cannot be read from their middle.
template <file_system F>
std::string tail_of(const F& fs, const std::string& path) {
  std::string out;
  if constexpr (requires(typename F::handle h) { fs.seek(h, std::uint64_t{}); }) {
    constexpr std::size_t most = 8;
    typename F::handle h{};
    std::uint64_t size = 0;
    if (uninterrupted([&] { return fs.open_read(path, h, size); }) != 0) return out;
    const closing<F> closing(fs, h);
    std::byte bytes[most];
    std::size_t moved = 0;
    if (size >= most && fs.seek(h, size - most) == 0 &&
        uninterrupted([&] { return fs.read(h, std::span(bytes), moved); }) == 0)
      out.assign(reinterpret_cast<const char*>(bytes), moved);
  }
  return out;
}

// The codecs of this library, whether or not the caller knows them.
struct known_codec {
  std::string_view name, extension, proof;
};
inline constexpr known_codec known_codecs[] = {{"flat_binary", ".ckpt", ".ckpt"},
                                               {"cereal_binary", ".ckpt", ".ckpt"},
                                               {"cereal_portable", ".ckpt", ".ckpt"},
                                               {"cereal_json", ".ckpt", ".ckpt"},
                                               {"safetensors", ".safetensors", ".safetensors"},
                                               {"npz", ".npz", ".npz"},
                                               {"tensor_bundle", "", ".index"},
                                               {"sharded", ".shards", ".shards"}};
const known_codec* find_known_codec(std::string_view name);

// "runs/model.data-00001-of-00004" -> "runs/model", nothing for other names.
std::optional<std::string> bundle_stem(std::string_view path);

// The codec that a file with our frame names. One whose header is damaged goes to flat_binary, which says so.
std::string codec_in_frame(std::string_view head);

// "gradus shards 4 of safetensors\n" -> "safetensors". Where that cannot be read, sharded<flat_binary> says so.
std::string codec_of_shards(std::string_view said);

std::string first_bytes(std::string_view begin);

// What a regular file is, from its name and first bytes.
template <file_system F>
detected_checkpoint detect_file(const F& fs, const std::string& path, const file_head& head);

// Without an extension, or with only a manifest: what is there with this stem.
template <file_system F>
detected_checkpoint detect_stem(const F& fs, const std::string& stem, const std::string& path) {
  const auto there = [&](const std::string& file) { return head_of(fs, file, 0).error == 0; };
  std::vector<std::string> found;
  for (const std::string_view proof : {".ckpt", ".safetensors", ".npz", ".index", ".shards"})
    if (there(stem + std::string(proof))) found.push_back(stem + std::string(proof));
  if (found.size() > 1) {
    std::string all;
    for (const auto& f : found) all += text(all.empty() ? "\"" : ", \"", f, '"');
    raise(status::failed_precondition,
          text("\"", path, "\" may mean several checkpoints: ", all, "; name one with its extension"));
  }
  if (found.empty()) {
    std::vector<std::string> names;
    uninterrupted([&] { return fs.list(directory_of(stem), names); });
    const auto name = file_name_of(stem);
    const bool is_v1 = is_v1_shard(name) || std::any_of(names.begin(), names.end(), [&](const std::string& n) {
                         return n.size() == name.size() + 15 && n.starts_with(name) && is_v1_shard(n);
                       });
    if (is_v1)
      raise(status::failed_precondition, text("\"", path, "\" is ", first_tensorflow_format, " (it is in shards)"));
  }
  if (found.empty())
    raise(status::not_found, text("there is no checkpoint \"", path,
                                  "\": no such file, and none of that name with .ckpt, .safetensors, .npz, .index or "
                                  ".shards behind it; check the path"));
  return detect_file(fs, found.front(), head_of(fs, found.front(), frame::header_bytes));
}

template <file_system F>
detected_checkpoint detect_file(const F& fs, const std::string& path, const file_head& head) {
  if (const auto stem = bundle_stem(path)) return {"tensor_bundle", {}, *stem};
  if (path.ends_with(manifest_suffix)) {
    const auto of = path.substr(0, path.size() - manifest_suffix.size());
    const auto whole = head_of(fs, of, frame::header_bytes);
    return whole.error == 0 ? detect_file(fs, of, whole) : detect_stem(fs, of, path);
  }
  if (path.ends_with(".shards")) return {"sharded", codec_of_shards(head.begin), path};
  const std::string_view begin = head.begin;
  const auto json_at_8 = begin.size() > 8 && begin[8] == '{' && begin.substr(4, 4) == std::string_view("\0\0\0\0", 4);
  if (!begin.starts_with(frame::magic) && !json_at_8)
    if (const auto advice = advice_for(path, begin, tail_of(fs, path)); !advice.empty())
      raise(status::failed_precondition, text("\"", path, "\" is ", advice));
  std::string codec;
  if (begin.starts_with(frame::magic))
    codec = codec_in_frame(begin);
  else if (path.ends_with(".ckpt"))
    codec = "flat_binary";
  else if (path.ends_with(".safetensors") || (json_at_8 && !path.ends_with(".npz")))
    codec = "safetensors";
  else if (path.ends_with(".npz") || begin.starts_with("PK\3\4"))
    codec = "npz";
  if (codec.empty())
    raise(status::failed_precondition,
          text("\"", path, "\" is no checkpoint of a known format: ", head.size, " bytes",
               begin.empty() ? "" : ", the first of them ", first_bytes(begin),
               "; known are .ckpt, .safetensors, .npz, .shards and TensorFlow's .index with .data files"));
  if (const auto* k = find_known_codec(codec); k != nullptr && !path.ends_with(k->extension))
    raise(status::failed_precondition,
          text("\"", path, "\" looks like ", codec, codec == "npz" ? " or another ZIP archive" : "",
               "; give it a name that ends in \"", k->extension, "\" if it is"));
  return {codec, {}, path};
}

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
// and what the file system says.
template <file_system F>
detected_checkpoint detect_checkpoint(const std::string& path, const F& fs) {
  const auto head = detail::head_of(fs, path, detail::frame::header_bytes);
  if (head.error == 0) return detail::detect_file(fs, path, head);
  if (head.error == ENOENT) return detail::detect_stem(fs, path, path);
  if (head.error != EISDIR) raise({head.error, "open", path});
  const auto state = read_state_file(fs, path);
  const auto there = [&](std::string_view name) {
    return detail::uninterrupted([&] { return fs.exists(join_path(path, name)); }) == 0;
  };
  if (!state && there("variables.index")) return {"tensor_bundle", {}, join_path(path, "variables")};
  if (!state && (there("saved_model.pb") || there("saved_model.pbtxt"))) {
    if (there("variables/variables.index")) return {"tensor_bundle", {}, join_path(path, "variables/variables")};
    raise(status::not_found,
          text("the SavedModel \"", path, "\" has no variables (\"variables/variables.index\"); its ",
               "graph alone is no checkpoint"));
  }
  if (!state)
    raise(status::not_found, text("the directory \"", path, "\" has no state file (\"", state_file_name,
                                  "\") that would say which checkpoint is the newest; name one by its path"));
  std::string warning;
  const auto newest = listed_path(fs, path, state->newest, warning);
  const auto begin = detail::head_of(fs, newest, detail::frame::header_bytes);
  auto found = begin.error == 0 ? detail::detect_file(fs, newest, begin) : detail::detect_stem(fs, newest, newest);
  found.warning = std::move(warning);
  return found;
}

// Calls visit(codec, path) with the codec of `Codecs` that wrote it, or sharded<one of them>; all calls have to return
// the same type. Raises what detect_checkpoint raises, and failed_precondition for a codec that is not in the list.
template <codec... Codecs, class Visitor>
decltype(auto) with_codec(const detected_checkpoint& found, Visitor&& visit) {
  std::string asked;
  ((asked += text(asked.empty() ? "" : ", ", std::string_view(Codecs::name))), ...);
  return detail::visit_codec<Codecs...>(found, visit, asked);
}
template <codec... Codecs, file_system F, class Visitor>
decltype(auto) with_codec(const std::string& path, const F& fs, Visitor&& visit) {
  return with_codec<Codecs...>(detect_checkpoint(path, fs), visit);
}

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "detect.ipp"
#endif
