// What GRADUS_EXTERN_KERNELS leaves out of every other file (cpu/device.hpp).
#define GRADUS_EXTERN_KERNELS
#include <gradus/cpu/device.hpp>

template struct gradus::built_in_ops<gradus::fast>;
template struct gradus::built_in_ops<gradus::portable>;
