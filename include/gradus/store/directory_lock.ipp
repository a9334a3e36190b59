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

GRADUS_BODY std::string without_last_slashes(std::string_view directory) {
  while (directory.size() > 1 && directory.back() == '/') directory.remove_suffix(1);
  return std::string(directory);
}

GRADUS_BODY bool held_directory::lock(any_file_system::handle& h) const {
  const std::string file = path();
  long owner = 0;
  const int e = uninterrupted([&] { return fs_.lock(file, h, owner); });
  const std::string_view again =
      held_ ? "; the directory that this training had locked was removed or moved away meanwhile, and made again" : "";
  if (e == EAGAIN && owner == this_process())
    raise(status::failed_precondition,
          text("expected to be the only one that writes into \"", directory_, "\", but this process (", owner,
               ") does already (it holds ", file, "); end that training first, or choose another directory", again));
  if (e == EAGAIN)
    raise(status::failed_precondition,
          text("expected to be the only process that writes into \"", directory_, "\", but ",
               owner > 0 ? text("process ", owner) : std::string("another one"), " does (it holds ", file,
               "); stop that one, or choose another directory", again));
  if (e == EACCES || e == EPERM)
    raise(status::permission_denied,
          text("expected to lock ", file, ", so that no other process writes into \"", directory_,
               "\" meanwhile, but this user may not (", std::strerror(e),
               "): let this user write that file, remove it while nobody trains there, or choose another directory"));
  if (e == EMFILE || e == ENFILE) raise({e, "open", file});
  return e == 0;
}

GRADUS_BODY held_directory::held_directory(any_file_system fs, std::string_view directory)
    : fs_(std::move(fs)), directory_(without_last_slashes(directory)) {
  if (!fs_.locks()) return;
  held_ = lock(handle_);
  process_ = this_process();
}

GRADUS_BODY std::int64_t held_directory::renew() {
  const std::lock_guard alone(renewing_);
  if (!held_ || !fs_.checks() || process_ != this_process()) return renewed_;
  const int e = uninterrupted([&] { return fs_.locked_at(path(), handle_); });
  if (e != ENOENT && e != ESTALE) return renewed_;  // the same file, or a disk that cannot tell
  any_file_system::handle fresh{};
  if (!lock(fresh)) return renewed_;
  fs_.unlock(handle_);
  handle_ = fresh;
  return ++renewed_;
}

GRADUS_BODY bool held_directory::is_of(std::string_view directory) const {
  if (without_last_slashes(directory) == directory_) return true;
  const std::lock_guard alone(renewing_);
  return held_ && fs_.checks() && fs_.locked_at(join_path(directory, directory_lock_name), handle_) == 0;
}

GRADUS_BODY held_directory::~held_directory() {
  // In a forked child the descriptor is closed already, and its number may belong to another file.
  if (held_ && process_ == this_process()) fs_.unlock(handle_);
}

GRADUS_BODY std::shared_ptr<held_directory> held_directories::hold(const any_file_system& fs,
                                                                   const std::string& directory) {
  for (const auto& known : all_)
    if (known->is_of(directory)) return known;
  auto made = hold_directory(fs, directory);
  add(made);
  return made;
}
GRADUS_BODY void held_directories::add(std::shared_ptr<held_directory> lock) {
  if (lock != nullptr) all_.push_back(std::move(lock));
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::shared_ptr<detail::held_directory> hold_directory(const any_file_system& fs,
                                                                   const std::string& directory) {
  if (!fs.locks()) return nullptr;
  make_directories(fs, directory);
  return std::make_shared<detail::held_directory>(fs, directory);
}

}  // namespace gradus
