// The bodies of file_system.hpp.
#pragma once
#include "../base/body.hpp"
#include "file_system.hpp"
#include "lock_table.hpp"

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

#if defined(__unix__) || defined(__APPLE__)
GRADUS_BODY int posix::open_read(const std::string& path, int& h, std::uint64_t& size) const {
  // O_NONBLOCK: a pipe that was put in place of the file must not block this process.
  if (const int e = opened(h = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)); e != 0) return e;
  struct stat s {};
  int e = ::fstat(h, &s) != 0 ? errno : S_ISDIR(s.st_mode) ? EISDIR : S_ISREG(s.st_mode) ? 0 : EINVAL;
  size = static_cast<std::uint64_t>(s.st_size);
  if (e != 0) ::close(h);
  return e;
}

GRADUS_BODY int posix::map(const std::string& path, std::span<const std::byte>& bytes) const {
  int h = -1;
  std::uint64_t size = 0;
  if (const int e = open_read(path, h, size); e != 0) return e;
  void* at = ::mmap(nullptr, static_cast<std::size_t>(size), PROT_READ, MAP_PRIVATE, h, 0);
  const int e = at == MAP_FAILED ? errno : 0;
  ::close(h);
  if (e == 0) bytes = {static_cast<const std::byte*>(at), static_cast<std::size_t>(size)};
  return e;
}

GRADUS_BODY int posix::lock(const std::string& path, int& h, long& owner) const {
  bool writes = true;
  owner = 0;
  detail::lock_table::without_forks table;
  if (const int e = open_to_lock(path, h, writes); e != 0) return e;
  int e = EINVAL;
  bool names_owner = true;
#if defined(F_OFD_SETLK)
  // The kernel refuses a lock for writing through a file that is open for reading. A lock for reading excludes those
  // that write the file; `claim` then excludes those that read it as well.
  struct flock whole {};
  whole.l_type = writes ? F_WRLCK : F_RDLCK, whole.l_whence = SEEK_SET;
  e = done(::fcntl(h, F_OFD_SETLK, &whole));
  if (e == EACCES) e = EAGAIN;
  if (e == EAGAIN && ::fcntl(h, F_OFD_GETLK, &whole) == 0) {
    // The kernel reports the process that has a lock of fcntl's older kind (gradus 0.5.0).
    if (whole.l_type != F_UNLCK && whole.l_pid > 0) owner = static_cast<long>(whole.l_pid);
    names_owner = whole.l_type != F_RDLCK;  // an owner that may only read the file has not written its number
  }
  if (e == 0 && !writes) {
    e = claim(h), names_owner = false;
    if (e != 0 && e != EAGAIN) e = EACCES;  // on network disks only a file that is open for writing can be claimed
  }
#endif
  if (e == EINVAL) e = claim(h);  // a kernel without these locks
  char said[24] = {};
  if (e == EAGAIN && owner == 0 && names_owner && ::pread(h, said, sizeof said - 1, 0) > 0)
    owner = std::strtol(said, nullptr, 10);
  if (e != 0) {
    ::close(h);
    return e;
  }
  table.add(h);
  // The holder's process number serves the error messages of others: nothing depends on it.
  const int length = std::snprintf(said, sizeof said, "%ld\n", static_cast<long>(::getpid()));
  if (!writes || ::ftruncate(h, 0) != 0 || ::pwrite(h, said, static_cast<std::size_t>(length), 0) != length) return 0;
  return 0;
}

GRADUS_BODY int posix::locked_at(const std::string& path, int h) const {
  struct stat mine {};
  struct stat there {};
  if (::fstat(h, &mine) != 0) return errno;
  if (::stat(path.c_str(), &there) != 0) return errno == ENOTDIR ? ENOENT : errno;
  return mine.st_dev == there.st_dev && mine.st_ino == there.st_ino ? 0 : ESTALE;
}

GRADUS_BODY void posix::unlock(int h) const {
  detail::lock_table::without_forks table;
  table.remove(h);
  ::close(h);
}

GRADUS_BODY int posix::sync_directory(const std::string& path) const {
  const int h = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (h < 0) return errno;
  const int e = done(::fsync(h));
  ::close(h);
  return e == EINVAL ? 0 : e;  // EINVAL: this file system cannot sync a directory and need not
}

GRADUS_BODY int posix::list(const std::string& path, std::vector<std::string>& names) const {
  DIR* directory = ::opendir(path.c_str());
  if (directory == nullptr) return errno;
  struct closer {
    DIR* directory;
    ~closer() { ::closedir(directory); }
  } const close_at_end{directory};
  names.clear();
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(directory);
    if (entry == nullptr) return errno;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
}

GRADUS_BODY int posix::open_to_lock(const std::string& path, int& h, bool& writes) {
  const int e = opened(h = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (e != EACCES && e != EPERM) return e;
  // Where everybody may write, Linux lets nobody "create" another's file that exists (fs.protected_regular).
  if (opened(h = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK)) == 0) return 0;
  if (::faccessat(AT_FDCWD, directory_of(path).c_str(), W_OK | X_OK, AT_EACCESS) != 0) return EROFS;
  writes = false;
  return opened(h = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) == 0 ? 0 : e;
}
#endif

}  // namespace gradus
