// The bodies of clock.hpp.
#pragma once
#include "body.hpp"
#include "clock.hpp"
// <chrono> includes the locales, which cost every program a second of compilation; POSIX has both clocks directly.
#if defined(__unix__) || defined(__APPLE__)
#include <time.h>
#else
#include <chrono>
#endif

namespace gradus::inline GRADUS_BUILD {

#if defined(__unix__) || defined(__APPLE__)
namespace detail {
GRADUS_BODY double seconds_of(clockid_t which) {
  timespec t{};
  ::clock_gettime(which, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}
}  // namespace detail
GRADUS_BODY double system_clock::now() const { return detail::seconds_of(CLOCK_REALTIME); }
GRADUS_BODY double system_clock::elapsed() const { return detail::seconds_of(CLOCK_MONOTONIC); }
#else
GRADUS_BODY double system_clock::now() const {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}
GRADUS_BODY double system_clock::elapsed() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
#endif

}  // namespace gradus
