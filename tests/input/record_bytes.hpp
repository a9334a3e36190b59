// Four records, "first", "", 300 times "x", "last", as bytes: 373 plain, and as Python's gzip (mtime 0) and zlib
// modules compress these.
#pragma once
#include <gradus/store/file.hpp>
#include <gradus/store/record.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "example_bytes.hpp"

namespace record_bytes {

using example_bytes::hex;
using octets = std::vector<std::byte>;

inline const std::vector<std::string> four = {"first", "", std::string(300, 'x'), "last"};
inline constexpr std::size_t ends[] = {0, 21, 37, 353, 373};

inline octets octets_of(std::string_view s) {
  const auto b = std::as_bytes(std::span(s.data(), s.size()));
  return {b.begin(), b.end()};
}
inline octets plain(const std::vector<std::string>& records = four) {
  octets out;
  for (const auto& r : records) gradus::append_record(out, octets_of(r));
  return out;
}
inline constexpr std::string_view head = "0500000000000000eab2043e666972737455ff23e5000000000000000029039807d8ea82a2";
inline constexpr std::string_view gz =
    "1f8b080000000000000363658080579b58ecd2328b8a4b42ff2b3f858a316832cf60bff1aa69910e2384ffe95ff4dc8a51403438db344591"
    "051a964eae412c3989c525537eb6ac0200c60e500b75010000";
inline constexpr std::string_view zlib =
    "789c63658080579b58ecd2328b8a4b42ff2b3f858a316832cf60bff1aa69910e2384ffe95ff4dc8a51403438db344591051a964eae412c39"
    "89c525537eb6ac0200fc49a122";
// Two members, cut at byte 30, the first with a file name in its header.
inline constexpr std::string_view gz_of_two =
    "1f8b08080000000002ff6e616d652e74667265636f72640063658080579b58ecd2328b8a4b42ff2b3f858a3168020092aabe5b1e0000001f"
    "8b0800000000000403639ec17ee355d3221d460630f8f42f7a6ec528203a04ce364d516481041d83936b104b4e6271c9949f2dab009c857e"
    "c757010000";

template <class F>
void put(const F& fs, const std::string& path, std::span<const std::byte> bytes) {
  gradus::publish(fs, path, gradus::byte_pieces(&bytes, 1));
}

}  // namespace record_bytes
