// The bodies of snappy.hpp.
#pragma once
#include "../base/body.hpp"
#include "snappy.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::string snappy_decode(std::span<const std::byte> in, std::size_t most, std::vector<std::byte>& out) {
  out.clear();
  detail::varint_source from(in);
  const std::uint64_t length = from.varint32();
  if (from.bad()) return "its Snappy length does not end";
  if (length > most || length > most_snappy_expansion * in.size())
    return text("its Snappy length ", length, " is too large: ", in.size(), " bytes, at most ", most, " may come out");
  out.reserve(static_cast<std::size_t>(length));
  while (!from.done()) {
    const auto tag = from.fixed<std::uint8_t>();
    std::uint64_t count = (tag >> 2) + 1u, offset = 0;
    const auto more = [&from](unsigned bytes) {  // a little-endian number of 1..4 bytes
      std::uint64_t n = 0;
      for (unsigned i = 0; i < bytes; ++i) n |= std::uint64_t{from.fixed<std::uint8_t>()} << (8 * i);
      return n;
    };
    switch (tag & 3) {
    case 0:
      if (count > 60) count = more(static_cast<unsigned>(count - 60)) + 1;
      break;
    case 1:
      count = ((tag >> 2) & 7u) + 4u;
      offset = std::uint64_t{tag} >> 5 << 8 | more(1);
      break;
    case 2: offset = more(2); break;
    default: offset = more(4); break;
    }
    if (from.bad() || count > length - out.size()) return "its Snappy stream is longer than it says, or cut off";
    if ((tag & 3) == 0) {
      const auto literal = from.take(count);
      if (from.bad()) return "its Snappy stream is cut off";
      detail::put_bytes(out, literal);
      continue;
    }
    if (offset == 0 || offset > out.size())
      return text("its Snappy stream copies from ", offset, " bytes back, where ", out.size(), " are");
    for (std::size_t at = out.size() - static_cast<std::size_t>(offset); count != 0; --count) out.push_back(out[at++]);
  }
  if (out.size() != length) return text("its Snappy stream gives ", out.size(), " of ", length, " bytes");
  return {};
}

}  // namespace gradus
