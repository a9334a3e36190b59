// The device that a class uses when none is named. Declared here, so that this floor knows no device; defined by
// gradus/cpu/device.hpp, which the umbrella includes.
#pragma once
#include "../base/build.hpp"

namespace gradus::inline GRADUS_BUILD {

struct default_device;

namespace detail {
template <class Device>
concept device_is_here = requires { sizeof(Device); };
}  // namespace detail
// Asked first by every class that has a device; the compiler's own words are about incomplete classes.
#define GRADUS_NEEDS_DEVICE(...)                            \
  static_assert(detail::device_is_here<__VA_ARGS__>,        \
                "gradus: include <gradus/cpu/device.hpp>, " \
                "which has the kernels (<gradus/gradus.hpp> includes it)")

}  // namespace gradus
