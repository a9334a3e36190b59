// A frame_in_parts is a frame of which a part has been received. A library that hands over whole messages, as gRPC
// does, would hold a large frame beside our copy of it; so a frame is carried by several messages of `most_of_part`
// bytes, the last one shorter, and each is copied and given back before the next one is read.
#pragma once
#include "../base/build.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "stream_transport.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

inline constexpr std::size_t most_of_part = 8 << 20;

// The bytes of all frames of a transport that have been received in part, and the bound for them.
struct partial_bytes {
  std::uint64_t most = 0;
  std::atomic<std::uint64_t> held = 0;
};

class frame_in_parts {
public:
  explicit frame_in_parts(partial_bytes& all) : all_(&all) {}
  frame_in_parts(const frame_in_parts&) = delete;
  ~frame_in_parts() { forget(); }

  bool is_open() const { return whole_ != nullptr; }
  // Takes memory for a frame of so many bytes, in place of the present one.
  void open(std::shared_ptr<frame_pool> from, std::uint64_t bytes);
  // Returns the place for the next part. Raises data_loss if the frame has no room for it, and resource_exhausted if
  // the transport has none.
  std::byte* next(std::size_t bytes);
  bool is_whole() const { return at_ == whole_->memory.size(); }
  std::shared_ptr<pooled_frame> close();

private:
  partial_bytes* all_;
  std::shared_ptr<pooled_frame> whole_;
  std::size_t at_ = 0;

  void forget();
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "frame_in_parts.ipp"
#endif
