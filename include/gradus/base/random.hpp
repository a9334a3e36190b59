// Random numbers are counter-based: a draw is a pure function of (key, counter). So a stream is saved by saving two
// numbers, any element can be drawn without drawing those before it, and threads need no shared state.
//
// The function is Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
// TensorFlow uses the same function with its own keying, so single draws differ from TensorFlow's, but distributions do
// not.
#pragma once
#include "build.hpp"

#include <array>
#include <cstdint>

namespace gradus::inline GRADUS_BUILD {

struct philox {
  std::uint32_t key[2] = {};

  constexpr philox() = default;
  constexpr explicit philox(std::uint64_t seed)
      : key{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)} {}

  // Returns four words for a 128-bit counter.
  constexpr std::array<std::uint32_t, 4> operator()(std::array<std::uint32_t, 4> c) const {
    std::uint32_t k0 = key[0], k1 = key[1];
    for (int i = 0; i < rounds; ++i, k0 += step0, k1 += step1) round(c[0], c[1], c[2], c[3], k0, k1);
    return c;
  }
  // Does one round. Its key is that of the stream, with `step0` and `step1` added for each round before it.
  static constexpr int rounds = 10;
  static constexpr std::uint32_t step0 = 0x9E3779B9u, step1 = 0xBB67AE85u;
  [[gnu::always_inline]] static constexpr void round(std::uint32_t& c0, std::uint32_t& c1, std::uint32_t& c2,
                                                     std::uint32_t& c3, std::uint32_t k0, std::uint32_t k1) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0, p1 = std::uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0, c1 = static_cast<std::uint32_t>(p1);
    c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1, c3 = static_cast<std::uint32_t>(p0);
  }
  // Returns element `index` of stream `stream`.
  constexpr std::uint32_t word(std::uint64_t stream, std::uint64_t index) const {
    const std::uint64_t block = index / 4;
    return (*this)({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                    static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)})[index % 4];
  }
};

// Returns a number in [0, 1) with 24 bits, which is exact in float.
constexpr float uniform_float(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }
// Returns a number in [0, 1) with 53 bits, which is exact in double.
constexpr double uniform_double(std::uint32_t high, std::uint32_t low) {
  return static_cast<double>((std::uint64_t{high} << 32 | low) >> 11) * 0x1p-53;
}

// A stream with a position: each call gives the next element. It is saved and restored as `next` (and its seed).
struct random_stream {
  std::uint64_t seed = 0;
  std::uint64_t next = 0;

  constexpr std::uint32_t word() { return philox(seed).word(0, next++); }
  constexpr double uniform() {
    const auto a = word();
    return uniform_double(a, word());
  }
  // Returns an unbiased integer in [0, n), for n > 0 (Lemire, "Fast random integer generation in an interval", 2019,
  // with rejection).
  constexpr std::uint32_t below(std::uint32_t n) {
    const std::uint32_t reject = (0u - n) % n;
    for (;;) {
      const std::uint64_t product = std::uint64_t{word()} * n;
      if (static_cast<std::uint32_t>(product) >= reject) return static_cast<std::uint32_t>(product >> 32);
    }
  }
};

}  // namespace gradus
