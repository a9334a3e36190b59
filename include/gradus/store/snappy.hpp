// Snappy's raw format, decoded: some TensorFlow builds wrote the blocks of a checkpoint's index with it. This library
// does not write it.
//
//   stream  = varint length of the output, elements
//   element = a tag byte, whose two low bits give its kind:
//     00  literal: the six high bits are length - 1, or 60..63 for a length - 1 in the next 1..4 bytes; then the bytes
//     01  copy: bits 2-4 are length - 4, bits 5-7 the offset's high bits, one more byte the low ones
//     10  copy: six bits are length - 1, then a 16-bit offset       11  the same, with a 32-bit offset
//
// The source is github.com/google/snappy, format_description.txt. A copy may overlap its own output.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <string>

#include "../base/error.hpp"
#include "varint.hpp"

namespace gradus::inline GRADUS_BUILD {

// Three bytes of a stream become at most 64: a length that promises more is false.
inline constexpr std::uint64_t most_snappy_expansion = 22;

// Decodes `in` into `out` (whose former content is lost). Returns the problem, or an empty text. Nothing is allocated
// before the length that the stream claims is known to be possible and at most `most`.
std::string snappy_decode(std::span<const std::byte> in, std::size_t most, std::vector<std::byte>& out);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "snappy.ipp"
#endif
