// flat_binary is the default codec: the frame of this library (frame.hpp) around a manifest in a fixed little-endian
// layout, which can be read without a library and is suited to the edge core.
//
//   manifest = i64 step, u32 count, count * (text key, text value), u32 count, count * tensor
//   tensor   = text name, u8 dtype, u8 blob, u8 rank, u8 0, rank * i64 extent, u64 offset, u64 bytes, u32 crc32c
//   text     = u32 length, bytes
#pragma once
#include "codec.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
class byte_sink;
struct manifest;
}  // namespace detail

struct flat_binary {
  using policy_for = kind::codec;
  static constexpr std::string_view name = "flat_binary";
  static constexpr std::string_view extension = ".ckpt", proof = extension;
  static constexpr bool checks_itself = true;

  encoded encode(const snapshot& content) const;
  decoded decode(checkpoint_files& files) const;

private:
  static void write(detail::byte_sink& out, const detail::manifest& m);

  // Returns the reason why the manifest cannot be read, or an empty text. Counts are not trusted: reading stops where
  // the bytes do.
  static std::string read(std::span<const std::byte> body, detail::manifest& m);
};
static_assert(codec<flat_binary>);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "flat.ipp"
#endif
