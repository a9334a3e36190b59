// The interpreter's kernels of both arithmetics, for programs that link gradus::compiled, whose own files leave them
// out (cpu/device.hpp).
#ifndef GRADUS_COMPILED
#define GRADUS_COMPILED
#endif
#include "../cpu/device.hpp"

template struct gradus::built_in_ops<gradus::fast>;
template struct gradus::built_in_ops<gradus::detail::compiled_beside_fast>;
