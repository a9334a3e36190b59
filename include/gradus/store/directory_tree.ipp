// The bodies of directory_tree.hpp.
#pragma once
#include "../base/body.hpp"
#include "directory_tree.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY staged_directory::staged_directory(any_file_system fs, std::string path) : fs_(std::move(fs)) {
  const std::string above = directory_of(path);
  make_directories(fs_, above);
  std::vector<std::string> names;
  if (uninterrupted([&] { return fs_.list(above, names); }) == 0)
    clear_temporaries(fs_, above, names, [&](std::string_view marked, const std::string&) {
      return is_temporary(marked) && !remove_tree(fs_, join_path(above, std::string(marked)));
    });
  for (int tries = 0;; ++tries) {
    std::string name = temporary_name(path, fresh_number());
    if (fs_.claims())
      if (const file_problem p = mark_.create(fs_, name)) raise(p);
    const int e = uninterrupted([&] { return fs_.make_directory(name); });
    if (e != 0) mark_.discard(fs_);
    if (e == EEXIST && tries < 100) continue;
    if (e != 0) raise({e, "create the directory", std::move(name)});
    name_ = std::move(name);
    return;
  }
}

GRADUS_BODY staged_directory::~staged_directory() {
  if (!name_.empty()) static_cast<void>(remove_tree(fs_, name_));
  mark_.discard(fs_);
}

GRADUS_BODY std::string staged_directory::place_for(const std::string& file) {
  std::string path = join_path(name_, file);
  make_directories(fs_, directory_of(path));
  return path;
}

GRADUS_BODY void staged_directory::write(const std::string& file, byte_pieces pieces) {
  publish(fs_, place_for(file), pieces);
}

GRADUS_BODY void staged_directory::write(const std::string& file, std::span<const std::byte> bytes) {
  write(file, byte_pieces(&bytes, 1));
}

GRADUS_BODY bool staged_directory::reveal(const std::string& path) {
  // A rename would replace an empty directory, so this checks first; it never replaces one that is not empty.
  if (uninterrupted([&] { return fs_.exists(path); }) == 0) return false;
  const int e = uninterrupted([&] { return fs_.rename(name_, path); });
  if (e == EEXIST || e == ENOTEMPTY || e == ENOTDIR) return false;
  if (e != 0) raise({e, "rename", name_});
  name_.clear();
  mark_.discard(fs_);
  const std::string above = directory_of(path);
  if (const int synced = uninterrupted([&] { return fs_.sync_directory(above); }); synced != 0)
    raise({synced, "sync the directory", above, true});
  return true;
}

GRADUS_BODY file_problem remove_tree(const any_file_system& fs, const std::string& path) {
  // `remove` removes a link to a directory, so nothing outside of the tree is ever listed.
  const int e = uninterrupted([&] { return fs.remove(path); });
  if (e == 0 || e == ENOENT) return {};
  if (e != EISDIR && e != EPERM) return {e, "remove", path};
  std::vector<std::string> names;
  if (const int listed = uninterrupted([&] { return fs.list(path, names); }); listed != 0)
    return {listed == ENOTDIR ? e : listed, "remove", path};
  for (const std::string& name : names)
    if (const file_problem p = remove_tree(fs, join_path(path, name))) return p;
  if (!fs.can_remove_directories()) return {};
  const int removed = uninterrupted([&] { return fs.remove_directory(path); });
  if (removed != 0 && removed != ENOENT) return {removed, "remove the directory", path};
  return {};
}

}  // namespace gradus::detail
