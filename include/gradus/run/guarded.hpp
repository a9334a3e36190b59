// This header makes a dense update while state is being copied: in pieces, before each of which the guard is called
// (base/state.hpp, checkpoint/staging.hpp). A sweep in pieces gives the bits of one sweep.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <array>

#include "../base/state.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Calls sweep(first, how many, mirrors from there) for all of `values`, in order.
template <class T, std::size_t N, class Sweep>
void in_guarded_pieces(write_guard& guard, T* theta, const std::array<T*, N>& mirrors, std::size_t mirror_count,
                       std::size_t values, Sweep&& sweep) {
  constexpr std::size_t most = write_guard::piece / sizeof(T);
  for (std::size_t at = 0; at < values; at += most) {
    const std::size_t n = std::min(most, values - at);
    std::array<T*, N> here = mirrors;
    guard.before_write({reinterpret_cast<const std::byte*>(theta + at), n * sizeof(T)});
    for (std::size_t k = 0; k < mirror_count; ++k) {
      here[k] += at;
      guard.before_write({reinterpret_cast<const std::byte*>(here[k]), n * sizeof(T)});
    }
    sweep(at, n, here);
  }
}

}  // namespace gradus::detail
