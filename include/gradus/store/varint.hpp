// Numbers in as few bytes as they need, seven bits in each, the lowest first, where a set top bit means that more bytes
// follow: the varints of protobuf and of LevelDB's tables. store/wire.hpp raises errors; this header returns them as
// values, so that a decoder can refuse a file with or without exceptions.
#pragma once
#include "../base/build.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace gradus::inline GRADUS_BUILD::detail {

static_assert(std::endian::native == std::endian::little,
              "gradus: fixed numbers of tables are copied from memory; this machine is big-endian.");

std::string_view as_chars(std::span<const std::byte> bytes);

void put_bytes(std::vector<std::byte>& out, std::span<const std::byte> bytes);
void put_bytes(std::vector<std::byte>& out, std::string_view chars);
template <class Number>
void put_fixed(std::vector<std::byte>& out, Number n) {
  put_bytes(out, std::as_bytes(std::span(&n, 1)));
}
void put_varint(std::vector<std::byte>& out, std::uint64_t n);

// Takes values from the front. Reading more than is left, or a number that does not end, returns zero or no bytes and
// makes the source `bad` for good.
class varint_source {
public:
  explicit varint_source(std::span<const std::byte> bytes) : rest_(bytes) {}

  bool bad() const { return bad_; }
  bool done() const { return bad_ || rest_.empty(); }
  std::size_t left() const { return rest_.size(); }

  std::uint64_t varint();
  // Takes a varint that must fit into 32 bits.
  std::uint32_t varint32();
  template <class Number>
  Number fixed() {
    Number n{};
    const auto from = take(sizeof n);
    if (!from.empty()) std::memcpy(&n, from.data(), sizeof n);
    return n;
  }
  // Takes n bytes, or none at all.
  std::span<const std::byte> take(std::uint64_t n);

private:
  std::uint64_t fail();
  std::span<const std::byte> rest_;
  bool bad_ = false;
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "varint.ipp"
#endif
