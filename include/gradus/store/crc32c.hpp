// CRC-32C (Castagnoli) is the checksum of TFRecord files, event files, tensor bundles and this library's own
// checkpoints.
//
// The polynomial is 0x1EDC6F41, here in its reflected form 0x82F63B78; initial value and final xor are 0xFFFFFFFF (RFC
// 3720, section 12.1 and appendix B.4). With __SSE4_2__ the processor's instruction is used, else eight tables of 256
// words (Kounavis, Berry, "Novel table lookup-based algorithms for high-performance CRC generation", 2008). Both give
// the same numbers, and both work in constant evaluation (where the table is always used). The instruction gives its
// result after three cycles, so long runs are computed as three runs side by side, which are then joined (Gopal et al.,
// "Fast CRC computation for iSCSI polynomial using CRC32 instruction", 2011).
//
//   crc32c(bytes)            the checksum of a whole span
//   extend(crc, bytes)       of the bytes with checksum crc, then these: extend(crc32c(a), b) == crc32c(ab)
//   mask(crc), unmask(crc)   the form that record formats store: a CRC over data that holds CRCs is weak, so the stored
//                            one is rotated and offset
#pragma once
#include "../base/build.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#if defined(__SSE4_2__)
#include <nmmintrin.h>
#endif

namespace gradus::inline GRADUS_BUILD {
namespace detail {

// Plain arrays: with std::array, whose functions would be called, a compiler takes three times the memory to evaluate
// them.
template <std::size_t Count>
struct crc32c_tables {
  std::uint32_t of[Count][256] = {};
};
// of[k][b]: the CRC register after byte b and k zero bytes.
inline constexpr auto crc32c_table = [] {
  crc32c_tables<8> made;
  auto& table = made.of;
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t r = b;
    for (int bit = 0; bit < 8; ++bit) r = (r >> 1) ^ ((r & 1u) != 0 ? 0x82F63B78u : 0u);
    table[0][b] = r;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (std::size_t b = 0; b < 256; ++b) table[k][b] = (table[k - 1][b] >> 8) ^ table[0][table[k - 1][b] & 0xFF];
  return made;
}();

// Returns the register after `n` bytes, by table. Bytes are read one by one, so the result is the same on any
// endianness.
template <class Byte>
constexpr std::uint32_t crc32c_by_table(std::uint32_t r, const Byte* p, std::size_t n) {
  const auto& t = crc32c_table.of;
  const auto at = [&p](int i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(p[i])); };
  for (; n >= 8; n -= 8, p += 8) {
    const std::uint32_t low = r ^ (at(0) | at(1) << 8 | at(2) << 16 | at(3) << 24);
    r = t[7][low & 0xFF] ^ t[6][(low >> 8) & 0xFF] ^ t[5][(low >> 16) & 0xFF] ^ t[4][low >> 24] ^ t[3][at(4)] ^
        t[2][at(5)] ^ t[1][at(6)] ^ t[0][at(7)];
  }
  for (; n != 0; --n, ++p) r = (r >> 8) ^ t[0][(r ^ at(0)) & 0xFF];
  return r;
}

#if defined(__SSE4_2__)
inline constexpr std::size_t crc32c_run = 4096;  // bytes of each of three runs; a power of two

// shift[k][b]: what byte k of the register, with the value b, becomes after crc32c_run zero bytes. The effect of zeros
// is linear, so the operator for one zero bit, squared often enough, is the operator for the run.
inline constexpr auto crc32c_shift = [] {
  std::uint32_t op[32] = {};  // op[i]: what bit i becomes
  op[0] = 0x82F63B78u;
  for (std::size_t i = 1; i < 32; ++i) op[i] = 1u << (i - 1);
  const auto apply = [&op](std::uint32_t r) {
    std::uint32_t out = 0;
    for (std::size_t i = 0; r != 0; ++i, r >>= 1) out ^= (r & 1u) != 0 ? op[i] : 0u;
    return out;
  };
  for (std::size_t bits = 1; bits < 8 * crc32c_run; bits *= 2) {
    std::uint32_t squared[32] = {};
    for (std::size_t i = 0; i < 32; ++i) squared[i] = apply(op[i]);
    for (std::size_t i = 0; i < 32; ++i) op[i] = squared[i];
  }
  crc32c_tables<4> made;
  auto& table = made.of;
  for (std::size_t k = 0; k < 4; ++k)
    for (std::uint32_t b = 1; b < 256; ++b)
      table[k][b] = (b & (b - 1)) == 0 ? apply(b << (8 * k)) : table[k][b & (b - 1)] ^ table[k][b & (~b + 1)];
  return made;
}();

#if defined(__x86_64__)
inline std::uint64_t crc32c_after_run(std::uint64_t r) {
  const auto& t = crc32c_shift.of;
  return t[0][r & 0xFF] ^ t[1][(r >> 8) & 0xFF] ^ t[2][(r >> 16) & 0xFF] ^ t[3][(r >> 24) & 0xFF];
}
#endif

inline std::uint32_t crc32c_by_instruction(std::uint32_t r, const void* data, std::size_t n) {
  const auto* p = static_cast<const unsigned char*>(data);
#if defined(__x86_64__)
  std::uint64_t wide = r;
  for (; n >= 3 * crc32c_run; n -= 3 * crc32c_run, p += 3 * crc32c_run) {
    std::uint64_t second = 0, third = 0, word[3];
    for (std::size_t i = 0; i < crc32c_run; i += 8) {
      for (std::size_t k = 0; k < 3; ++k) std::memcpy(&word[k], p + k * crc32c_run + i, 8);
      wide = _mm_crc32_u64(wide, word[0]);
      second = _mm_crc32_u64(second, word[1]);
      third = _mm_crc32_u64(third, word[2]);
    }
    wide = crc32c_after_run(crc32c_after_run(wide) ^ second) ^ third;
  }
  for (; n >= 8; n -= 8, p += 8) {
    std::uint64_t word;
    std::memcpy(&word, p, 8);
    wide = _mm_crc32_u64(wide, word);
  }
  r = static_cast<std::uint32_t>(wide);
#endif
  for (; n != 0; --n, ++p) r = _mm_crc32_u8(r, *p);
  return r;
}
#endif

template <class Byte>
constexpr std::uint32_t crc32c_extend(std::uint32_t crc, const Byte* p, std::size_t n) {
  const std::uint32_t r = crc ^ 0xFFFFFFFFu;
#if defined(__SSE4_2__)
  if (!std::is_constant_evaluated()) return crc32c_by_instruction(r, p, n) ^ 0xFFFFFFFFu;
#endif
  return crc32c_by_table(r, p, n) ^ 0xFFFFFFFFu;
}

}  // namespace detail

constexpr std::uint32_t extend(std::uint32_t crc, std::span<const std::byte> bytes) {
  return detail::crc32c_extend(crc, bytes.data(), bytes.size());
}
constexpr std::uint32_t extend(std::uint32_t crc, std::string_view bytes) {
  return detail::crc32c_extend(crc, bytes.data(), bytes.size());
}
constexpr std::uint32_t crc32c(std::span<const std::byte> bytes) { return extend(0, bytes); }
constexpr std::uint32_t crc32c(std::string_view bytes) { return extend(0, bytes); }

// TFRecord's mask (formats of TensorFlow and LevelDB): rotate right by 15 bits, add a constant.
constexpr std::uint32_t mask(std::uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u; }
constexpr std::uint32_t unmask(std::uint32_t masked) {
  const std::uint32_t r = masked - 0xA282EAD8u;
  return (r >> 17) | (r << 15);
}

}  // namespace gradus
