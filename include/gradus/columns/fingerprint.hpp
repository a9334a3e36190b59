// This header computes fingerprints of text, which are the same on every machine and for ever. The ids of hashed
// features are made from them.
//
//   fingerprint64("hello") % buckets                           tf.strings.to_hash_bucket_fast
//   chain_fingerprints(fingerprint64("a"), fingerprint64("b"))      one step of a crossed column; the order counts
//
// fingerprint64 is FarmHash's Fingerprint64 (Pike 2014, github.com/google/farmhash, its 64-bit "na" hash), as
// TensorFlow uses it, so ids agree with those of models trained in TensorFlow. It is not a cryptographic hash: a person
// can choose texts that collide.
#pragma once
#include "../base/build.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

namespace gradus::inline GRADUS_BUILD {

namespace detail::farm {

inline constexpr std::uint64_t k0 = 0xc3a5c85c97cb3127, k1 = 0xb492b66fbe98f273, k2 = 0x9ae16a3b2f90404f;

// Returns the bytes i ... i + n - 1 as a little-endian number.
constexpr std::uint64_t word(std::string_view s, std::size_t i, int n = 8) {
  std::uint64_t v = 0;
  if (!std::is_constant_evaluated() && std::endian::native == std::endian::little && n == 8) {
    std::memcpy(&v, s.data() + i, 8);  // the loop below is three times slower for long texts
    return v;
  }
  for (int k = 0; k < n; ++k)
    v |= std::uint64_t{static_cast<unsigned char>(s[i + static_cast<std::size_t>(k)])} << 8 * k;
  return v;
}
constexpr std::uint64_t fold(std::uint64_t v) { return v ^ v >> 47; }
constexpr std::uint64_t pair(std::uint64_t u, std::uint64_t v, std::uint64_t mul) {
  const std::uint64_t a = fold((u ^ v) * mul);
  return fold((v ^ a) * mul) * mul;
}

constexpr std::uint64_t up_to_16(std::string_view s) {
  const std::size_t n = s.size();
  const std::uint64_t mul = k2 + 2 * n;
  if (n >= 8) {
    const std::uint64_t a = word(s, 0) + k2, b = word(s, n - 8);
    return pair(std::rotr(b, 37) * mul + a, (std::rotr(a, 25) + b) * mul, mul);
  }
  if (n >= 4) return pair(n + (word(s, 0, 4) << 3), word(s, n - 4, 4), mul);
  if (n == 0) return k2;
  const std::uint64_t y = word(s, 0, 1) + (word(s, n / 2, 1) << 8), z = n + (word(s, n - 1, 1) << 2);
  return fold(y * k2 ^ z * k0) * k2;
}
constexpr std::uint64_t up_to_64(std::string_view s) {
  const std::size_t n = s.size();
  const std::uint64_t mul = k2 + 2 * n;
  const std::uint64_t a = word(s, 0) * (n > 32 ? k2 : k1), b = word(s, 8), c = word(s, n - 8) * mul,
                      d = word(s, n - 16) * k2;
  const std::uint64_t y = std::rotr(a + b, 43) + std::rotr(c, 30) + d, x = a + std::rotr(b + k2, 18) + c,
                      z = pair(y, x, mul);
  if (n <= 32) return z;
  const std::uint64_t e = word(s, 16) * mul, f = word(s, 24), g = (y + word(s, n - 32)) * mul,
                      h = (z + word(s, n - 24)) * mul;
  return pair(std::rotr(e + f, 43) + std::rotr(g, 30) + h, e + std::rotr(f + a, 18) + g, mul);
}

// The state of the hash of long texts: 56 bytes, into which 64 bytes of the text are mixed at a time.
struct mixer {
  struct two {
    std::uint64_t first = 0, second = 0;
  };
  two v, w;
  std::uint64_t x, y, z;

  static constexpr two weak(std::string_view s, std::size_t i, std::uint64_t a, std::uint64_t b) {
    a += word(s, i);
    b = std::rotr(b + a + word(s, i + 24), 21);
    const std::uint64_t c = a;
    a += word(s, i + 8) + word(s, i + 16);
    b += std::rotr(a, 44);
    return {a + word(s, i + 24), b + c};
  }
  // `gain` is 1, and 9 for the last bytes.
  constexpr void mix(std::string_view s, std::size_t i, std::uint64_t mul, std::uint64_t gain) {
    x = std::rotr(x + y + v.first + word(s, i + 8), 37) * mul;
    y = std::rotr(y + v.second + word(s, i + 48), 42) * mul;
    x ^= w.second * gain;
    y += v.first * gain + word(s, i + 40);
    z = std::rotr(z + w.first, 33) * mul;
    v = weak(s, i, v.second * mul, x + w.first);
    w = weak(s, i + 32, z + w.second, y + word(s, i + 16));
    std::swap(z, x);
  }
};
constexpr std::uint64_t long_text(std::string_view s) {
  constexpr std::uint64_t seed = 81;
  const std::size_t rest = (s.size() - 1) % 64;
  mixer m{.v = {}, .w = {}, .x = seed * k2 + word(s, 0), .y = seed * k1 + 113, .z = 0};
  m.z = fold(m.y * k2 + 113) * k2;
  for (std::size_t i = 0; i + 64 < s.size(); i += 64) m.mix(s, i, k1, 1);
  const std::uint64_t mul = k1 + ((m.z & 0xff) << 1);
  m.w.first += rest, m.v.first += m.w.first, m.w.first += m.v.first;
  m.mix(s, s.size() - 64, mul, 9);  // the last 64 bytes, some of which are mixed a second time
  return pair(pair(m.v.first, m.w.first, mul) + fold(m.y) * k0 + m.z, pair(m.v.second, m.w.second, mul) + m.x, mul);
}

}  // namespace detail::farm

constexpr std::uint64_t fingerprint64(std::string_view s) {
  return s.size() <= 16   ? detail::farm::up_to_16(s)
         : s.size() <= 64 ? detail::farm::up_to_64(s)
                          : detail::farm::long_text(s);
}

// Chains the fingerprint so far with the next one; the order matters. It is TensorFlow's FingerprintCat64.
constexpr std::uint64_t chain_fingerprints(std::uint64_t so_far, std::uint64_t next) {
  constexpr std::uint64_t mul = 0xc6a4a7935bd1e995;
  using detail::farm::fold;
  const std::uint64_t mixed = ((so_far ^ mul) ^ fold(next * mul) * mul) * mul;
  return fold(fold(mixed) * mul);
}

}  // namespace gradus
