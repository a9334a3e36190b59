// What went wrong with a file, as a value: which operation, on what path, with which errno; what kind of error that is,
// and what a person can do about it.
#pragma once
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "../base/error.hpp"

namespace gradus {

// An operation on a file that failed. False if it did not.
struct file_problem {
  int error = 0;               // errno
  const char* operation = "";  // a verb: "write", "sync", ...
  std::string path;
  bool published = false;  // the new file has its name already, but may not survive a power failure

  explicit operator bool() const { return error != 0; }
};

namespace detail {
struct errno_meaning {
  int error;
  status kind;
  std::string_view advice;
};
inline errno_meaning meaning_of(int e) {
  constexpr std::string_view permissions =
      "check who owns the directory and its permissions, or choose another directory";
  constexpr std::string_view files = "too many files are open: close some, or raise the limit (ulimit -n)";
  static constexpr errno_meaning meanings[] = {
    {ENOSPC, status::resource_exhausted,
     "the disk is full: free some space, keep fewer files, or choose another directory"},
#if defined(EDQUOT)
    {EDQUOT, status::resource_exhausted,
     "the disk quota is used up: free some space, keep fewer files, or choose another directory"},
#endif
    {EFBIG, status::resource_exhausted,
     "the file is larger than is allowed here: raise the limit (ulimit -f, or the reader's size limit)"},
    {EMFILE, status::resource_exhausted, files},
    {ENFILE, status::resource_exhausted, files},
    {EACCES, status::permission_denied, permissions},
    {EPERM, status::permission_denied, permissions},
    {EROFS, status::permission_denied, "the file system is mounted read-only: choose another directory"},
    {ENOENT, status::not_found,
     "check the path; if a file vanished meanwhile, see whether another process writes there too"},
    {ENOTDIR, status::not_found, "a part of the path is a file where a directory is needed: choose another path"},
    {EISDIR, status::invalid_argument, "this is a directory where a file is needed: choose another path"},
    {EINVAL, status::invalid_argument, "this is no regular file: choose another path"},
    {EEXIST, status::already_exists, "the name is taken: remove what is there, or choose another path"},
    {ENAMETOOLONG, status::invalid_argument, "choose a shorter path"},
    {ELOOP, status::invalid_argument, "a symbolic link is in the way: choose another path"},
    {EIO, status::data_loss, "the device failed: check it (dmesg) before you trust it again"},
    {EINTR, status::unavailable, "signals kept interrupting the call: try again"}
  };
  for (const auto& m : meanings)
    if (m.error == e) return m;
  return {e, status::unavailable, "try again, or choose another directory"};
}
}  // namespace detail

inline status status_of_errno(int e) { return detail::meaning_of(e).kind; }
// What to do about it.
inline std::string_view advice_of_errno(int e) { return detail::meaning_of(e).advice; }

inline std::string describe(const file_problem& p) {
  return text("cannot ", p.operation, " \"", p.path, "\": ", std::strerror(p.error), " (", advice_of_errno(p.error),
              ")");
}

[[noreturn]] inline void raise(const file_problem& p) { raise(status_of_errno(p.error), describe(p)); }

}  // namespace gradus
