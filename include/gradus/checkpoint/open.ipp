// The bodies of open.hpp.
#pragma once
#include "../base/body.hpp"
#include "open.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::optional<std::string> stem_of(std::string_view path, std::string_view extension) {
  if (!path.ends_with(extension)) return std::nullopt;
  return std::string(path.substr(0, path.size() - extension.size()));
}

}  // namespace gradus::detail
