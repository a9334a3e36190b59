// The device that a class uses when none is named. Declared here, so that this floor knows no device; defined by
// gradus/cpu/device.hpp, which the umbrella includes.
#pragma once

namespace gradus {

struct default_device;

}  // namespace gradus
