// The one door to zlib: gzip (RFC 1952) and zlib (RFC 1950) data, told apart by content; and what ZIP files need.
//
// Compressed bytes come from outside and may be a bomb, so nothing is allocated on their word: a stream is read into
// memory that the caller has, and `inflate` grows with what really comes out, up to a limit.
#pragma once
#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../base/error.hpp"

namespace gradus {

// One compressed byte becomes at most 1032: a file that promises more lies (deflate's longest match, 258 bytes, in 2
// bits).
inline constexpr std::uint64_t most_inflation = 1032;

// gzip data starts with 1f 8b.
constexpr bool is_gzip(std::span<const std::byte> in) {
  return in.size() >= 2 && in[0] == std::byte{0x1f} && in[1] == std::byte{0x8b};
}

// The bytes behind compressed ones, in order, a piece at a time. Does not own `in`, which must outlive it. Several gzip
// members in a row count as one, as gzip has it.
//
// Errors: data_loss for data that is corrupt (a bad block, a bad checksum), truncated, or followed by something else.
// `name` is what messages call the data.
class inflate_stream {
public:
  explicit inflate_stream(std::span<const std::byte> in, std::string_view name) : in_(in), name_(name) {
    constexpr int gzip_or_zlib = 32;
    if (::inflateInit2(&zlib_, MAX_WBITS + gzip_or_zlib) != Z_OK)
      raise(status::resource_exhausted, text(name_, ": no memory for a decompressor"));
  }
  inflate_stream(const inflate_stream&) = delete;  // zlib's state points back at zlib_
  inflate_stream& operator=(const inflate_stream&) = delete;
  ~inflate_stream() { ::inflateEnd(&zlib_); }

  // Fills `out` and returns how many bytes it wrote: fewer than asked for only at the end of the data.
  std::size_t read(std::span<std::byte> out) {
    std::size_t done = 0;
    while (done < out.size() && !ended_) {
      const std::size_t offered = std::min(in_.size() - used_, piece);
      const std::size_t wanted = std::min(out.size() - done, piece);
      zlib_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(in_.data() + used_));  // read only
      zlib_.avail_in = static_cast<uInt>(offered);
      zlib_.next_out = reinterpret_cast<Bytef*>(out.data() + done);
      zlib_.avail_out = static_cast<uInt>(wanted);
      const int result = ::inflate(&zlib_, Z_NO_FLUSH);
      const std::size_t taken = offered - zlib_.avail_in, given = wanted - zlib_.avail_out;
      used_ += taken, done += given;
      if (result == Z_STREAM_END)
        next_member();
      else if (result == Z_MEM_ERROR)
        raise(status::resource_exhausted, text(name_, ": no memory to decompress"));
      else if (result != Z_OK && result != Z_BUF_ERROR)
        raise(status::data_loss, text(name_, ": expected compressed data, found something else at byte ", used_,
                                      " (zlib: ", zlib_.msg != nullptr ? zlib_.msg : "a dictionary is needed",
                                      "); the file is corrupt, get it again"));
      else if (used_ == in_.size() && given == 0)
        raise(status::data_loss, text(name_, ": the compressed data stops after ", in_.size(),
                                      " bytes, before its end; the file is truncated, get it again"));
    }
    return done;
  }
  // True once all data, and its checksum, has been read.
  bool ended() const { return ended_; }

private:
  static constexpr std::size_t piece = std::size_t{1} << 30;  // zlib counts in 32 bits

  void next_member() {
    const auto rest = in_.subspan(used_);
    if (rest.empty()) {
      ended_ = true;
    } else if (is_gzip(in_) && is_gzip(rest)) {
      ::inflateReset(&zlib_);
    } else {
      raise(status::data_loss, text(name_, ": expected the end after byte ", used_, " of the compressed data, found ",
                                    rest.size(), " bytes more; the file is damaged, get it again"));
    }
  }

  z_stream zlib_ = {};
  std::span<const std::byte> in_;
  std::string name_;
  std::size_t used_ = 0;
  bool ended_ = false;
};

// All bytes behind `in`, at most `most`. Error beside those of the stream: resource_exhausted if there are more.
inline std::vector<std::byte> inflate(std::span<const std::byte> in, std::size_t most, std::string_view name) {
  inflate_stream stream(in, name);
  std::vector<std::byte> out;
  while (!stream.ended()) {
    const std::size_t have = out.size();
    if (have == most) {
      std::byte one_more;
      if (stream.read({&one_more, 1}) == 0) break;
      raise(status::resource_exhausted,
            text(name, ": decompresses to more than ", most, " bytes; raise the limit if the data is to be trusted"));
    }
    const std::size_t step = std::max<std::size_t>(have, std::size_t{1} << 14);
    out.resize(have + std::min(step, most - have));
    out.resize(have + stream.read(std::span(out).subspan(have)));
  }
  return out;
}

// CRC-32 as gzip, ZIP and PNG have it, of bytes that follow those whose checksum is `before`.
inline std::uint32_t zip_crc32(std::span<const std::byte> bytes, std::uint32_t before = 0) {
  if (bytes.empty()) return before;  // zlib takes no pointer for a request to begin anew
  return static_cast<std::uint32_t>(::crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

// Raw deflate data (RFC 1951, as a member of a ZIP file is), known to become `size` bytes. Refuses by value: why it is
// not that, or nothing. `out` grows with what comes out, so that a size that lies costs nothing.
inline std::string inflate_raw(std::span<const std::byte> in, std::uint64_t size, std::vector<std::byte>& out) {
  out.clear();
  if (size / most_inflation > in.size() + 1)
    return text("it claims that ", in.size(), " bytes become ", size, ", which deflate cannot do");
  z_stream zlib = {};
  if (::inflateInit2(&zlib, -MAX_WBITS) != Z_OK) return "no memory for a decompressor";
  struct closer {
    z_stream* zlib;
    ~closer() { ::inflateEnd(zlib); }
  } const close_at_end{&zlib};
  constexpr std::size_t piece = std::size_t{1} << 30;  // zlib counts in 32 bits
  std::size_t used = 0, done = 0;
  for (int result = Z_OK; result != Z_STREAM_END;) {
    if (done == out.size() && done < size)
      out.resize(static_cast<std::size_t>(
          std::min<std::uint64_t>(size, done + std::max<std::size_t>(done, std::size_t{1} << 14))));
    const std::size_t offered = std::min(in.size() - used, piece), wanted = std::min(out.size() - done, piece);
    std::byte none;
    zlib.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(in.data() + used));  // read only
    zlib.avail_in = static_cast<uInt>(offered);
    zlib.next_out = reinterpret_cast<Bytef*>(wanted == 0 ? &none : out.data() + done);
    zlib.avail_out = static_cast<uInt>(wanted);
    result = ::inflate(&zlib, Z_NO_FLUSH);
    const std::size_t taken = offered - zlib.avail_in, given = wanted - zlib.avail_out;
    used += taken, done += given;
    if (result == Z_MEM_ERROR) return "no memory to decompress";
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
      return text("its compressed data is damaged at byte ", used);
    if (result != Z_STREAM_END && taken == 0 && given == 0)
      return done == size ? text("its compressed data does not end after the ", size, " bytes that it claims")
                          : text("its compressed data stops after ", done, " of ", size, " bytes");
  }
  if (done != size || used != in.size())
    return text(in.size(), " bytes that become ", size, " are claimed, ", used, " bytes became ", done);
  return {};
}

}  // namespace gradus
