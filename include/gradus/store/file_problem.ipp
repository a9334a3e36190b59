// The bodies of file_problem.hpp.
#pragma once
#include "../base/body.hpp"
#include "file_problem.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY errno_meaning meaning_of(int e) {
  constexpr std::string_view permissions = "check the directory's owner and permissions, or choose another directory";
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

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::string describe(const file_problem& p) {
  return text("cannot ", p.operation, " \"", p.path, "\": ", std::strerror(p.error), " (", advice_of_errno(p.error),
              ")");
}

}  // namespace gradus
