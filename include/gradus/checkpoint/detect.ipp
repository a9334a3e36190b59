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

}  // namespace gradus::detail
