// The bodies of tag.hpp.
#pragma once
#include <algorithm>

#include "../base/body.hpp"
#include "tag.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::string utf8_text(std::string_view s) {
  std::string out;
  for (std::size_t i = 0; i < s.size();) {
    const std::size_t n = detail::utf8_length(s, i);
    if (n == 0)
      out += '_';
    else
      out += s.substr(i, n);
    i += std::max<std::size_t>(n, 1);
  }
  return out;
}

GRADUS_BODY std::string clean_tag(std::string_view name) {
  std::string out;
  for (std::size_t i = 0; i < name.size();) {
    const std::size_t n = detail::utf8_length(name, i);
    const char c = name[i];
    const bool keep = n > 1 || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' ||
                      c == '/' || c == '_' || c == '.';
    if (n != 0 && keep)
      out += name.substr(i, n);
    else
      out += '_';
    i += n == 0 ? 1 : n;
  }
  out.erase(0, out.find_first_not_of('/') == std::string::npos ? out.size() : out.find_first_not_of('/'));
  return out;
}

GRADUS_BODY std::string summary_tag(std::string_view name, std::string_view scope, std::string_view family) {
  const std::string f = clean_tag(family);
  std::string tag;
  if (!f.empty()) tag += f + "/";
  if (!scope.empty()) tag += text(scope, scope.ends_with('/') ? "" : "/");
  if (!f.empty()) tag += f + "/";
  return tag + clean_tag(name);
}

}  // namespace gradus
