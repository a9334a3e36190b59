// The limits of messages between processes: what a receiver accepts, and a sender sends (wire.hpp).
#pragma once
#include "../base/build.hpp"

#include <cstdint>

namespace gradus::inline GRADUS_BUILD::detail {

struct wire_limits {
  std::uint64_t frame_bytes = std::uint64_t{1} << 30;
  std::uint32_t slices = 1u << 16;
  std::uint32_t name_bytes = 1024;

  // Returns the limits of frames that do not leave this process: those of the format.
  static constexpr wire_limits of_this_process() { return {UINT64_MAX / 2, UINT32_MAX, UINT16_MAX}; }
};

}  // namespace gradus::detail
