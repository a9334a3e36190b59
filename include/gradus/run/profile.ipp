// The bodies of profile.hpp.
#pragma once
#include "../base/body.hpp"
#include "profile.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY double steady_seconds::now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace gradus
