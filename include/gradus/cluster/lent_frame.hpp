// A lent_frame is a frame that waits to be sent and whose large slices still lie in their sender's memory. A transport
// copies the bytes when it writes them, some at a time, so that a large frame is not in memory beside what it is made
// of. A sender that changes the memory before that has the rest copied:
//
//   auto f = std::make_shared<lent_frame>(encoder.encode(head, slices));
//   f->read(to);                   // the next bytes, by the task that writes
//   f->part_with();                // by the sender: from now on its memory may change
#pragma once
#include "../base/build.hpp"

#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

namespace gradus::inline GRADUS_BUILD::detail {

class lent_frame {
public:
  // Pieces below this size are copied at once, and so is the first one, which is the encoder's.
  static constexpr std::size_t least_bytes = 4096;

  explicit lent_frame(std::span<const std::span<const std::byte>> pieces);
  lent_frame(const lent_frame&) = delete;
  lent_frame& operator=(const lent_frame&) = delete;

  std::size_t size() const { return size_; }
  // Returns the number of bytes that were not read yet. Only the task that reads calls these two.
  std::size_t left() const { return left_; }
  // Copies the next bytes, of which so many have to be left.
  void read(std::span<std::byte> to);
  // Copies what was not read yet; may be called while another task reads.
  void part_with();

private:
  std::mutex mutex_;
  std::size_t size_ = 0, left_ = 0;
  std::vector<std::byte> copied_;                   // small pieces, or the rest
  std::vector<std::span<const std::byte>> pieces_;  // in the order of the frame
  std::size_t next_ = 0, at_ = 0;                   // the piece that is read next, and where in it
  bool is_own_ = false;
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "lent_frame.ipp"
#endif
