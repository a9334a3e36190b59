// This header handles directories with all their files: exports, which are written as a whole, get their name at once,
// and are removed when newer ones exist.
#pragma once
#include "../base/build.hpp"

#include <span>
#include <string>
#include <vector>

#include "file.hpp"
#include "temporary.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// A directory under a temporary name. Its files are written and synced one by one in "<path>.gradus-tmp-<number>";
// `reveal` renames that. No reader takes a temporary name for an export. A claimed temporary file of that name marks
// the directory's writer as alive: what a killed process left is removed by the next staged_directory beside it, where
// the file system has claims (temporary.hpp).
class staged_directory {
public:
  staged_directory(any_file_system fs, std::string path);
  staged_directory(const staged_directory&) = delete;
  staged_directory& operator=(const staged_directory&) = delete;
  // Removes a tree that was not revealed.
  ~staged_directory();

  // Returns the present path of a file in it, before `reveal`. Directories above the file are created.
  std::string place_for(const std::string& file);
  void write(const std::string& file, byte_pieces pieces);
  void write(const std::string& file, std::span<const std::byte> bytes);
  // Renames the directory to `path`, which is its own name or another one beside it. Returns false if that name is
  // taken; the directory then stays as it was. Nothing is ever replaced.
  bool reveal(const std::string& path);

private:
  any_file_system fs_;
  std::string name_;     // empty: it is revealed
  temporary_file mark_;  // says that its writer is alive
};

// Removes a directory and all that is in it; links are removed, not followed. If the directory does not exist, that is
// no error. Where a file system cannot remove directories, they stay, empty.
file_problem remove_tree(const any_file_system& fs, const std::string& path);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "directory_tree.ipp"
#endif
