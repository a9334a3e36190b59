// One process at a time writes into a directory: two that train into one would delete each other's checkpoints.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "file.hpp"

namespace gradus {

// A file system that can keep a file for one process; those that cannot lock nothing.
template <class F>
concept locks_files =
    file_system<F> && requires(const F& fs, const std::string& path, typename F::handle& h, long& owner) {
      { fs.lock(path, h, owner) } -> std::same_as<int>;
    };

inline constexpr std::string_view directory_lock_name = ".gradus-lock";

// Holds `directory` as long as it lives; a process that is killed holds nothing any more. The file stays. Where locks
// are not to be had (some network disks, a directory that cannot be written) it holds nothing and says nothing: what is
// written there fails by itself.
// Error: failed_precondition if another process holds it.
template <file_system F>
class directory_lock {
public:
  directory_lock(const F& fs, std::string_view directory) : fs_(fs) {
    if constexpr (locks_files<F>) {
      const std::string path = join_path(directory, directory_lock_name);
      long owner = 0;
      const int e = detail::uninterrupted([&] { return fs_.lock(path, handle_, owner); });
      if (e == EAGAIN)
        raise(status::failed_precondition,
              text("expected to be the only process that writes into \"", directory, "\", but process ", owner,
                   " does (it holds ", path, "); stop that one, or choose another directory"));
      held_ = e == 0;
    }
  }
  directory_lock(const directory_lock&) = delete;
  directory_lock& operator=(const directory_lock&) = delete;
  ~directory_lock() {
    if (held_) fs_.close(handle_);
  }
  bool held() const { return held_; }

private:
  F fs_;
  typename F::handle handle_{};
  bool held_ = false;
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
