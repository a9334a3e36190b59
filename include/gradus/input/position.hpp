// A position is a sequence of bytes that describes where a pipeline stopped reading. Every stage appends its numbers
// and then those of the stage below it.
//
//   position  = text definition, stage...        the definition identifies the pipeline of the position
//   text      = int64 length, bytes              all numbers little-endian
//   stage     = int64...                         see the stage's `write`
//
// A position is read twice, the first time with `apply` false, so that everything is checked before anything changes
// and a refused position leaves the pipeline where it was.
#pragma once
#include "../base/build.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "../base/error.hpp"

namespace gradus::inline GRADUS_BUILD {

static_assert(std::endian::native == std::endian::little, "gradus: positions are stored as this machine holds numbers");

class position_writer {
public:
  explicit position_writer(std::vector<std::byte>& out) : out_(out) {}
  void number(std::int64_t value) { bytes({reinterpret_cast<const std::byte*>(&value), sizeof value}); }
  void bytes(std::span<const std::byte> b);

private:
  std::vector<std::byte>& out_;
};

// Reads a position. Raises data_loss for a position that ends too early or holds a number out of its range.
class position_reader {
public:
  position_reader(std::span<const std::byte> in, bool apply) : in_(in), apply_(apply) {}

  // Returns false if the caller may only check the bytes, and true if they were checked before and are to be taken.
  bool apply() const { return apply_; }
  std::size_t left() const { return in_.size(); }

  // Reads a number from `least` to `most`; `what` names it in the message.
  std::int64_t number(std::int64_t least, std::int64_t most, std::string_view what);
  std::span<const std::byte> bytes(std::uint64_t n, std::string_view what);

private:
  std::span<const std::byte> in_;
  bool apply_;
};

namespace detail {
// Writes the definition, with which a position begins.
void write_definition(position_writer& to, std::string_view definition);
// Raises data_loss if the position does not begin with this definition, and if bytes are left behind its end.
void check_definition(position_reader& from, std::string_view definition);
void check_end(const position_reader& from);

// A stage that reads ahead notes the position of its source, so that it can go back to where its consumer is: behind
// every pull, or, if the position has more than `large` bytes (a shuffle's buffer), behind one in `rare`. The pulls
// that the consumer has seen since are then repeated.
class position_notes {
public:
  static constexpr std::int64_t rare = 256;
  static constexpr std::size_t large = 4096;

  // Returns whether the position behind this pull is to be noted; it is called behind every one.
  bool is_due() { return bytes_ <= large || ++unnoted_ == rare; }
  void note(const auto& source, std::vector<std::byte>& to) {
    to.clear();
    position_writer writer(to);
    source.write(writer);
    bytes_ = to.size(), unnoted_ = 0;
  }

private:
  std::size_t bytes_ = 0;
  std::int64_t unnoted_ = 0;
};
}  // namespace detail

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "position.ipp"
#endif
