// What the tasks of a cluster say to each other, as functions of bytes (readers.hpp).
#pragma once
#include <cstring>
#include <span>
#include <vector>

#include "gradus/cluster/hello.hpp"
#include "gradus/cluster/protocol/message.hpp"
#include "gradus/store/crc32c.hpp"
#include "text_readers.hpp"

namespace fuzz {

// A message that is taken is the only one that has its content: it comes back byte for byte.
inline bool read_message(std::span<const std::byte> frame) {
  detail::message_frames frames({.frame_bytes = 1 << 22});
  try {
    const detail::protocol_message m = frames.decode(frame, 1);
    unsigned sum = 0;
    for (const detail::wire_slice& s : m.parts) {
      must_hold(s.bytes.data() >= frame.data() && s.bytes.data() + s.bytes.size() <= frame.data() + frame.size(),
                "a slice outside its frame");
      for (const std::byte b : s.bytes) sum += std::to_integer<unsigned>(b);
    }
    volatile unsigned all_were_read = sum;
    (void)all_were_read;
    std::vector<std::byte> again;
    detail::message_frames answer;
    for (const auto piece : answer.encode(m)) again.insert(again.end(), piece.begin(), piece.end());
    must_hold(again.size() == frame.size() && std::memcmp(again.data(), frame.data(), again.size()) == 0,
              "a message that does not come back");
    return true;
  } catch (const error& e) {
    must_hold(e.kind() == status::data_loss || e.kind() == status::failed_precondition ||
                  e.kind() == status::resource_exhausted,
              e.what());
    return false;
  }
}
inline void seal_message(std::vector<std::byte>& frame) {
  if (frame.size() < 64) return;
  const auto put = [&](std::size_t at, std::span<const std::byte> of) {
    const auto crc = crc32c(of);
    std::memcpy(frame.data() + at, &crc, 4);
  };
  const std::span<const std::byte> all(frame);
  std::uint32_t table = 0;
  std::memcpy(&table, frame.data() + 48, 4);
  const std::uint64_t front = (std::uint64_t{64} + table + 63) / 64 * 64;
  if (front <= frame.size()) {
    put(52, all.subspan(static_cast<std::size_t>(front)));
    put(56, all.subspan(64, static_cast<std::size_t>(front) - 64));
  }
  put(60, all.first(60));
}
inline bool read_fingerprint(std::span<const std::byte> bytes) {
  try {
    const cluster_fingerprint f = cluster_fingerprint_from(bytes);
    const std::vector<std::byte> again = to_bytes(f);
    must_hold(again.size() == bytes.size() && std::memcmp(again.data(), bytes.data(), again.size()) == 0,
              "a fingerprint that does not come back");
    must_hold(difference_of(f, "a", f, "b").empty(), "a fingerprint that differs from itself");
    return true;
  } catch (const data_loss&) {
    return false;
  }
}

}  // namespace fuzz
