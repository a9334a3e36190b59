// The bodies of manifest.hpp.
#pragma once
#include <charconv>

#include "../base/body.hpp"
#include "../store/crc32c.hpp"
#include "manifest.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY const manifest_entry* checkpoint_manifest::find(std::string_view suffix) const {
  for (const auto& f : files)
    if (f.suffix == suffix) return &f;
  return nullptr;
}

}  // namespace gradus

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY bool is_checkpoint_suffix(std::string_view suffix, std::string_view extension) {
  if (suffix == manifest_suffix_of(extension)) return true;
  for (const std::string_view known :
       {extension, manifest_suffix, std::string_view(".index"), std::string_view(".meta"), std::string_view(".shards")})
    if (!known.empty() && suffix == known) return true;
  // ".data-00000-of-00002", "-00000-of-00002.safetensors"
  if (suffix.starts_with(".data")) suffix.remove_prefix(5);
  constexpr std::string_view pattern = "-#####-of-#####";
  if (suffix.size() < pattern.size()) return false;
  const auto rest = suffix.substr(pattern.size());
  // The shards of a codec with data files of its own: "-00000-of-00002.data-00000-of-00001".
  if (rest.starts_with(".data-")) return is_checkpoint_suffix(rest, extension);
  return (rest.empty() || (rest.front() == '.' && rest.find_first_of(".-", 1) == std::string_view::npos)) &&
         std::equal(pattern.begin(), pattern.end(), suffix.begin(),
                    [](char p, char c) { return p == '#' ? c >= '0' && c <= '9' : c == p; });
}

GRADUS_BODY bool is_shard_of_several(std::string_view stem) {
  constexpr std::string_view pattern = "-#####-of-#####";
  return stem.size() > pattern.size() && is_checkpoint_suffix(stem.substr(stem.size() - pattern.size()), {});
}

GRADUS_BODY bool is_checkpoint_file(std::string_view name, std::string_view extension) {
  for (auto at = name.find_first_of(".-"); at != std::string_view::npos; at = name.find_first_of(".-", at + 1))
    if (is_checkpoint_suffix(name.substr(at), extension)) return true;
  return false;
}

GRADUS_BODY std::uint32_t crc_of(const encoded_file& file, std::uint64_t& bytes) {
  std::uint32_t crc = 0;
  bytes = 0;
  for (const auto piece : file.pieces) crc = extend(crc, piece), bytes += piece.size();
  return crc;
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::string to_text(const checkpoint_manifest& m) {
  std::string out = text("gradus manifest ", m.version, "\ncodec: ", m.codec, "\nlibrary: ", m.writer, '\n');
  if (!m.model.empty()) out += text("model: ", detail::quoted(m.model), '\n');
  for (const auto& f : m.files)
    out += text("file: ", detail::quoted(f.suffix), ' ', f.bytes, ' ', detail::hex(f.crc), '\n');
  return out + text("crc32c: ", detail::hex(crc32c(out)), '\n');
}

GRADUS_BODY checkpoint_manifest manifest_of(std::string_view codec, const metadata& about, const encoded& checkpoint) {
  checkpoint_manifest out;
  out.codec = codec;
  out.writer = written_by;
  if (const auto model = about.find("model"); model != about.end()) out.model = model->second;
  for (const auto& file : checkpoint.files) {
    manifest_entry entry{file.suffix, 0, 0};
    entry.crc = detail::crc_of(file, entry.bytes);
    out.files.push_back(std::move(entry));
  }
  return out;
}

GRADUS_BODY std::string parse_manifest(std::string_view content, checkpoint_manifest& out, status& kind,
                                       const reader_limits& limits) {
  kind = status::data_loss;
  constexpr std::string_view head = "gradus manifest ", mark = "crc32c: ";
  if (!content.starts_with(head)) return text("it does not begin with \"", head, '"');
  // The last line covers everything before it, whatever the version.
  const std::size_t last = mark.size() + 8 + 1;
  if (content.size() < last || content.substr(content.size() - last, mark.size()) != mark)
    return "it does not end with its checksum, so it is cut short or damaged";
  const auto covered = content.substr(0, content.size() - last);
  if (content.substr(content.size() - last) != text(mark, detail::hex(crc32c(covered)), '\n'))
    return "its checksum does not fit its bytes";

  const auto number = [](std::string_view s, auto& n, int base) {
    const auto [stop, failed] = std::from_chars(s.data(), s.data() + s.size(), n, base);
    return failed == std::errc{} && stop == s.data() + s.size() && !s.empty();
  };
  checkpoint_manifest m;
  for (std::size_t at = 0, line_number = 1; at < covered.size(); ++line_number) {
    const auto end = std::min(covered.find('\n', at), covered.size());
    const auto line = covered.substr(at, end - at);
    at = end + 1;
    const auto wrong = [&] { return text("its line ", line_number, " is none that this library writes: ", line); };
    if (line_number == 1) {
      if (!number(line.substr(head.size()), m.version, 10) || m.version < 1) return wrong();
      if (m.version > 1) {
        kind = status::failed_precondition;
        return text("it has version ", m.version, ", which is newer than version 1 that this library (", written_by,
                    ") reads; use a newer library");
      }
      continue;
    }
    const auto colon = line.find(": ");
    if (colon == std::string_view::npos) return wrong();
    const auto key = line.substr(0, colon), value = line.substr(colon + 2);
    if (key == "codec")
      m.codec = value;
    else if (key == "library")
      m.writer = value;
    else if (key == "model" || key == "file") {
      const std::string field = text("value: ", value);
      detail::text_fields in(field);
      std::string name, string;
      if (!value.starts_with('"') || in.next(name, string) != detail::text_fields::found::field) return wrong();
      if (key == "model") {
        m.model = string;
        continue;
      }
      manifest_entry entry{string, 0, 0};
      const auto crc_at = value.rfind(' ');
      const auto bytes_at = crc_at == std::string_view::npos || crc_at == 0 ? crc_at : value.rfind(' ', crc_at - 1);
      if (bytes_at == std::string_view::npos ||
          !number(value.substr(bytes_at + 1, crc_at - bytes_at - 1), entry.bytes, 10) ||
          !number(value.substr(crc_at + 1), entry.crc, 16))
        return wrong();
      if (m.files.size() == limits.entries) {
        kind = status::resource_exhausted;
        return detail::too_many_entries("files", limits);
      }
      m.files.push_back(std::move(entry));
    } else {
      return wrong();
    }
  }
  if (m.files.empty()) return "it names no file";
  std::vector<std::string_view> names;
  for (const auto& f : m.files) names.push_back(f.suffix);
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    return text("it names the file \"", *twice, "\" twice");
  out = std::move(m);
  return {};
}

}  // namespace gradus
