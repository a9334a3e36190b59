// The bodies of any_file_system.hpp.
#pragma once
#include "../base/body.hpp"
#include "any_file_system.hpp"

namespace gradus::inline GRADUS_BUILD {

#if defined(__unix__) || defined(__APPLE__)
GRADUS_BODY any_file_system::any_file_system() : does_(&operations_of<posix>) {}
#endif

}  // namespace gradus
