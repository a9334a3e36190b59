// This header reads and writes the index of a tensor bundle (TensorFlow's BundleHeaderProto, BundleEntryProto and
// TensorSliceProto as bytes, which are not trusted when read), and the bytes of string tensors.
// docs/formats/tensor_bundle.md describes them.
//
//   header = num_shards 1, endianness 2 (0 little), version 3 { producer 1, min_consumer 2, bad_consumers 3 }
//   entry  = dtype 1, shape 2 { dim 2 { size 1 }, unknown_rank 3 }, shard_id 3, offset 4, size 5, crc32c 6 (fixed32,
//            masked), slices 7 { extent 1 { start 1, length 2 } }
//   strings = a varint for each length, u32 masked CRC-32C of the lengths as u32, then the strings one after another
#pragma once
#include "../base/build.hpp"

#include <cstring>
#include <functional>
#include <optional>

#include "../store/crc32c.hpp"
#include "../store/ordered_code.hpp"
#include "../store/varint.hpp"
#include "opaque.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// TensorFlow's numbers for types that this library does not compute with.
inline constexpr int bundle_strings = 7, bundle_variant = 21, bundle_version = 1, most_bundle_shards = 99999;
inline constexpr int most_bundle_type = 100;  // TensorFlow's numbers from here on are of references to types
// Returns the size in bytes of an element of a TensorFlow type; 0 if that is not fixed, or if no checkpoint holds the
// type.
constexpr std::size_t bundle_width(int type) {
  constexpr std::string_view widths = "048412108811142222g200481100011";  // types 0, 1, 2, ...
  static_assert(widths.size() == 31);
  if (type < 0 || type >= static_cast<int>(widths.size())) return 0;
  const char c = widths[static_cast<std::size_t>(type)];
  return c == 'g' ? 16 : static_cast<std::size_t>(c - '0');
}

// bundle_type_name returns the name of any type, by its TensorFlow number; bundle_type_of returns the number of a name,
// 0 if TensorFlow has no such type.
std::string bundle_type_name(int type);
int bundle_type_of(std::string_view name);

// One axis of a slice; a length of -1 is the whole axis.
struct bundle_extent {
  std::int64_t start = 0, length = -1;
};
using bundle_slice = std::vector<bundle_extent>;

struct bundle_entry {
  int type = 0;
  std::vector<std::int64_t> dims;
  std::int64_t shard = 0, offset = 0, size = 0;
  std::uint32_t crc = 0;  // masked
  std::vector<bundle_slice> slices;
};

// ---- writing

// Writes an int32 or int64, which is left out if it is 0; its key is (field << 3), wire type 0.
void put_integer_if(std::vector<std::byte>& out, unsigned field, std::int64_t n);
void put_message(std::vector<std::byte>& out, unsigned field, std::span<const std::byte> message);

std::vector<std::byte> bundle_header_bytes(int shards);
std::vector<std::byte> bytes_of(const bundle_entry& e);

// Returns the key of a slice's bytes. It begins with a zero byte, so that slices come after the header and before all
// names.
std::string bundle_slice_key(std::string_view name, const bundle_slice& slice);

// ---- reading. Each function returns the problem, or an empty text.

// Called for each field of a message, field(number, wire type, integer, bytes); it returns its problem with the field,
// or an empty text. Groups are refused.
using bundle_field = std::function<std::string(std::uint32_t, unsigned, std::uint64_t, std::span<const std::byte>)>;
std::string each_field(std::span<const std::byte> message, const bundle_field& field);
// Protobuf's parsers cut an int32 from 64 bits; here a number that does not fit returns false, since no writer makes
// it.
bool as_int32(std::uint64_t bits, std::int64_t& n);

std::string read_bundle_header(std::span<const std::byte> message, int& shards, status& kind);

// The number of slices, and of extents in them, that may still be read: two bytes of a file become one of them.
struct bundle_room {
  std::uint64_t left = 0;
  bool exceeded = false;

  bool take() { return left != 0 ? (--left, true) : (exceeded = true, false); }
};
std::string read_bundle_entry(std::span<const std::byte> message, bundle_entry& e, bundle_room* room = nullptr);

// Computes the number of elements of an entry; returns false if that overflows.
bool elements_of(const bundle_entry& e, std::uint64_t& n);

// ---- string tensors

// Extends a checksum by a length: as a u32, or as a u64 if it is too long for that.
std::uint32_t extend_by_length(std::uint32_t crc, std::uint64_t length);
// Returns the bytes before the strings, and sets `entry_crc` to the masked checksum of the entry.
std::vector<std::byte> bundle_string_head(std::span<const std::span<const std::byte>> strings,
                                          std::uint32_t& entry_crc);
// Checks the bytes of n strings; sets `entry_crc` to the masked checksum that the entry must have, and `strings` (if
// given) to the strings. Returns the problem, or an empty text.
std::string read_bundle_strings(std::span<const std::byte> bytes, std::uint64_t n, std::uint32_t& entry_crc,
                                std::vector<std::span<const std::byte>>* strings = nullptr);

// ---- variants

// Does the same for n variants, each with its length before it and, after it, a checksum of all bytes so far.
std::string read_bundle_variants(std::span<const std::byte> bytes, std::uint64_t n, std::uint32_t& entry_crc);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "bundle_entry.ipp"
#endif
