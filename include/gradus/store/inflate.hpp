// gzip (RFC 1952) and zlib (RFC 1950) data, read (distinguished by content) and written, and the functions for ZIP
// files; zlib is used here and nowhere else. It is used if GRADUS_ZLIB is defined; otherwise compressed data are
// refused where they are read or written (no_zlib.hpp).
//
// Compressed bytes come from outside and may be a decompression bomb, so nothing is allocated for a claimed size: a
// stream is read into the caller's memory, and the output of `inflate` grows with what was really decompressed, up to a
// limit.
#pragma once
#include "../base/build.hpp"  // first: it reads the macros of optional libraries

#if defined(GRADUS_ZLIB)
#include <zlib.h>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../base/error.hpp"
#include "no_zlib.hpp"
#include "reader_limits.hpp"

namespace gradus::inline GRADUS_BUILD {

// One compressed byte becomes at most 1032 bytes (deflate's longest match, 258 bytes, in 2 bits): a file that claims
// more is wrong.
inline constexpr std::uint64_t most_inflation = 1032;

// gzip data starts with 1f 8b.
constexpr bool is_gzip(std::span<const std::byte> in) {
  return in.size() >= 2 && in[0] == std::byte{0x1f} && in[1] == std::byte{0x8b};
}

namespace detail {
#if !defined(GRADUS_ZLIB)
using no_zlib::inflate_state;
#else
// Deflate data in the format of zlib or gzip, one step at a time; both streams below use this.
class inflate_state {
public:
  explicit inflate_state(std::string_view name) : name_(name) {
    constexpr int gzip_or_zlib = 32;
    if (::inflateInit2(&zlib_, MAX_WBITS + gzip_or_zlib) != Z_OK)
      raise(status::resource_exhausted, text(name_, ": no memory for a decompressor"));
  }
  inflate_state(const inflate_state&) = delete;  // zlib's state points back at zlib_
  inflate_state& operator=(const inflate_state&) = delete;
  ~inflate_state() { ::inflateEnd(&zlib_); }

  struct progress {
    std::size_t taken = 0, given = 0;
    bool ended = false;  // a member's end, its checksum right
    bool bad = false;    // `damaged` raises the problem; every later step is bad, too
  };
  progress step(std::span<const std::byte> in, std::span<std::byte> out) {
    constexpr std::size_t piece = std::size_t{1} << 30;  // zlib counts in 32 bits
    const std::size_t offered = std::min(in.size(), piece), wanted = std::min(out.size(), piece);
    zlib_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(in.data()));  // read only
    zlib_.avail_in = static_cast<uInt>(offered);
    zlib_.next_out = reinterpret_cast<Bytef*>(out.data());
    zlib_.avail_out = static_cast<uInt>(wanted);
    const int result = ::inflate(&zlib_, Z_NO_FLUSH);
    const std::size_t taken = offered - zlib_.avail_in;
    used_ += taken;
    no_memory_ = result == Z_MEM_ERROR;
    return {taken, wanted - zlib_.avail_out, result == Z_STREAM_END,
            result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR};
  }
  void next_member() { ::inflateReset(&zlib_); }
  std::uint64_t used() const { return used_; }
  [[noreturn]] void damaged() const {
    if (no_memory_) raise(status::resource_exhausted, text(name_, ": no memory to decompress"));
    raise(status::data_loss, text(name_, ": expected compressed data, found something else at byte ", used_,
                                  " (zlib: ", zlib_.msg != nullptr ? zlib_.msg : "a dictionary is needed",
                                  "); the file is corrupt, get it again"));
  }
  [[noreturn]] void truncated() const {
    raise(status::data_loss, text(name_, ": the compressed data stops after ", used_,
                                  " bytes, before its end; the file is truncated, get it again"));
  }
  [[noreturn]] void followed_by(std::string_view found) const {
    raise(status::data_loss, text(name_, ": expected the end after byte ", used_, " of the compressed data, found ",
                                  found, "; the file is damaged, get it again"));
  }

private:
  z_stream zlib_ = {};
  std::string name_;
  std::uint64_t used_ = 0;
  bool no_memory_ = false;
};
#endif
}  // namespace detail

// The decompressed bytes of `in`, in order, a piece at a time. It does not own `in`, which must outlive it. Several
// gzip members in a row count as one, as gzip defines it.
//
// Raises data_loss for data that is corrupt (a bad block, a bad checksum), truncated, or followed by something else.
// Messages call the data `name`.
class inflate_stream {
public:
  explicit inflate_stream(std::span<const std::byte> in, std::string_view name) : in_(in), state_(name) {}

  // Fills `out` and returns how many bytes it wrote: fewer than requested only at the end of the data.
  std::size_t read(std::span<std::byte> out);
  // Returns true once all data, and its checksum, has been read.
  bool ended() const { return ended_; }

private:
  void next_member(std::span<const std::byte> rest);

  std::span<const std::byte> in_;
  detail::inflate_state state_;
  bool ended_ = false;
};

// The same from a source whose `read` fills its span as far as there are bytes (store/record.hpp's byte_source): for
// files of any size, with the memory of one buffer.
template <class Source>
class inflate_source {
public:
  inflate_source(Source source, std::string_view name, std::size_t buffer = 1 << 16)
      : source_(std::move(source)), buffer_(std::max<std::size_t>(buffer, 2)), state_(name) {}

  // From damaged data, all bytes that were decompressed before the damage are returned, by a short read; the next read
  // raises. The same holds for errors of the source, which may be temporary.
  std::size_t read(std::span<std::byte> out) {
    std::size_t done = 0;
    while (done < out.size() && !ended_) {
      if (left_.empty() && !fill(done > 0)) break;
      const auto p = state_.step(left_, out.subspan(done));
      left_ = left_.subspan(p.taken), done += p.given;
      if (p.ended && left_.size() < 2 && !fill(done > 0)) break;
      const bool cut = !p.ended && left_.empty() && p.given == 0 && dry_;
      if (!p.bad && !cut && !(p.ended && followed())) continue;
      if (done > 0) break;
      if (p.bad) state_.damaged();
      if (cut) state_.truncated();
      state_.followed_by("more");
    }
    return done;
  }
  bool ended() const { return ended_; }
  // Returns the number of compressed bytes that were used so far.
  std::uint64_t used() const { return state_.used(); }

private:
  // Appends the source's bytes behind the remaining ones. Returns false if that failed and the error can wait.
  bool fill(bool can_wait = false) {
    try {
      fill_now();
    } catch (const error&) {
      if (!can_wait) throw;
      return false;
    }
    return true;
  }
  void fill_now() {
    if (dry_) return;
    const std::size_t kept = left_.size();
    if (kept != 0) std::memmove(buffer_.data(), left_.data(), kept);
    const std::size_t got = source_.read(std::span(buffer_).subspan(kept));
    dry_ = kept + got < buffer_.size();
    left_ = std::span<const std::byte>(buffer_).first(kept + got);
    if (!begun_) gzip_ = is_gzip(left_), begun_ = true;
  }
  // Called at a member's end: returns true if the next bytes are no member.
  bool followed() {
    ended_ = left_.empty();
    if (ended_ || !gzip_ || !is_gzip(left_)) return !ended_;
    state_.next_member();
    return false;
  }

  Source source_;
  std::vector<std::byte> buffer_;
  std::span<const std::byte> left_;  // the part of the buffer that was not used yet
  detail::inflate_state state_;
  bool begun_ = false, gzip_ = false, dry_ = false, ended_ = false;
};

// Returns all decompressed bytes of `in`, at most `most`. Raises the errors of the stream, and resource_exhausted if
// there are more.
std::vector<std::byte> inflate(std::span<const std::byte> in, std::size_t most, std::string_view name);

#if !defined(GRADUS_ZLIB)
using detail::no_zlib::deflate_stream;
using detail::no_zlib::inflate_raw;
using detail::no_zlib::is_zlib;
using detail::no_zlib::zip_crc32;
#else
// Compresses a stream as gzip or zlib, by default at the default level.
class deflate_stream {
public:
  explicit deflate_stream(bool gzip, int level = Z_DEFAULT_COMPRESSION) {
    constexpr int gzip_header = 16, memory = 9;  // 9 is the value of TensorFlow's writers
    if (::deflateInit2(&zlib_, level, Z_DEFLATED, MAX_WBITS + (gzip ? gzip_header : 0), memory, Z_DEFAULT_STRATEGY) !=
        Z_OK)
      raise(status::invalid_argument, text("cannot compress at level ", level, "; expected 0 to 9, or -1 for zlib's"));
  }
  deflate_stream(const deflate_stream&) = delete;
  deflate_stream& operator=(const deflate_stream&) = delete;
  ~deflate_stream() { ::deflateEnd(&zlib_); }

  // Appends to `out` the output that is complete for the bytes so far.
  void write(std::span<const std::byte> bytes, std::vector<std::byte>& out) { run(bytes, out, Z_NO_FLUSH); }
  // Appends output from which all bytes so far can be read; this costs some bytes.
  void flush(std::vector<std::byte>& out) { run({}, out, Z_SYNC_FLUSH); }
  // Appends the end, with its checksum. Nothing may follow.
  void finish(std::vector<std::byte>& out) { run({}, out, Z_FINISH); }

private:
  void run(std::span<const std::byte> bytes, std::vector<std::byte>& out, int how) {
    constexpr std::size_t piece = std::size_t{1} << 30, room = std::size_t{1} << 14;
    do {
      const auto now = bytes.first(std::min(bytes.size(), piece));
      bytes = bytes.subspan(now.size());
      zlib_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(now.data()));  // read only
      zlib_.avail_in = static_cast<uInt>(now.size());
      do {
        const std::size_t have = out.size();
        out.resize(have + room);
        zlib_.next_out = reinterpret_cast<Bytef*>(out.data() + have);
        zlib_.avail_out = static_cast<uInt>(room);
        ::deflate(&zlib_, bytes.empty() ? how : Z_NO_FLUSH);
        out.resize(have + room - zlib_.avail_out);
      } while (zlib_.avail_out == 0);
    } while (!bytes.empty());
  }

  z_stream zlib_ = {};
};

// Returns true if data that begin like this are zlib's: they begin with the two bytes of its header as writers make
// them (78 01, 5e, 9c or da), and this beginning can be decompressed. Text, or a record's length, may have the two
// bytes by chance.
inline bool is_zlib(std::span<const std::byte> start) {
  if (start.size() < 3 || start[0] != std::byte{0x78}) return false;
  const auto second = std::to_integer<unsigned>(start[1]);
  if (second != 0x01 && second != 0x5e && second != 0x9c && second != 0xda) return false;
  z_stream zlib = {};
  if (::inflateInit2(&zlib, MAX_WBITS) != Z_OK) return false;
  Bytef out[512];
  zlib.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(start.data()));  // read only
  zlib.avail_in = static_cast<uInt>(std::min<std::size_t>(start.size(), 4096));
  int result = Z_OK;
  bool any = false;
  do {
    zlib.next_out = out, zlib.avail_out = sizeof out;
    result = ::inflate(&zlib, Z_NO_FLUSH);
    any = any || zlib.avail_out != sizeof out;
  } while (result == Z_OK && (zlib.avail_in != 0 || zlib.avail_out == 0));
  ::inflateEnd(&zlib);
  return result == Z_STREAM_END || ((result == Z_OK || result == Z_BUF_ERROR) && any);
}

// Returns the CRC-32 of gzip, ZIP and PNG, of bytes that follow those whose checksum is `before`.
inline std::uint32_t zip_crc32(std::span<const std::byte> bytes, std::uint32_t before = 0) {
  if (bytes.empty()) return before;  // zlib reads a null pointer as a request to begin anew
  return static_cast<std::uint32_t>(::crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

// Decompresses raw deflate data (RFC 1951, as in a member of a ZIP file), which should become `size` bytes. Returns the
// reason of a refusal, or an empty text. `out` grows with the output, so that a false size costs nothing.
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
    std::byte no_byte;
    zlib.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(in.data() + used));  // read only
    zlib.avail_in = static_cast<uInt>(offered);
    zlib.next_out = reinterpret_cast<Bytef*>(wanted == 0 ? &no_byte : out.data() + done);
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
#endif

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "inflate.ipp"
#endif
