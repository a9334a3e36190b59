// A file_problem is the failure of an operation on a file, as a value: the operation, the path and the errno. From the
// errno follow the status and the remedy.
#pragma once
#include "../base/build.hpp"

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "../base/error.hpp"

namespace gradus::inline GRADUS_BUILD {

// An operation on a file that failed. It converts to false if none did.
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
errno_meaning meaning_of(int e);
}  // namespace detail

inline status status_of_errno(int e) { return detail::meaning_of(e).kind; }
// Returns the remedy.
inline std::string_view advice_of_errno(int e) { return detail::meaning_of(e).advice; }

std::string describe(const file_problem& p);

[[noreturn]] inline void raise(const file_problem& p) { raise(status_of_errno(p.error), describe(p)); }

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "file_problem.ipp"
#endif
