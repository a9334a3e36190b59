// This header lets one process at a time write into a directory: two processes that train into one would delete each
// other's checkpoints.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "file.hpp"

namespace gradus::inline GRADUS_BUILD {

inline constexpr std::string_view directory_lock_name = ".gradus-lock";

namespace detail {
long this_process();
}  // namespace detail

namespace detail {
// A directory_lock whose file system is type-erased.
class held_directory {
public:
  held_directory(any_file_system fs, std::string_view directory);
  held_directory(const held_directory&) = delete;
  held_directory& operator=(const held_directory&) = delete;
  ~held_directory();
  bool held() const { return held_; }

  // Call this before each save: a directory that was removed, or moved away, and made again has another lock file,
  // which is locked now. Returns how often that has happened. Raises failed_precondition if another process, or another
  // object of this one, holds the new file. Where the path leads to no directory, nothing changes, and the save fails.
  // Any thread may call it.
  std::int64_t renew();
  // Returns true if it is this directory that is locked, by whatever path.
  bool is_of(std::string_view directory) const;

private:
  any_file_system fs_;
  std::string directory_;
  any_file_system::handle handle_{};
  bool held_ = false;
  long process_ = 0;
  mutable std::mutex renewing_;
  std::int64_t renewed_ = 0;

  std::string path() const { return join_path(directory_, directory_lock_name); }
  // Locks the file at the path; returns false where that cannot be done and need not be.
  bool lock(any_file_system::handle& h) const;
};

// The directories that one owner has locked for everything that saves there, as a session for its hooks.
class held_directories {
public:
  // Locks the directory, unless this owner has it already. Returns null where the file system has no locks.
  std::shared_ptr<held_directory> hold(const any_file_system& fs, const std::string& directory);
  // Takes over a lock that the owner's caller has.
  void add(std::shared_ptr<held_directory> lock);
  void release() { all_.clear(); }

private:
  std::vector<std::shared_ptr<held_directory>> all_;
};
}  // namespace detail

// Locks `directory` as long as this object lives, whatever path leads there. The lock of a process that is killed ends
// with it, and a forked child never has it (see lock_table.hpp). The lock file stays; if it is another user's, it is
// locked through a descriptor that only reads. Where no file can be locked (some network disks) or nothing can be
// written in the directory, the object locks nothing and reports nothing; in a directory that is not writable, later
// writes fail by themselves. Raises failed_precondition if another process has the lock, or another object of this one,
// and permission_denied if the lock file may not be opened though files can be written beside it.
template <file_system F>
class directory_lock : public detail::held_directory {
public:
  directory_lock(const F& fs, std::string_view directory) : held_directory(fs, directory) {}
};

// Creates the directory and locks it. Returns null where the file system has no locks.
std::shared_ptr<detail::held_directory> hold_directory(const any_file_system& fs, const std::string& directory);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "directory_lock.ipp"
#endif
