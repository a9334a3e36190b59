// Tags are the names of curves in TensorBoard. '/' makes groups; the part before the first one is the card's title.
#pragma once
#include "../base/build.hpp"

#include <cstddef>
#include <string>
#include <string_view>

#include "../base/error.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// Returns the length of the well-formed UTF-8 character that begins at s[i]; 0 if none does (RFC 3629: no overlong
// forms, no surrogates, nothing past U+10FFFF).
constexpr std::size_t utf8_length(std::string_view s, std::size_t i) {
  const auto at = [&](std::size_t k) { return i + k < s.size() ? static_cast<unsigned char>(s[i + k]) : 0u; };
  const auto follows = [&](std::size_t k) { return (at(k) & 0xC0u) == 0x80u; };
  const unsigned first = at(0);
  if (first < 0x80) return 1;
  if (first < 0xC2) return 0;
  if (first < 0xE0) return follows(1) ? 2 : 0;
  if (first < 0xF0) {
    if ((first == 0xE0 && at(1) < 0xA0) || (first == 0xED && at(1) > 0x9F)) return 0;
    return follows(1) && follows(2) ? 3 : 0;
  }
  if (first > 0xF4 || (first == 0xF0 && at(1) < 0x90) || (first == 0xF4 && at(1) > 0x8F)) return 0;
  return follows(1) && follows(2) && follows(3) ? 4 : 0;
}
constexpr bool is_utf8(std::string_view s) {
  for (std::size_t i = 0; i < s.size();) {
    const std::size_t n = utf8_length(s, i);
    if (n == 0) return false;
    i += n;
  }
  return true;
}
}  // namespace detail

// Turns a name into a valid tag, as tf.summary.* do: ASCII characters other than letters, digits and -/_. become '_',
// leading slashes are removed. Characters beyond ASCII stay (TensorFlow keeps the letters among them), bytes that are
// not UTF-8 become '_': a protobuf string must be UTF-8, and one wrong byte would cost the reader the whole event.
std::string clean_tag(std::string_view name);

// Returns the text with '_' in place of each byte that is not UTF-8, for texts that are only shown, such as paths.
std::string utf8_text(std::string_view s);

// Returns the tag of a summary called `name` under a name scope: scope/name, and with a family
// family/scope/family/name, so that a family is one group in TensorBoard whatever scope its members come from. The
// scope must already be unique.
std::string summary_tag(std::string_view name, std::string_view scope = {}, std::string_view family = {});

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "tag.ipp"
#endif
