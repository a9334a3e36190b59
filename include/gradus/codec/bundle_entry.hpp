// This header reads and writes the index of a tensor bundle: TensorFlow's BundleHeaderProto, BundleEntryProto and
// TensorSliceProto as bytes, read as hostile; and the bytes of string tensors. docs/formats/tensor_bundle.md.
//
//   header = num_shards 1, endianness 2 (0 little), version 3 { producer 1, min_consumer 2, bad_consumers 3 }
//   entry  = dtype 1, shape 2 { dim 2 { size 1 }, unknown_rank 3 }, shard_id 3, offset 4, size 5, crc32c 6 (fixed32,
//            masked), slices 7 { extent 1 { start 1, length 2 } }
//   strings = a varint for each length, u32 masked CRC-32C of the lengths as u32, then the strings one after another
#pragma once
#include <cstring>
#include <functional>
#include <optional>

#include "../store/crc32c.hpp"
#include "../store/ordered_code.hpp"
#include "../store/varint.hpp"
#include "opaque.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// TensorFlow's numbers for types that we do not compute with.
inline constexpr int bundle_strings = 7, bundle_variant = 21, bundle_version = 1, most_bundle_shards = 99999;
inline constexpr int most_bundle_type = 100;  // from here on TensorFlow's numbers are of references to types
// Returns the size in bytes of an element of a TensorFlow type; 0 if that is not fixed, or it is none that a checkpoint
// holds.
constexpr std::size_t bundle_width(int type) {
  constexpr std::string_view widths = "048412108811142222g200481100011";  // types 0, 1, 2, ...
  static_assert(widths.size() == 31);
  if (type < 0 || type >= static_cast<int>(widths.size())) return 0;
  const char c = widths[static_cast<std::size_t>(type)];
  return c == 'g' ? 16 : static_cast<std::size_t>(c - '0');
}

// The name of a type that is none of ours, whatever its number; and the number of a name, 0 if it is none of
// TensorFlow's.
std::string bundle_type_name(int type);
int bundle_type_of(std::string_view name);

// One axis of a slice; a length of -1 is all of it.
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

// An int32 or int64 that is left out if it is 0; its key is (field << 3), wire type 0.
void put_integer_if(std::vector<std::byte>& out, unsigned field, std::int64_t n);
void put_message(std::vector<std::byte>& out, unsigned field, std::span<const std::byte> message);

std::vector<std::byte> bundle_header_bytes(int shards);
std::vector<std::byte> bytes_of(const bundle_entry& e);

// Returns the key under which the bytes of a slice stand. It begins with a zero byte, so that slices come after the
// header and before all names.
std::string bundle_slice_key(std::string_view name, const bundle_slice& slice);

// ---- reading. Each gives what is wrong, or nothing.

// The fields of a message: field(number, wire type, integer, bytes) gives what it has against one. Groups are refused.
using bundle_field = std::function<std::string(std::uint32_t, unsigned, std::uint64_t, std::span<const std::byte>)>;
std::string each_field(std::span<const std::byte> message, const bundle_field& field);
// Protobuf's int32 is cut from 64 bits; what does not fit was never written.
bool as_int32(std::uint64_t bits, std::int64_t& n);

std::string read_bundle_header(std::span<const std::byte> message, int& shards, status& kind);

std::string read_bundle_entry(std::span<const std::byte> message, bundle_entry& e);

// Elements of an entry; false if that overflows.
bool elements_of(const bundle_entry& e, std::uint64_t& n);

// ---- string tensors

// How a length is summed up: as a u32, or as a u64 if it is too long for that.
std::uint32_t extend_by_length(std::uint32_t crc, std::uint64_t length);
// Returns the bytes before the strings; and the masked checksum of the entry.
std::vector<std::byte> bundle_string_head(std::span<const std::span<const std::byte>> strings,
                                          std::uint32_t& entry_crc);
// Checks the bytes of n strings; `entry_crc` gets the masked checksum that the entry must have, `strings` (if given)
// the strings. Gives what is wrong, or nothing.
std::string read_bundle_strings(std::span<const std::byte> bytes, std::uint64_t n, std::uint32_t& entry_crc,
                                std::vector<std::span<const std::byte>>* strings = nullptr);

// ---- variants

// The same of n variants, each with its length before it and a checksum of all so far behind it.
std::string read_bundle_variants(std::span<const std::byte> bytes, std::uint64_t n, std::uint32_t& entry_crc);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "bundle_entry.ipp"
#endif
