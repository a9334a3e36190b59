// Numbers in as few bytes as they need, seven bits in each, the lowest first, a set top bit meaning "more follow":
// those of protobuf and of LevelDB's tables. Where store/wire.hpp raises, this reads by value, so that a decoder can
// refuse a file with or without exceptions.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace gradus::detail {

static_assert(std::endian::native == std::endian::little,
              "gradus: fixed numbers of tables are copied from memory; this machine is big-endian.");

inline std::string_view as_chars(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline void put_bytes(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}
inline void put_bytes(std::vector<std::byte>& out, std::string_view chars) {
  put_bytes(out, std::as_bytes(std::span(chars)));
}
template <class Number>
void put_fixed(std::vector<std::byte>& out, Number n) {
  put_bytes(out, std::as_bytes(std::span(&n, 1)));
}
inline void put_varint(std::vector<std::byte>& out, std::uint64_t n) {
  for (; n >= 0x80; n >>= 7) out.push_back(static_cast<std::byte>(n | 0x80));
  out.push_back(static_cast<std::byte>(n));
}

// Takes from the front. Asking for more than is left, or for a number that does not end, gives nothing and turns the
// source bad for good.
class varint_source {
public:
  explicit varint_source(std::span<const std::byte> bytes) : rest_(bytes) {}

  bool bad() const { return bad_; }
  bool done() const { return bad_ || rest_.empty(); }
  std::size_t left() const { return rest_.size(); }

  std::uint64_t varint() {
    std::uint64_t n = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto b = std::to_integer<std::uint64_t>(rest_.front());
      rest_ = rest_.subspan(1);
      if (shift == 63 && b > 1) break;  // more than 64 bits
      n |= (b & 0x7F) << shift;
      if (b < 0x80) return n;
    }
    return fail();
  }
  // One that must fit into 32 bits.
  std::uint32_t varint32() {
    const std::uint64_t n = varint();
    return static_cast<std::uint32_t>(n <= std::numeric_limits<std::uint32_t>::max() ? n : fail());
  }
  template <class Number>
  Number fixed() {
    Number n{};
    const auto from = take(sizeof n);
    if (!from.empty()) std::memcpy(&n, from.data(), sizeof n);
    return n;
  }
  // n bytes, or none at all.
  std::span<const std::byte> take(std::uint64_t n) {
    if (bad_ || n > rest_.size()) return fail(), std::span<const std::byte>{};
    const auto front = rest_.first(static_cast<std::size_t>(n));
    rest_ = rest_.subspan(front.size());
    return front;
  }

private:
  std::uint64_t fail() {
    bad_ = true;
    rest_ = {};
    return 0;
  }
  std::span<const std::byte> rest_;
  bool bad_ = false;
};

}  // namespace gradus::detail
