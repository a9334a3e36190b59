// This header defines file systems, and has that of the operating system. A file system is a policy: its operations are
// those of the kernel, and each returns 0 or an errno value, so that a test can replace the disk
// (testing/faulty_files.hpp). file.hpp builds on them.
#pragma once
#include "../base/build.hpp"

#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../base/contract.hpp"
#include "../base/error.hpp"
#if defined(__unix__) || defined(__APPLE__)
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace gradus::inline GRADUS_BUILD {

std::string directory_of(std::string_view path);

// Every operation returns 0 or an errno value and does no more than its system call: it may be interrupted (EINTR), and
// a write may be short. Copies of a file system are the same file system.
template <class F>
concept file_system = std::same_as<typename F::policy_for, kind::file_system> && std::copyable<F> &&
                      requires(const F& fs, const std::string& path, typename F::handle& opened, typename F::handle h,
                               std::span<const std::byte> from, std::span<std::byte> into, std::size_t& moved,
                               std::uint64_t& bytes, std::vector<std::string>& names) {
                        { fs.create(path, opened) } -> std::same_as<int>;       // must be new: EEXIST, even for a link
                        { fs.open_append(path, opened) } -> std::same_as<int>;  // created if missing
                        { fs.open_read(path, opened, bytes) } -> std::same_as<int>;  // a regular file, and its size
                        { fs.write(h, from, moved) } -> std::same_as<int>;
                        { fs.read(h, into, moved) } -> std::same_as<int>;  // moved == 0 at the end
                        { fs.sync(h) } -> std::same_as<int>;
                        { fs.close(h) } -> std::same_as<int>;  // the handle is gone whatever is returned
                        { fs.rename(path, path) } -> std::same_as<int>;
                        { fs.remove(path) } -> std::same_as<int>;
                        { fs.exists(path) } -> std::same_as<int>;
                        { fs.make_directory(path) } -> std::same_as<int>;
                        { fs.sync_directory(path) } -> std::same_as<int>;
                        { fs.list(path, names) } -> std::same_as<int>;  // names without the directory, in any order
                      };

// A file system that can tell whether a process is writing a file at this moment. A claim belongs to the handle: it
// ends when the handle is closed or its process ends, however it ends.
template <class F>
concept claims_files =
    file_system<F> && requires(const F& fs, const std::string& path, typename F::handle& opened, typename F::handle h) {
      { fs.claim(h) } -> std::same_as<int>;                     // EAGAIN: another handle has it
      { fs.open_to_claim(path, opened) } -> std::same_as<int>;  // a file that exists; never through a link
    };

// A file system whose files can be read from any byte on. In others a reader reads and discards the bytes before.
template <class F>
concept seeks_files = file_system<F> && requires(const F& fs, typename F::handle h, std::uint64_t offset) {
  { fs.seek(h, offset) } -> std::same_as<int>;
};

// A file system that can map a file's bytes into memory without reading them. `map` refuses a file that it cannot map
// (with any errno), and the file is then read.
template <class F>
concept maps_files = file_system<F> && requires(const F& fs, const std::string& path, std::span<const std::byte>& b) {
  { fs.map(path, b) } -> std::same_as<int>;
  { fs.unmap(b) };
};

// A file system that can begin to write to the disk the bytes that were just written to the file: for large files, sync
// then need not wait for all of them.
template <class F>
concept writes_behind_files =
    file_system<F> && requires(const F& fs, typename F::handle h, std::size_t bytes) { fs.write_behind(h, bytes); };

// A file system whose files can be written again from byte 0 on: their length and the bytes that are not written stay.
template <class F>
concept rewinds_files = file_system<F> && requires(const F& fs, typename F::handle h) {
  { fs.rewind(h) } -> std::same_as<int>;  // of a file that this handle has created
};

// A file system that can lock a file for one process (store/directory_lock.hpp). In those that cannot, nothing is
// locked.
template <class F>
concept locks_files =
    file_system<F> && requires(const F& fs, const std::string& path, typename F::handle& h, long& owner) {
      { fs.lock(path, h, owner) } -> std::same_as<int>;
    };

// One that can also tell whether the locked file is still the one at its path: a directory may be moved away, or
// removed and made again, while it is locked. In those that cannot, a lock is taken to be where it was.
template <class F>
concept checks_locks = locks_files<F> && requires(const F& fs, const std::string& path, typename F::handle h) {
  { fs.locked_at(path, h) } -> std::same_as<int>;  // ESTALE: another file is there; ENOENT: none
};

// A file system that can remove an empty directory (store/directory_tree.hpp).
template <class F>
concept removes_directories = file_system<F> && requires(const F& fs, const std::string& path) {
  { fs.remove_directory(path) } -> std::same_as<int>;
};

#if defined(__unix__) || defined(__APPLE__)
// Reads and writes files through the operating system.
struct posix {
  using policy_for = kind::file_system;
  using handle = int;

  int create(const std::string& path, int& h) const {
    return opened(h = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  }
  int open_append(const std::string& path, int& h) const {
    return opened(h = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  }
  int open_read(const std::string& path, int& h, std::uint64_t& size) const;
  // Maps the file's bytes into memory (store/file_bytes.hpp). An empty file cannot be mapped: EINVAL.
  int map(const std::string& path, std::span<const std::byte>& bytes) const;
  void unmap(std::span<const std::byte> bytes) const { ::munmap(const_cast<std::byte*>(bytes.data()), bytes.size()); }
  int write(int h, std::span<const std::byte> from, std::size_t& moved) const {
    return counted(::write(h, from.data(), from.size()), moved);
  }
#if defined(SYNC_FILE_RANGE_WRITE)
  // A hint: nothing depends on its success.
  void write_behind(int h, std::size_t bytes) const {
    const auto end = ::lseek(h, 0, SEEK_CUR), n = static_cast<off_t>(bytes);
    if (end >= n) ::sync_file_range(h, end - n, n, SYNC_FILE_RANGE_WRITE);
  }
#endif
  int read(int h, std::span<std::byte> into, std::size_t& moved) const {
    return counted(::read(h, into.data(), into.size()), moved);
  }
  // Sets the byte at which the next read begins.
  int seek(int h, std::uint64_t offset) const {
    return ::lseek(h, static_cast<off_t>(offset), SEEK_SET) < 0 ? errno : 0;
  }
  // Sets the byte at which the next write begins.
  int rewind(int h) const { return seek(h, 0); }
  int sync(int h) const {
#if defined(F_FULLFSYNC)
    if (::fcntl(h, F_FULLFSYNC) == 0) return 0;  // macOS: fsync stops at the drive's cache
#endif
    return done(::fsync(h));
  }
  int close(int h) const { return done(::close(h)); }
  int rename(const std::string& from, const std::string& to) const {
    return done(std::rename(from.c_str(), to.c_str()));
  }
  int remove(const std::string& path) const { return done(::unlink(path.c_str())); }
  // Opens the file, creates it if missing, and locks it for this handle alone until `unlock` or the end of the process,
  // however it ends. Returns EAGAIN if another handle has the lock, in this process or another; `owner` is then that
  // process, or 0. Returns EROFS if nothing can be written in the file's directory, and EACCES or EPERM if the file is
  // another user's and may not be locked by this one. A forked child does not inherit the lock (lock_table.hpp).
  int lock(const std::string& path, int& h, long& owner) const;
  // Returns 0 if the locked file is the one at `path`, ESTALE if another one is there, ENOENT if none is.
  int locked_at(const std::string& path, int h) const;
  void unlock(int h) const;
  int claim(int h) const {
    const int e = done(::flock(h, LOCK_EX | LOCK_NB));
    return e == EWOULDBLOCK ? EAGAIN : e;
  }
  int open_to_claim(const std::string& path, int& h) const {
    return opened(h = ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  }
  int exists(const std::string& path) const {
    struct stat s {};
    return done(::stat(path.c_str(), &s));
  }
  int make_directory(const std::string& path) const { return done(::mkdir(path.c_str(), 0777)); }
  int remove_directory(const std::string& path) const { return done(::rmdir(path.c_str())); }
  int sync_directory(const std::string& path) const;
  int list(const std::string& path, std::vector<std::string>& names) const;

private:
  // Opens a lock file for writing, or else for reading: it may belong to another user.
  static int open_to_lock(const std::string& path, int& h, bool& writes);
  static int done(int result) { return result == 0 ? 0 : errno; }
  static int opened(int h) { return h >= 0 ? 0 : errno; }
  static int counted(ssize_t n, std::size_t& moved) {
    moved = n < 0 ? 0 : static_cast<std::size_t>(n);
    return n < 0 ? errno : 0;
  }
};
static_assert(file_system<posix>);
#else
struct posix;  // there is no such file system on this machine; supply another
#endif

// --- paths ---

inline std::string_view file_name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }
std::string join_path(std::string_view directory, std::string_view name);

// temporary_name returns a name that a temporary of `path` may have, and is_temporary tells whether a name is one: a
// process that was killed leaves such files behind, and the owner of the directory removes them (store/temporary.hpp).
inline constexpr std::string_view temporary_mark = ".gradus-tmp-";
inline std::string temporary_name(std::string_view path, std::uint64_t n) { return text(path, temporary_mark, n); }
bool is_temporary(std::string_view name);
// Returns the path that a temporary was to get.
std::string_view name_of_temporary(std::string_view temporary);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "file_system.ipp"
#endif
