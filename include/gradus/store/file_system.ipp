// The bodies of file_system.hpp.
#pragma once
#include "../base/body.hpp"
#include "file_system.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::string directory_of(std::string_view path) {
  const auto slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return std::string(slash == 0 ? path.substr(0, 1) : path.substr(0, slash));
}

GRADUS_BODY std::string join_path(std::string_view directory, std::string_view name) {
  if (directory.empty() || directory == "." || name.starts_with('/')) return std::string(name);
  return directory.ends_with('/') ? text(directory, name) : text(directory, '/', name);
}

GRADUS_BODY bool is_temporary(std::string_view name) {
  const auto at = name.rfind(temporary_mark);
  if (at == std::string_view::npos || at + temporary_mark.size() == name.size()) return false;
  return name.find_first_not_of("0123456789", at + temporary_mark.size()) == std::string_view::npos;
}

GRADUS_BODY std::string_view name_of_temporary(std::string_view temporary) {
  return temporary.substr(0, temporary.rfind(temporary_mark));
}

}  // namespace gradus
