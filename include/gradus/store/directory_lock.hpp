// One process at a time writes into a directory: two that train into one would delete each other's checkpoints.
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

// Holds `directory` as long as it lives, whatever path leads there; a process that is killed holds nothing any more,
// and a forked child never does (lock_table.hpp says how). The file stays. Where locks are not to be had (some network
// disks, a directory that cannot be written) it holds nothing and reports nothing: a write there fails by itself.
// Error: failed_precondition if another process holds it, or another lock of this one.
template <file_system F>
class directory_lock : public detail::held_directory {
public:
  directory_lock(const F& fs, std::string_view directory) : held_directory(fs, directory) {}
};

// Makes the directory and holds it, where the file system can.
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
