// One process at a time writes into a directory: two that train into one would delete each other's checkpoints.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "file.hpp"

namespace gradus::inline GRADUS_BUILD {

// A file system that can keep a file for one process; those that cannot lock nothing.
template <class F>
concept locks_files =
    file_system<F> && requires(const F& fs, const std::string& path, typename F::handle& h, long& owner) {
      { fs.lock(path, h, owner) } -> std::same_as<int>;
    };

inline constexpr std::string_view directory_lock_name = ".gradus-lock";

namespace detail {
long this_process();
}  // namespace detail

// Holds `directory` as long as it lives, whatever path leads there; a process that is killed holds nothing any more,
// and a forked child never does (lock_table.hpp says how). The file stays. Where locks are not to be had (some network
// disks, a directory that cannot be written) it holds nothing and says nothing: what is written there fails by itself.
// Error: failed_precondition if another process holds it, or another lock of this one.
template <file_system F>
class directory_lock {
public:
  directory_lock(const F& fs, std::string_view directory) : fs_(fs) {
    if constexpr (locks_files<F>) {
      const std::string path = join_path(directory, directory_lock_name);
      long owner = 0;
      const int e = detail::uninterrupted([&] { return fs_.lock(path, handle_, owner); });
      if (e == EAGAIN && owner == detail::this_process())
        raise(status::failed_precondition,
              text("expected to be the only one that writes into \"", directory, "\", but this process (", owner,
                   ") does already (it holds ", path, "); end that training first, or choose another directory"));
      if (e == EAGAIN)
        raise(status::failed_precondition,
              text("expected to be the only process that writes into \"", directory, "\", but ",
                   owner > 0 ? text("process ", owner) : std::string("another one"), " does (it holds ", path,
                   "); stop that one, or choose another directory"));
      held_ = e == 0;
      process_ = detail::this_process();
    }
  }
  directory_lock(const directory_lock&) = delete;
  directory_lock& operator=(const directory_lock&) = delete;
  ~directory_lock() {
    // In a forked child the descriptor is closed, and its number may be another file's.
    if (!held_ || process_ != detail::this_process()) return;
    if constexpr (requires(const F& fs, typename F::handle h) { fs.unlock(h); })
      fs_.unlock(handle_);
    else
      fs_.close(handle_);
  }
  bool held() const { return held_; }

private:
  F fs_;
  typename F::handle handle_{};
  bool held_ = false;
  long process_ = 0;
};

// Makes the directory and holds it, where the file system can.
template <file_system F>
void hold_directory(std::optional<directory_lock<F>>& lock, const F& fs, const std::string& directory) {
  if constexpr (locks_files<F>) {
    make_directories(fs, directory);
    lock.emplace(fs, directory);
  }
}

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "directory_lock.ipp"
#endif
