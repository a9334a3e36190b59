// This header lets one process at a time write into a directory: two processes that train into one would delete each
// other's checkpoints.
#pragma once
#include <optional>
#include <string>
#include <string_view>

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

private:
  any_file_system fs_;
  any_file_system::handle handle_{};
  bool held_ = false;
  long process_ = 0;
};
}  // namespace detail

// Locks `directory` as long as this object lives, whatever path leads there. The lock of a process that is killed ends
// with it, and a forked child never has it (see lock_table.hpp). The lock file stays. Where the file cannot be locked
// (some network disks, a directory that is not writable), the object locks nothing and reports nothing; in a directory
// that is not writable, later writes fail by themselves. Raises failed_precondition if another process has the lock, or
// another object of this one.
template <file_system F>
class directory_lock : public detail::held_directory {
public:
  directory_lock(const F& fs, std::string_view directory) : held_directory(fs, directory) {}
};

// Creates the directory and locks it, where the file system can.
template <file_system F>
void hold_directory(std::optional<directory_lock<F>>& lock, const F& fs, const std::string& directory) {
  const any_file_system any = fs;
  if (!any.locks()) return;
  make_directories(any, directory);
  lock.emplace(fs, directory);
}

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "directory_lock.ipp"
#endif
