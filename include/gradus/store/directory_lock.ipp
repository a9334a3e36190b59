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

}  // namespace gradus::detail
