// The bodies of profile.hpp.
#pragma once
#include "../base/body.hpp"
#include "profile.hpp"

#include "../base/clock.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY double steady_seconds::now() { return system_clock{}.elapsed(); }

}  // namespace gradus
