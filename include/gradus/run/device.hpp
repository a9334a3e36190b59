// This is the device of a class for which none is named. It is declared here, so that this folder does not depend on a
// device; gradus/cpu/device.hpp, which the umbrella header includes, defines it.
#pragma once
#include "../base/build.hpp"

namespace gradus::inline GRADUS_BUILD {

struct default_device;

namespace detail {
template <class Device>
concept device_is_here = requires { sizeof(Device); };
}  // namespace detail
// Every class with a device checks this first, since the compiler's own message is about incomplete classes.
#define GRADUS_NEEDS_DEVICE(...)                            \
  static_assert(detail::device_is_here<__VA_ARGS__>,        \
                "gradus: include <gradus/cpu/device.hpp>, " \
                "which has the kernels (<gradus/gradus.hpp> includes it)")

}  // namespace gradus
