// A tensor bundle's files in memory, for the tests of its parts.
#pragma once
#include <doctest/doctest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "gradus/codec/codec.hpp"

namespace bundle_test {
using namespace gradus;
using file_bytes = std::vector<std::byte>;

inline std::span<const std::byte> bytes(const auto& values) { return std::as_bytes(std::span(values)); }
inline file_bytes hex(std::string_view digits) {
  file_bytes out;
  int high = -1;
  for (const char c : digits) {
    if (c == ' ' || c == '\n') continue;
    const int digit = c <= '9' ? c - '0' : c - 'a' + 10;
    if (high >= 0) out.push_back(static_cast<std::byte>(16 * high + digit));
    high = high >= 0 ? -1 : digit;
  }
  return out;
}
inline std::string hex_of(std::span<const std::byte> b) {
  std::string out;
  for (const std::byte x : b) {
    out += "0123456789abcdef"[std::to_integer<int>(x) >> 4];
    out += "0123456789abcdef"[std::to_integer<int>(x) & 15];
  }
  return out;
}

class bundle_files final : public checkpoint_files {
public:
  bundle_files() = default;
  explicit bundle_files(const encoded& e) {
    for (const auto& f : e.files) {
      auto& file = all[f.suffix];
      for (const auto piece : f.pieces) file.insert(file.end(), piece.begin(), piece.end());
    }
  }
  file_problem open(std::string_view suffix, std::span<const std::byte>& out) override {
    const auto found = all.find(std::string(suffix));
    if (found == all.end()) return {ENOENT, "open", "model" + std::string(suffix)};
    out = found->second;
    return {};
  }

  std::map<std::string, file_bytes> all;
};

inline const record* find(const snapshot& s, std::string_view name) {
  for (const auto& r : s.records)
    if (r.name == name) return &r;
  return nullptr;
}
template <class T>
std::vector<T> values(const snapshot& s, std::string_view name) {
  const record* r = find(s, name);
  REQUIRE_MESSAGE(r != nullptr, name);
  std::vector<T> out(r->bytes.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), r->bytes.data(), r->bytes.size());
  return out;
}
}  // namespace bundle_test
