// The bodies of bundle_notes.hpp.
#pragma once
#include "../base/body.hpp"
#include "bundle_notes.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::string bundle_data_suffix(std::int64_t shard, int shards) {
  const auto five = [](std::int64_t n) {
    const std::string digits = text(n);
    return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
  };
  return text(".data-", five(shard), "-of-", five(shards));
}

GRADUS_BODY std::string bundle_notes::escaped(std::string_view s, bool key) {
  std::string out;
  for (const char c : s) out += c == '\\' ? "\\\\" : c == '\n' ? "\\n" : c == '=' && key ? "\\e" : std::string(1, c);
  return out;
}

GRADUS_BODY bool bundle_notes::unescape(std::string_view s, std::string& out) {
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (s[i] != '\\') {
      out += s[i];
      continue;
    }
    const char c = ++i < s.size() ? s[i] : '\0';
    if (c != '\\' && c != 'n' && c != 'e') return false;
    out += c == 'n' ? '\n' : c == 'e' ? '=' : '\\';
  }
  return true;
}

GRADUS_BODY std::string bundle_notes::write(const std::int64_t* step, const metadata& about) {
  std::string out;
  if (step != nullptr) out += text("step ", *step, "\n");
  for (const auto& [key, value] : about) out += escaped(key, true) + "=" + escaped(value, false) + "\n";
  return out;
}

GRADUS_BODY bool bundle_notes::read(std::string_view s, std::optional<std::int64_t>& step, metadata& about) {
  while (!s.empty()) {
    const auto end = s.find('\n');
    if (end == std::string_view::npos) return false;
    const auto line = s.substr(0, end), key = line.substr(0, line.find('='));
    s.remove_prefix(end + 1);
    if (key.size() < line.size()) {
      std::string k, v;
      if (!unescape(key, k) || !unescape(line.substr(key.size() + 1), v) || !about.emplace(k, v).second) return false;
    } else {
      std::int64_t n = 0;
      if (step || !line.starts_with("step ")) return false;
      const auto digits = line.substr(5);
      const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), n);
      if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) return false;
      step = n;
    }
  }
  return true;
}

GRADUS_BODY std::optional<std::int64_t> step_of(const record& r) {
  if (r.blob || r.dims.rank != 0 || r.bytes.size() != size_of(r.type)) return {};
  const auto value = [&]<class T>(T v) {
    std::memcpy(&v, r.bytes.data(), sizeof v);
    return v;
  };
  if (r.type == int64) return value(std::int64_t{});
  if (r.type == int32) return value(std::int32_t{});
  if (r.type != float32) return {};
  const float f = value(0.0f);
  if (!(f >= 0 && f < 9e15f) || static_cast<float>(static_cast<std::int64_t>(f)) != f) return {};
  return static_cast<std::int64_t>(f);
}

}  // namespace gradus::detail
