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
}  // namespace detail

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "position.ipp"
#endif
