// The interpreter's kernels of both arithmetics, for programs that link gradus::compiled, whose own files do not have
// them; with GRADUS_EXTERN_KERNELS, for files that have everything except the kernels (cpu/device.hpp).
#if !defined(GRADUS_COMPILED) && !defined(GRADUS_EXTERN_KERNELS)
#define GRADUS_COMPILED
#endif
#include "../cpu/device.hpp"

template struct gradus::built_in_ops<gradus::fast>;
template struct gradus::built_in_ops<gradus::detail::compiled_beside_fast>;
#if defined(GRADUS_COMPILED) && GRADUS_SIMD
namespace gradus::inline GRADUS_BUILD::detail {
GRADUS_SHARED_CODE()
GRADUS_SHARED_ATTENTION(, float)
GRADUS_SHARED_ATTENTION(, double)
}  // namespace gradus::inline GRADUS_BUILD::detail
#endif
