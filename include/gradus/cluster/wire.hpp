// The messages of a cluster as bytes: a head of 64 bytes, a table of slices, and the slices themselves.
// docs/formats/wire.md describes the format, with a worked example.
//
//   gradus::detail::message_encoder out;
//   const auto pieces = out.encode({.kind = message_kind::push, .sender = 2, .incarnation = 7, .sequence = 1},
//                                  {{{"w", float32, 0, std::as_bytes(gradient)}}});
//   // the driver writes the pieces one after another; data in an arena is sent from there without a copy
//
//   gradus::detail::message_decoder in;
//   const std::uint64_t bytes = in.frame_bytes(first_64_bytes);     // before any memory is taken for them
//   const decoded_message& m = in.decode(frame);                    // m.slices lie in `frame`
//
// No byte of a tensor is copied on either side. Every slice begins at a multiple of 64 bytes from the frame's
// beginning, so that it is aligned if the frame is. A peer is not trusted: a number that it sends is checked against
// the limits and the bytes that are there before memory is allocated by it. Malformed bytes raise data_loss, a number
// above a limit resource_exhausted, another version failed_precondition; the message has what came and what was
// expected.
#pragma once
#include "../base/build.hpp"

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../base/dtype.hpp"
#include "../base/error.hpp"
#include "wire_limits.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

static_assert(std::endian::native == std::endian::little,
              "gradus: messages are little-endian and arenas are sent as they lie; this machine is big-endian");

inline constexpr std::uint16_t wire_version = 1;
inline constexpr std::size_t wire_head_bytes = 64, wire_row_bytes = 32, wire_alignment = 64;

// protocol/message.hpp lists the senders and their messages.
enum class message_kind : std::uint16_t {
  hello = 1,
  join,
  joined,
  heartbeat,
  push,
  kept,
  staged,
  decide,
  drop,
  ask,
  token,
  pull,
  pulled,
  refused,
  leave,
  left,
  begin,
  begun,
  start,
  started,
  measured,
  settled,
  hold,
  held,
  release,
  fetch,
  fetched,
  ahead,
  call,  // of sessions (session_calls.hpp)
  answer
};
inline constexpr std::uint16_t last_message_kind = static_cast<std::uint16_t>(message_kind::answer);
std::string_view kind_name(message_kind k);

// The kind of a slice. `dense` has elements [begin, begin + count) of the flattened tensor. A sparse gradient is two
// slices of one name: `rows` has its row numbers (int64, ascending or not), `values` their values, row by row.
enum class slice_role : std::uint8_t { dense = 0, rows = 1, values = 2, ids = 3 };

// This is a view of a part of a named tensor.
struct wire_slice {
  std::string_view name;
  dtype type = dtype::none;
  std::uint64_t begin = 0;  // first element, in the flattened tensor
  std::span<const std::byte> bytes;
  slice_role role = slice_role::dense;

  std::uint64_t count() const { return bytes.size() / size_of(type); }
};

inline std::uint64_t payload_bytes(std::span<const wire_slice> slices) {
  std::uint64_t n = 0;
  for (const wire_slice& s : slices) n += s.bytes.size();
  return n;
}

// Returns the problem of a malformed slice, as the end of a sentence; empty if there is none.
std::string problem_of(const wire_slice& s);

struct message_head {
  message_kind kind = message_kind::hello;
  std::uint32_t sender = 0;       // node number
  std::uint64_t incarnation = 0;  // of the worker that the message is about
  std::uint64_t sequence = 0;
  std::uint64_t about = 0;  // a step, an order or a code, depending on the kind

  friend bool operator==(const message_head&, const message_head&) = default;
};

class message_encoder {
public:
  explicit message_encoder(wire_limits limits = {}) : limits_(limits) {}
  // Returns the frame as pieces, to be written in this order. They are valid until the next call, as long as the memory
  // of the slices does not change. Memory is allocated only while messages grow. Raises invalid_argument, or
  // resource_exhausted for the limits, for a message that its receiver would refuse.
  std::span<const std::span<const std::byte>> encode(const message_head& head, std::span<const wire_slice> slices = {});
  std::span<const std::span<const std::byte>> encode(const message_head& head,
                                                     std::initializer_list<wire_slice> slices) {
    return encode(head, std::span(slices.begin(), slices.size()));
  }
  // Returns the length of the last message's frame.
  std::uint64_t frame_bytes() const { return frame_bytes_; }

private:
  wire_limits limits_;
  std::vector<std::byte> front_;  // head and table
  std::vector<std::span<const std::byte>> pieces_;
  std::uint64_t frame_bytes_ = 0;
};

struct decoded_message {
  message_head head;
  std::vector<wire_slice> slices;  // names and bytes lie in the frame
};

class message_decoder {
public:
  explicit message_decoder(wire_limits limits = {}) : limits_(limits) {}
  // Returns the length of the frame that begins with these bytes, 64 or more. Raises an error if no frame begins there,
  // or one that is not accepted: the driver then closes the connection, since the next frame cannot be found.
  std::uint64_t frame_bytes(std::span<const std::byte> head) const;
  // Decodes one whole frame. The result is valid until the next call, its slices as long as `frame`.
  const decoded_message& decode(std::span<const std::byte> frame);

private:
  wire_limits limits_;
  decoded_message message_;
  std::vector<std::uint32_t> by_name_;  // for the search for overlaps
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "wire.ipp"
#endif
