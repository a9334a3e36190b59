// The bodies of detect.hpp.
#pragma once
#include "../base/body.hpp"
#include "detect.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY const known_codec* find_known_codec(std::string_view name) {
  for (const auto& k : known_codecs)
    if (k.name == name) return &k;
  return nullptr;
}

GRADUS_BODY const known_codec* find_known_codec(std::string_view path, std::string_view head) {
  for (const auto& k : known_codecs)
    if (path.ends_with(k.proof)) return &k;
  for (const auto& k : known_codecs)
    if (k.begins != nullptr && k.begins(head)) return &k;
  return nullptr;
}

GRADUS_BODY std::vector<std::string_view> known_proofs() {
  std::vector<std::string_view> out;
  for (const auto& k : known_codecs)
    if (std::find(out.begin(), out.end(), k.proof) == out.end()) out.push_back(k.proof);
  return out;
}

GRADUS_BODY std::string list_of_proofs(std::string_view last) {
  std::string out;
  const auto all = known_proofs();
  for (std::size_t i = 0; i < all.size(); ++i) out += text(i == 0 ? "" : i + 1 == all.size() ? last : ", ", all[i]);
  return out;
}

GRADUS_BODY std::optional<std::string> bundle_stem(std::string_view path) {
  for (const std::string_view end : {".index", ".meta"})
    if (path.ends_with(end)) return std::string(path.substr(0, path.size() - end.size()));
  const auto at = path.rfind(".data-");
  constexpr std::size_t digits = 14;  // 00001-of-00004
  if (at == std::string_view::npos || at + 6 + digits != path.size() || !is_checkpoint_suffix(path.substr(at), ""))
    return std::nullopt;
  return std::string(path.substr(0, at));
}

GRADUS_BODY std::string codec_in_frame(std::string_view head) {
  constexpr std::string_view otherwise = "flat_binary";
  if (head.size() < frame::header_bytes) return std::string(otherwise);
  byte_source in(std::as_bytes(std::span(head.data() + 60, 4)));
  if (crc32c(head.substr(0, 60)) != in.number<std::uint32_t>()) return std::string(otherwise);
  const auto name = head.substr(16, frame::name_bytes);
  return std::string(name.substr(0, name.find('\0')));
}

GRADUS_BODY std::string codec_of_shards(std::string_view said) {
  const auto of = said.find(" of ");
  if (!said.starts_with("gradus shards ") || of == std::string_view::npos || !said.ends_with('\n'))
    return "flat_binary";
  return std::string(said.substr(of + 4, said.size() - of - 5));
}

GRADUS_BODY std::string first_bytes(std::string_view begin) {
  std::string out;
  for (const char c : begin.substr(0, 8)) {
    const auto u = static_cast<unsigned char>(c);
    out += out.empty() ? "" : " ";
    out += "0123456789abcdef"[u >> 4], out += "0123456789abcdef"[u & 15];
  }
  return out;
}

GRADUS_BODY file_head head_of(const any_file_system& fs, const std::string& path, std::size_t most) {
  file_head out;
  any_file_system::handle h{};
  out.error = uninterrupted([&] { return fs.open_read(path, h, out.size); });
  if (out.error != 0) return out;
  const closing closing(fs, h);
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

GRADUS_BODY std::string tail_of(const any_file_system& fs, const std::string& path) {
  std::string out;
  if (fs.seeks()) {
    constexpr std::size_t most = 8;
    any_file_system::handle h{};
    std::uint64_t size = 0;
    if (uninterrupted([&] { return fs.open_read(path, h, size); }) != 0) return out;
    const closing closing(fs, h);
    std::byte bytes[most];
    std::size_t moved = 0;
    if (size >= most && fs.seek(h, size - most) == 0 &&
        uninterrupted([&] { return fs.read(h, std::span(bytes), moved); }) == 0)
      out.assign(reinterpret_cast<const char*>(bytes), moved);
  }
  return out;
}

GRADUS_BODY detected_checkpoint detect_stem(const any_file_system& fs, const std::string& stem,
                                            const std::string& path) {
  const auto there = [&](const std::string& file) { return head_of(fs, file, 0).error == 0; };
  std::vector<std::string> found;
  for (const std::string_view proof : known_proofs())
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
    raise(status::not_found, text("there is no checkpoint \"", path, "\": no such file, and none of that name with ",
                                  list_of_proofs(), " behind it; check the path"));
  return detect_file(fs, found.front(), head_of(fs, found.front(), frame::header_bytes));
}

GRADUS_BODY detected_checkpoint detect_file(const any_file_system& fs, const std::string& path, const file_head& head) {
  if (const auto stem = bundle_stem(path)) return {"tensor_bundle", {}, *stem};
  if (path.ends_with(manifest_suffix)) {
    const auto of = path.substr(0, path.size() - manifest_suffix.size());
    const auto whole = head_of(fs, of, frame::header_bytes);
    return whole.error == 0 ? detect_file(fs, of, whole) : detect_stem(fs, of, path);
  }
  if (path.ends_with(".shards")) return {"sharded", codec_of_shards(head.begin), path};
  const std::string_view begin = head.begin;
  const bool framed = begin.starts_with(frame::magic);
  const auto* known = framed ? nullptr : find_known_codec(path, begin);
  const bool surely = std::any_of(std::begin(known_codecs), std::end(known_codecs), [&](const known_codec& k) {
    return k.begins != nullptr && k.or_another.empty() && k.begins(begin);
  });
  if (!framed && !surely)
    if (const auto advice = advice_for(path, begin, tail_of(fs, path)); !advice.empty())
      raise(status::failed_precondition, text("\"", path, "\" is ", advice));
  const std::string codec = framed ? codec_in_frame(begin) : known != nullptr ? std::string(known->name) : "";
  if (codec.empty())
    raise(status::failed_precondition,
          text("\"", path, "\" is no checkpoint of a known format: ", head.size, " bytes",
               begin.empty() ? "" : ", the first of them ", first_bytes(begin), "; known are ", list_of_proofs(" and "),
               " (TensorFlow's .index with .data files)"));
  if (const auto* k = find_known_codec(codec); k != nullptr && !path.ends_with(k->extension))
    raise(status::failed_precondition, text("\"", path, "\" looks like ", codec, k->or_another,
                                            "; give it a name that ends in \"", k->extension, "\" if it is"));
  return {codec, {}, path};
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY detected_checkpoint detect_checkpoint(const std::string& path, const any_file_system& fs) {
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

}  // namespace gradus
