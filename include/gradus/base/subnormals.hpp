// These policies keep numbers that are too small for a full significand, as IEEE 754 specifies, or count them as zero.
// A thread has one mode for all its arithmetic. If subnormal numbers are kept, an x86 takes a hundred times as long for
// each, and the moments of a dead unit decay into them.
//
//   gradus::make_trainer<digits>(gradus::adam{}, gradus::subnormals::keep{});
#pragma once
#include "build.hpp"

#include <cstdint>

#include "contract.hpp"

namespace gradus::inline GRADUS_BUILD {

enum class subnormal_mode : std::uint8_t { keep, flush };

// The treatment of subnormal numbers in a step, a prediction or an update, on every thread that works on it. The
// caller's own mode is restored when the call returns. The default is flush with `fast` arithmetic, as TensorFlow does
// on its threads, and keep with `portable`, since only then are its bits the same on every machine. PyTorch keeps them
// by default (torch.set_flush_denormal).
namespace subnormals {
// Subnormal numbers are computed with, as IEEE 754 has it.
struct keep {
  using policy_for = kind::subnormals;
  static constexpr subnormal_mode mode = subnormal_mode::keep;
};
// Subnormal numbers count as zero, which is faster.
struct flush {
  using policy_for = kind::subnormals;
  static constexpr subnormal_mode mode = subnormal_mode::flush;
};
}  // namespace subnormals

namespace detail {

// The register that holds the mode, and the bits of it that mean flushing. The asm statements clobber memory, so loads
// and stores, and with them the arithmetic between them, are not moved across a change of the mode.
#if defined(__SSE2__)
using float_control = std::uint32_t;
inline constexpr float_control flushing = 0x8040;  // MXCSR: results (FTZ), operands (DAZ)
inline float_control read_float_control() {
  float_control c;
  asm volatile("stmxcsr %0" : "=m"(c));
  return c;
}
inline void write_float_control(float_control c) { asm volatile("ldmxcsr %0" : : "m"(c) : "memory"); }
#elif defined(__aarch64__)
using float_control = std::uint64_t;
inline constexpr float_control flushing = std::uint64_t{1} << 24;  // FPCR.FZ: operands and results
inline float_control read_float_control() {
  float_control c;
  asm volatile("mrs %0, fpcr" : "=r"(c));
  return c;
}
inline void write_float_control(float_control c) { asm volatile("msr fpcr, %0" : : "r"(c) : "memory"); }
#elif defined(__arm__) && defined(__ARM_FP) && !defined(__SOFTFP__)
using float_control = std::uint32_t;
inline constexpr float_control flushing = 1u << 24;  // FPSCR.FZ
inline float_control read_float_control() {
  float_control c;
  asm volatile("vmrs %0, fpscr" : "=r"(c));
  return c;
}
inline void write_float_control(float_control c) { asm volatile("vmsr fpscr, %0" : : "r"(c) : "memory"); }
#else
using float_control = std::uint32_t;  // the mode of such a machine is fixed or not known here
inline constexpr float_control flushing = 0;
inline float_control read_float_control() { return 0; }
inline void write_float_control(float_control) {}
#endif

}  // namespace detail

namespace detail {
// Returns the mode that the policies choose, or else the one that fits the device's arithmetic.
template <class Device, class... Policies>
consteval subnormal_mode subnormals_of() {
  if constexpr (policies_of<kind::subnormals, Policies...> != 0)
    return policy_of<kind::subnormals, subnormals::keep, Policies...>::mode;
  else if constexpr (requires { requires Device::arithmetic_type::fuses; })
    return subnormal_mode::flush;
  else
    return subnormal_mode::keep;
}
}  // namespace detail

// False if the mode cannot be set; both policies then do what the machine does.
inline constexpr bool can_flush_subnormals = detail::flushing != 0;

// Returns the mode of the calling thread.
inline subnormal_mode current_subnormals() {
  return can_flush_subnormals && (detail::read_float_control() & detail::flushing) == detail::flushing
             ? subnormal_mode::flush
             : subnormal_mode::keep;
}

// Sets the calling thread's mode while the object lives. Reading the register costs a nanosecond or two; it is written
// only if it has to change, and then once more at the end.
class subnormal_scope {
public:
  explicit subnormal_scope(subnormal_mode m) : before_(detail::read_float_control()) {
    const detail::float_control wanted =
        m == subnormal_mode::flush ? before_ | detail::flushing : before_ & ~detail::flushing;
    changed_ = wanted != before_;
    if (changed_) detail::write_float_control(wanted);
  }
  subnormal_scope(const subnormal_scope&) = delete;
  subnormal_scope& operator=(const subnormal_scope&) = delete;
  ~subnormal_scope() {
    if (changed_) detail::write_float_control(before_);
  }

private:
  detail::float_control before_;
  bool changed_;
};

}  // namespace gradus
