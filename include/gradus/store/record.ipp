// The bodies of record.hpp.
#pragma once
#include "../base/body.hpp"
#include "crc32c.hpp"
#include "record.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void put_fixed(std::byte* at, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) at[i] = static_cast<std::byte>(value >> (8 * i));
}

GRADUS_BODY std::uint64_t get_fixed(const std::byte* at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value |= std::to_integer<std::uint64_t>(at[i]) << (8 * i);
  return value;
}

GRADUS_BODY append_guard::~append_guard() {
  if (!keep) out.resize(size);
}

GRADUS_BODY void append_guard::frame() {
  const std::size_t begin = size + record_header_bytes, n = out.size() - begin;
  const std::uint32_t payload_crc = mask(crc32c(std::span<const std::byte>(out).subspan(begin, n)));
  out.resize(out.size() + record_footer_bytes);
  std::byte* header = out.data() + size;
  put_fixed(header, n, 8);
  put_fixed(header + 8, mask(crc32c(std::span<const std::byte>(header, 8))), 4);
  put_fixed(out.data() + begin + n, payload_crc, 4);
  keep = true;
}

GRADUS_BODY bool fits_masked_crc(std::span<const std::byte> bytes, const std::byte* masked) {
  return mask(crc32c(bytes)) == get_fixed(masked, 4);
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY void append_record(std::vector<std::byte>& out, std::span<const std::byte> payload) {
  append_record(out, [&](std::vector<std::byte>& o) { o.insert(o.end(), payload.begin(), payload.end()); });
}

GRADUS_BODY std::size_t span_source::read(std::span<std::byte> to) {
  const std::size_t n = std::min(to.size(), left.size());
  if (n != 0) std::memcpy(to.data(), left.data(), n);
  left = left.subspan(n);
  return n;
}

namespace detail {

GRADUS_BODY buffered_file::buffered_file(any_file_system fs, const std::string& path, std::size_t buffer)
    : fs_(std::move(fs)), path_(path), buffer_(std::max<std::size_t>(buffer, 1)) {
  std::uint64_t size = 0;
  const int e = uninterrupted([&] { return fs_.open_read(path_, handle_, size); });
  if (e != 0) raise({e, "open", path_});
  open_ = true;
}

GRADUS_BODY buffered_file::buffered_file(buffered_file&& other) noexcept
    : fs_(other.fs_),
      path_(std::move(other.path_)),
      buffer_(std::move(other.buffer_)),
      ready_(std::exchange(other.ready_, {})),
      handle_(other.handle_),
      open_(std::exchange(other.open_, false)) {}

GRADUS_BODY std::size_t buffered_file::read(std::span<std::byte> to) {
  std::size_t given = 0;
  while (given < to.size()) {
    if (ready_.left.empty()) {
      std::size_t moved = 0;
      const int e = uninterrupted([&] { return fs_.read(handle_, buffer_, moved); });
      if (e != 0) raise({e, "read", path_});
      if (moved == 0) break;
      ready_.left = std::span<const std::byte>(buffer_).first(moved);
    }
    given += ready_.read(to.subspan(given));
  }
  return given;
}

}  // namespace detail

}  // namespace gradus
