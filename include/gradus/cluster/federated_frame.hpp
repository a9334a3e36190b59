// Frames of federated rounds: the messages between a server and boards over a stream of bytes (a UART, a radio, a
// socket), and how a receiver finds them in it again after bytes were lost, flipped or repeated. The code uses no heap
// and no exceptions. docs/formats/federated.md describes the bytes.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "../base/error.hpp"
#include "../base/shape.hpp"
#include "../store/flash_format.hpp"

namespace gradus::inline GRADUS_BUILD {

// The result of receiving a frame. Only a frame that is `taken` changes any state.
enum class federated_answer : std::uint8_t {
  taken,
  damaged,        // its head or its numbers do not match their checksum, or it was cut
  foreign,        // its head is not for this receiver: of another kind, run or member
  newer_version,  // of a newer format
  another_model,  // of variables with other names, types, shapes or order
  late,           // of a round that has ended, or trained from a model that is no longer the round's
  early,          // of a round that has not begun
  repeated,       // the frame of this round was taken before
  bad_numbers,    // it has a number that is infinite or NaN
  bad_examples    // trained on no example, or on more than options.most_examples
};
constexpr const char* message_of(federated_answer a) {
  constexpr const char* messages[] = {
      "the frame was taken",
      "the frame is damaged: its checksum is another, or it was cut; it has to be sent again",
      "the frame is foreign: of another kind, run or member; check which stream is connected where",
      "the frame has a newer format than 1, which this program reads; load a newer program",
      "the frame is of another model: names, types, shapes or the order of its variables differ; load programs of one "
      "model",
      "the frame is late: its round has ended, or its model is no longer the round's; the next model begins another",
      "the frame is early: its round has not begun; check that one server leads this run",
      "the frame is repeated: this round's was taken before",
      "the frame has numbers that are infinite or NaN; train with a smaller rate, or with a clip, and restart "
      "the rule's slots if they are not finite either (restart_mirrors, once the next model has come)",
      "the frame was trained on no example, or on more than options.most_examples"};
  return messages[static_cast<int>(a)];
}

// The number of frames with each answer, and the number of bytes that belonged to no frame that was read to its end:
// noise, flipped marks, the numbers of refused frames.
struct federated_counts {
  std::uint32_t of[10] = {};
  std::uint32_t skipped_bytes = 0;

  constexpr std::uint32_t operator[](federated_answer a) const { return of[static_cast<int>(a)]; }
  constexpr void add(federated_answer a) { ++of[static_cast<int>(a)]; }
  constexpr std::uint32_t refused() const {
    std::uint32_t n = 0;
    for (const std::uint32_t one : of) n += one;
    return n - of[0];
  }
};

namespace detail {

struct federated_frame {
  enum kind : std::uint8_t { model = 1, update = 2 };
  static constexpr std::uint8_t version = 1;
  static constexpr std::uint16_t server = 0xffff;          // in place of a member's number
  static constexpr std::uint32_t most_examples = 1 << 29;  // its product with a float32 is exact in a double
  static constexpr std::size_t head_bytes = 40;
  static constexpr std::byte mark[4] = {std::byte{'G'}, std::byte{'R'}, std::byte{'F'}, std::byte{'D'}};

  // The head, without the mark before it and the checksum behind it.
  std::uint8_t version_of = version, kind_of = model;
  std::uint16_t member = server;
  std::uint32_t run = 0, round = 0, fingerprint = 0, examples = 0, bytes = 0, crc = 0;
  std::uint32_t model_crc = 0;  // of the numbers that the update was trained from

  void write(std::byte* to) const {
    std::memcpy(to, mark, sizeof mark);
    const auto put = [to](std::size_t at, std::uint32_t n, std::size_t width = 4) {
      for (std::size_t i = 0; i < width; ++i) to[at + i] = static_cast<std::byte>(n >> (8 * i) & 0xffu);
    };
    put(4, version_of, 1), put(5, kind_of, 1), put(6, member, 2);
    const std::uint32_t words[] = {run, round, fingerprint, examples, bytes, crc, model_crc};
    for (std::size_t i = 0; i < 7; ++i) put(8 + 4 * i, words[i]);
    put(36, crc32c_by_nibble(0, to, 36));
  }
  // Reads a head. Returns false if the checksum does not match.
  bool read(const std::byte* from) {
    const auto get = [from](std::size_t at, std::size_t width = 4) {
      std::uint32_t n = 0;
      for (std::size_t i = width; i-- != 0;) n = n << 8 | std::to_integer<std::uint32_t>(from[at + i]);
      return n;
    };
    version_of = static_cast<std::uint8_t>(get(4, 1)), kind_of = static_cast<std::uint8_t>(get(5, 1));
    member = static_cast<std::uint16_t>(get(6, 2));
    run = get(8), round = get(12), fingerprint = get(16), examples = get(20), bytes = get(24), crc = get(28),
    model_crc = get(32);
    return get(36) == crc32c_by_nibble(0, from, 36);
  }
};

// Returns whether all of these little-endian float32 numbers are finite.
inline bool all_finite(std::span<const std::byte> floats) {
  for (std::size_t i = 0; i < floats.size(); i += 4)
    if ((floats[i + 3] & std::byte{0x7f}) == std::byte{0x7f} && (floats[i + 2] & std::byte{0x80}) != std::byte{0})
      return false;
  return true;
}
// Copies float32 numbers to or from little-endian bytes.
inline void copy_floats(std::byte* to, const std::byte* from, std::size_t bytes) {
  if constexpr (std::endian::native == std::endian::little)
    std::memcpy(to, from, bytes);
  else
    for (std::size_t i = 0; i < bytes; ++i) to[i] = from[i / 4 * 4 + (3 - i % 4)];
}

// Calls f(piece) with float32 numbers as little-endian bytes: with all at once, or in pieces on a big-endian machine.
template <class F>
void each_piece(std::span<const std::byte> numbers, F&& f) {
  if constexpr (std::endian::native == std::endian::little) {
    f(numbers);
  } else {
    std::byte piece[64];
    for (std::size_t at = 0; at < numbers.size(); at += sizeof piece) {
      const std::size_t n = std::min(sizeof piece, numbers.size() - at);
      copy_floats(piece, numbers.data() + at, n);
      f(std::span<const std::byte>(piece, n));
    }
  }
}

// Finds frames in a stream. `next` consumes bytes until there is an event:
//   head:     a whole head has come, head(); call accept to read its numbers
//   payload:  all numbers of frame() have come, in `room`
//   damaged:  a checksum did not match
//   nothing:  all bytes are consumed
// Every byte is checked for the beginning of a head, also those of numbers: a head within numbers means that their
// frame was cut. So the next whole frame is found, each byte is read once, and only one head is buffered.
class federated_receiver {
public:
  enum class event : std::uint8_t { nothing, head, payload, damaged };

  // `room` is as long as a frame's numbers, and the same memory at each call.
  event next(std::span<const std::byte>& bytes, std::span<std::byte> room) {
    for (;;) {
      if (have_ == sizeof bytes_) {
        const bool whole = head_.read(bytes_);
        have_ = whole ? 0 : have_ - 1;
        if (whole) return event::head;
        std::memmove(bytes_, bytes_ + 1, have_);
        look();
        if (!in_payload_) return event::damaged;  // otherwise these were numbers that look like a mark
      }
      if (bytes.empty()) return event::nothing;
      const std::byte b = bytes[0];
      bytes = bytes.subspan(1);
      if (have_ != 0 || b == federated_frame::mark[0]) bytes_[have_++] = b, look();
      if (!in_payload_) {
        ++skipped_;
        continue;
      }
      room[at_++] = b;
      if (at_ != room.size()) continue;
      in_payload_ = false, skipped_before_ = skipped_;
      if (crc32c_by_nibble(0, room.data(), room.size()) != frame_.crc) return event::damaged;
      have_ = 0;
      return event::payload;
    }
  }
  const federated_frame& head() const { return head_; }
  const federated_frame& frame() const { return frame_; }
  // Begins to read the numbers of head(). Returns true if another frame's numbers were being read: that frame was cut.
  bool accept() {
    const bool cut = in_payload_;
    // A head that began within the numbers of a damaged frame was not counted from its beginning.
    if (!cut) skipped_ -= std::min(static_cast<std::uint32_t>(sizeof bytes_), skipped_ - skipped_before_);
    frame_ = head_, in_payload_ = true, at_ = 0;
    return cut;
  }
  // Restarts after the stream was connected anew. Returns true if a frame had begun.
  bool restart() {
    const bool begun = in_payload_ || have_ != 0;
    in_payload_ = false, have_ = at_ = 0;
    return begun;
  }
  std::uint32_t skipped_bytes() const { return skipped_; }

private:
  federated_frame head_, frame_;
  std::byte bytes_[federated_frame::head_bytes] = {};
  bool in_payload_ = false;
  std::uint32_t have_ = 0, at_ = 0;                 // bytes that have come of a head, and of numbers
  std::uint32_t skipped_ = 0, skipped_before_ = 0;  // now, and when the last numbers ended

  // Drops bytes until those that are left may be the beginning of a head.
  void look() {
    while (have_ != 0 && std::memcmp(bytes_, federated_frame::mark, std::min<std::size_t>(have_, 4)) != 0)
      std::memmove(bytes_, bytes_ + 1, --have_);
  }
};

// A list for list_variables that measures a frame: a frame holds the variables of float32, in order, and no others.
struct federated_measure {
  std::uint32_t fingerprint = 0;
  std::size_t bytes = 0;

  void tensor(std::string_view name, dtype type, const extents& dims, std::span<std::byte> values) {
    if (type != float32) return;
    const std::uint32_t id = flash_format::little(flash_format::identity(name, type, dims).id);
    fingerprint = crc32c_by_nibble(fingerprint, reinterpret_cast<const std::byte*>(&id), sizeof id);
    bytes += values.size();
  }
};

}  // namespace detail

}  // namespace gradus
