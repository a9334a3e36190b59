// The bodies of directory_lock.hpp.
#pragma once
#include "../base/body.hpp"
#include "directory_lock.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY long this_process() {
#if defined(__unix__) || defined(__APPLE__)
  return static_cast<long>(::getpid());
#else
  return 0;
#endif
}

GRADUS_BODY held_directory::held_directory(any_file_system fs, std::string_view directory) : fs_(std::move(fs)) {
  if (!fs_.locks()) return;
  const std::string path = join_path(directory, directory_lock_name);
  long owner = 0;
  const int e = uninterrupted([&] { return fs_.lock(path, handle_, owner); });
  if (e == EAGAIN && owner == this_process())
    raise(status::failed_precondition,
          text("expected to be the only one that writes into \"", directory, "\", but this process (", owner,
               ") does already (it holds ", path, "); end that training first, or choose another directory"));
  if (e == EAGAIN)
    raise(status::failed_precondition,
          text("expected to be the only process that writes into \"", directory, "\", but ",
               owner > 0 ? text("process ", owner) : std::string("another one"), " does (it holds ", path,
               "); stop that one, or choose another directory"));
  held_ = e == 0;
  process_ = this_process();
}

GRADUS_BODY held_directory::~held_directory() {
  // In a forked child the descriptor is closed already, and its number may belong to another file.
  if (held_ && process_ == this_process()) fs_.unlock(handle_);
}

}  // namespace gradus::detail
