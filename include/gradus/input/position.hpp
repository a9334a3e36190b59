// Where a pipeline stopped reading, as bytes. Every stage appends its numbers and then those of the stage below it.
//
//   position  = text definition, stage...        the definition says which pipeline this is a position in
//   text      = int64 length, bytes              all numbers little-endian
//   stage     = int64...                         see the stage's `write`
//
// A position is read twice, first with `apply` false: everything is checked before anything changes, so that a refused
// position leaves the pipeline where it was.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "../base/error.hpp"

namespace gradus {

static_assert(std::endian::native == std::endian::little, "gradus: positions are stored as this machine holds numbers");

class position_writer {
public:
  explicit position_writer(std::vector<std::byte>& out) : out_(out) {}
  void number(std::int64_t value) { bytes({reinterpret_cast<const std::byte*>(&value), sizeof value}); }
  void bytes(std::span<const std::byte> b) { out_.insert(out_.end(), b.begin(), b.end()); }

private:
  std::vector<std::byte>& out_;
};

// Errors: data_loss for a position that ends too early or holds a number that cannot be.
class position_reader {
public:
  position_reader(std::span<const std::byte> in, bool apply) : in_(in), apply_(apply) {}

  // False: only check. True: the same bytes were checked before; take them.
  bool apply() const { return apply_; }
  std::size_t left() const { return in_.size(); }

  // A number from `least` to `most`; `what` is what it counts, for the message.
  std::int64_t number(std::int64_t least, std::int64_t most, std::string_view what) {
    std::int64_t value = 0;
    const auto from = bytes(sizeof value, what);
    std::memcpy(&value, from.data(), sizeof value);
    if (value < least || value > most)
      raise(status::data_loss, text("the saved input position is damaged: expected ", what, " from ", least, " to ",
                                    most, ", found ", value));
    return value;
  }
  std::span<const std::byte> bytes(std::uint64_t n, std::string_view what) {
    if (n > in_.size())
      raise(status::data_loss,
            text("the saved input position is damaged: expected ", n, " bytes for ", what, ", found ", in_.size()));
    const auto piece = in_.first(static_cast<std::size_t>(n));
    in_ = in_.subspan(static_cast<std::size_t>(n));
    return piece;
  }

private:
  std::span<const std::byte> in_;
  bool apply_;
};

}  // namespace gradus
