// reader_limits bound the cost of a file for its reader: all readers and tools take the same struct.
//
//   csv("rows.csv.gz", columns, {.limits = {.inflated_times = 500}})
//   saver s{saver_options{.limits = {.entries = 1 << 20}}};
//
// A file from outside may be made so that a few bytes of it become gigabytes of memory or hours of work. A reader
// refuses such a file with status::resource_exhausted, and the message names the setting to raise if the file is to be
// trusted.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <string>
#include <string_view>

#include "../base/error.hpp"

namespace gradus::inline GRADUS_BUILD {

struct reader_limits {
  // This is the longest record (a line, a TFRecord, an event), and also the longest row of an array.
  std::uint64_t record_bytes = std::uint64_t{1} << 26;
  // The largest output of one compressed file: this many bytes and, beside them, so many times its compressed size. A
  // file that is read as a stream counts too, although its memory is bounded by its records.
  std::uint64_t inflated_bytes = std::uint64_t{1} << 26;
  std::uint64_t inflated_times = 100;
  // The largest file that a reader holds in memory as a whole (IDX files, vocabularies).
  std::uint64_t file_bytes = std::uint64_t{1} << 34;
  // Names in a file: tensors and pairs of metadata, members of an archive, values of an event, tags of a run. For the
  // slices of tensors in a tensor bundle, and for their extents, there are as many beside them.
  std::uint64_t entries = std::uint64_t{1} << 18;
  // Allows rows that take no bytes: a file of 80 bytes may claim 100,000,000,000 of them.
  bool empty_rows = false;

  // Returns the largest output of `compressed` bytes.
  constexpr std::uint64_t inflated_from(std::uint64_t compressed) const {
    std::uint64_t most = 0;
    const bool beyond = __builtin_mul_overflow(compressed, inflated_times, &most) ||
                        __builtin_add_overflow(most, inflated_bytes, &most);
    return beyond ? UINT64_MAX : most;
  }
  // Limits for trusted files: no file is refused for its cost.
  static constexpr reader_limits none() { return {UINT64_MAX, UINT64_MAX, 1, UINT64_MAX, UINT64_MAX, true}; }
};

namespace detail {

// Texts for the messages of every reader; the file's name comes before them.
std::string inflated_too_far(std::uint64_t compressed, const reader_limits& limits);
std::string too_many_entries(std::string_view what, const reader_limits& limits);
std::string record_too_long(std::string_view what, std::uint64_t bytes, const reader_limits& limits);
std::string empty_rows(std::uint64_t rows);

}  // namespace detail
}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "reader_limits.ipp"
#endif
