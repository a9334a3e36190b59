// The bodies of foreign.hpp.
#pragma once
#include "../base/body.hpp"
#include "foreign.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::optional<std::int64_t> step_in(std::string_view s) {
  std::int64_t n = 0;
  const auto [past, failed] = std::from_chars(s.data(), s.data() + s.size(), n);
  if (failed != std::errc{} || s != text(n) || n == 0) return std::nullopt;
  return n;
}

GRADUS_BODY std::string names_as_text(const std::vector<std::string_view>& names) {
  std::string out = "[";
  for (const auto name : names) {
    if (out.size() > 1) out += ',';
    append_json_string(out, name);
  }
  return out + "]";
}

GRADUS_BODY std::optional<std::vector<std::string>> names_in(std::string_view s) {
  json_reader in(s);
  std::vector<std::string> names;
  std::string name;
  in.begin_array();
  while (in.next_element() && in.string(name)) names.push_back(name);
  if (!in.finish() || names.empty()) return std::nullopt;
  return names;
}

GRADUS_BODY metadata with_notes(const snapshot& content, std::string_view codec_name,
                                std::initializer_list<dtype> unknown) {
  metadata out = content.about;
  const auto refuse = [codec_name](const auto&... why) {
    raise(status::invalid_argument, text("this state cannot be saved as ", codec_name, ": ", why...));
  };
  for (const auto& [key, value] : out)
    if (!is_utf8(key) || !is_utf8(value)) refuse("the metadata \"", key, "\" is no text in UTF-8");
  std::vector<std::string_view> blobs;
  for (const auto& r : content.records) {
    if (!is_utf8(r.name)) refuse("the name \"", r.name, "\" is no text in UTF-8");
    if (r.blob) blobs.push_back(r.name);
  }
  std::sort(blobs.begin(), blobs.end());
  const auto note = [&](std::string_view key, bool wanted, bool (*is_one)(std::string_view), const std::string& value) {
    const auto there = out.find(std::string(key));
    if (there != out.end() && (wanted || is_one(there->second)))
      refuse("its metadata has the key \"", key, "\", which the format needs itself; choose another");
    if (wanted) out.emplace(key, value);
  };
  const auto is_step = [](std::string_view s) { return step_in(s).has_value(); };
  const auto is_list = [](std::string_view s) { return names_in(s).has_value(); };
  note(foreign_notes::step_key, content.step != 0, is_step, text(content.step));
  note(foreign_notes::blobs_key, !blobs.empty(), is_list, names_as_text(blobs));
  for (const dtype type : unknown) {
    std::vector<std::string_view> names;
    for (const auto& r : content.records)
      if (r.type == type) names.push_back(r.name);
    std::sort(names.begin(), names.end());
    note(name_of(type), !names.empty(), is_list, names_as_text(names));
  }
  return out;
}

GRADUS_BODY void take_notes(metadata&& notes, snapshot& content) {
  if (const auto at = notes.find(std::string(foreign_notes::step_key)); at != notes.end())
    if (const auto step = step_in(at->second)) content.step = *step, notes.erase(at);
  if (const auto at = notes.find(std::string(foreign_notes::blobs_key)); at != notes.end())
    if (const auto names = names_in(at->second)) {
      std::unordered_map<std::string_view, record*> rows;
      for (auto& r : content.records)
        if (r.type == uint8 && r.dims.rank == 1) rows.emplace(r.name, &r);
      const bool all =
          std::all_of(names->begin(), names->end(), [&rows](const std::string& name) { return rows.contains(name); });
      if (all) {
        for (const auto& name : *names) rows.find(name)->second->blob = true;
        notes.erase(at);
      }
    }
  content.about = std::move(notes);
  take_opaque_notes(content);
}

}  // namespace gradus::detail
