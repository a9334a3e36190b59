// The bodies of text_lines.hpp.
#pragma once
#include "../base/body.hpp"
#include "text_lines.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY text_lines::text_lines(std::vector<std::byte> bytes, std::string name, const reader_limits& limits)
    : name_(std::move(name)),
      limits_(limits),
      bytes_(std::move(bytes)),
      rest_(reinterpret_cast<const char*>(bytes_.data()), bytes_.size()) {}

GRADUS_BODY bool text_lines::next(std::string_view& line) {
  if (rest_.empty()) return false;
  const auto end = rest_.find('\n');
  line = rest_.substr(0, end);
  if (line.size() > limits_.record_bytes)
    raise(status::resource_exhausted,
          text('"', name_, "\": ", detail::record_too_long(text("line ", taken_ + 1), line.size(), limits_)));
  rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  ++taken_;
  return true;
}

}  // namespace gradus
