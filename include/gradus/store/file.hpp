// Files that survive: how a file is written so that a reader sees all of it or none. What must hold on top of a file
// system's operations (interrupted calls, short writes, cleaning up, the order of syncs) is written here once, for all
// of them; the operations are those of file_system.hpp, and nothing here needs exceptions.
//
//   publish(fs, path, pieces)       write a temporary, sync it, rename it over `path`, sync the directory
//   read_file(fs, path, limit)      all bytes of a file that is no larger than `limit`
//   append_file(fs, path)           a file that grows: event files, logs
//   make_directories(fs, path)      mkdir -p, each new entry synced
//
// TensorFlow's Saver and PyTorch's writers do not sync the directory (and TensorFlow not the file either): there a
// power failure after a save may lose it. Here, when publish returns, the file is on the disk.
#pragma once
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../base/error.hpp"
#include "file_problem.hpp"
#include "file_system.hpp"
#include "reader_limits.hpp"
#include "temporary.hpp"

namespace gradus::inline GRADUS_BUILD {

// A file system whose files can be read from any byte on. In others a reader passes over what stands before.
template <class F>
concept seeks_files = file_system<F> && requires(const F& fs, typename F::handle h, std::uint64_t offset) {
  { fs.seek(h, offset) } -> std::same_as<int>;
};

// publish without raising, of files in one directory: all are written and synced before the first gets its name, and
// they get their names in this order. Only `published` problems leave anything behind: the complete new files.
template <file_system F>
[[nodiscard]] file_problem try_publish(const F& fs, std::span<const file_content> files) {
  publication<F> out(fs);
  auto problem = out.stage(files);
  if (!problem) problem = out.reveal(files.size());
  if (problem) out.discard();
  return problem;
}
template <file_system F>
[[nodiscard]] file_problem try_publish(const F& fs, const std::string& path, byte_pieces pieces) {
  const file_content file{path, pieces};
  return try_publish(fs, std::span(&file, 1));
}

// Writes the pieces, one after another, as the file `path`, replacing what has this name. A reader, and a machine that
// loses power, sees the old file or the new one. Raises what failed, where, why and what to do; then the temporary is
// gone and the old file untouched. Temporaries of this path that dead processes left are cleared.
template <file_system F>
void publish(const F& fs, const std::string& path, byte_pieces pieces) {
  clear_temporaries_of(fs, path);
  if (const auto p = try_publish(fs, path, pieces)) raise(p);
}
template <file_system F>
void publish(const F& fs, const std::string& path, std::string_view content) {
  const auto piece = std::as_bytes(std::span(content.data(), content.size()));
  publish(fs, path, byte_pieces(&piece, 1));
}

// read_file without raising; `out` is replaced.
template <file_system F>
[[nodiscard]] file_problem try_read(const F& fs, const std::string& path, std::uint64_t limit,
                                    std::vector<std::byte>& out) {
  typename F::handle h{};
  std::uint64_t size = 0;
  if (const int e = detail::uninterrupted([&] { return fs.open_read(path, h, size); }); e != 0)
    return {e, "open", path};
  const detail::closing<F> closing(fs, h);
  if (size > limit || size > PTRDIFF_MAX) return {EFBIG, "read", path};
  out.resize(static_cast<std::size_t>(size));
  for (std::size_t at = 0; at < out.size();) {
    std::size_t moved = 0;
    const int e = detail::uninterrupted([&] { return fs.read(h, std::span(out).subspan(at), moved); });
    if (e != 0) return {e, "read", path};
    if (moved == 0) out.resize(at);  // it shrank while we read
    at += moved;
  }
  return {};
}

// All bytes of a regular file. Larger than `limit` is refused before anything is allocated.
template <file_system F>
std::vector<std::byte> read_file(const F& fs, const std::string& path, std::uint64_t limit = UINT64_MAX) {
  std::vector<std::byte> out;
  if (const auto p = try_read(fs, path, limit, out)) raise(p);
  return out;
}

// The same for a file from outside, which the error tells how to allow.
template <file_system F>
std::vector<std::byte> read_file(const F& fs, const std::string& path, const reader_limits& limits) {
  std::vector<std::byte> out;
  const auto p = try_read(fs, path, limits.file_bytes, out);
  if (p.error == EFBIG)
    raise(status::resource_exhausted, text('"', path, "\" has more than ", limits.file_bytes,
                                           " bytes, the limit for files that are held in memory; raise "
                                           "reader_limits::file_bytes if the file is to be trusted"));
  if (p) raise(p);
  return out;
}

// Creates `path` and what is missing above it. Each new entry is synced, or a power failure could take the whole
// directory from under a file that was published in it.
template <file_system F>
void make_directories(const F& fs, const std::string& path) {
  for (std::size_t end = 0; end != std::string::npos;) {
    end = path.find('/', end + 1);
    const std::string part = path.substr(0, end);
    if (part.empty() || part == "." || part.ends_with('/')) continue;
    if (detail::uninterrupted([&] { return fs.exists(part); }) == 0) continue;
    const int e = detail::uninterrupted([&] { return fs.make_directory(part); });
    if (e == EEXIST) continue;  // someone else was faster
    if (e != 0) raise({e, "create the directory", part});
    const std::string above = directory_of(part);
    const int synced = detail::uninterrupted([&] { return fs.sync_directory(above); });
    if (synced != 0) raise({synced, "sync the directory", above});
  }
}

// A file that grows at its end. Bytes gather in a buffer (64 KiB unless told) and reach the file by flush, the disk by
// sync. After an error the bytes not yet written are kept, so that a later flush continues where it stopped.
template <file_system F>
class append_file {
public:
  append_file(F fs, std::string path, std::size_t buffer = 1 << 16)
      : fs_(std::move(fs)), path_(std::move(path)), capacity_(buffer) {
    buffer_.reserve(capacity_);
    check(detail::uninterrupted([&] { return fs_.open_append(path_, handle_); }), "open");
    open_ = true;
  }
  append_file(append_file&& other) noexcept
      : fs_(std::move(other.fs_)),
        path_(std::move(other.path_)),
        capacity_(other.capacity_),
        buffer_(std::move(other.buffer_)),
        handle_(other.handle_),
        open_(std::exchange(other.open_, false)) {}
  append_file& operator=(append_file&&) = delete;
  // What cannot be written now is lost, quietly: close() first if you want to know.
  ~append_file() {
    if (!open_) return;
    std::size_t written = 0;
    write_all(fs_, handle_, buffer_, written);
    fs_.close(handle_);
  }

  const std::string& path() const { return path_; }

  void write(std::span<const std::byte> bytes) {
    if (buffer_.size() + bytes.size() > capacity_) flush();
    // Always by the buffer, even if large: an error half-way must not lose the rest.
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    if (buffer_.size() > capacity_) flush();
  }
  void write(std::string_view bytes) { write(std::as_bytes(std::span(bytes.data(), bytes.size()))); }
  // To the operating system: other processes see it, a killed process does not lose it.
  void flush() {
    std::size_t written = 0;
    const int e = write_all(fs_, handle_, buffer_, written);
    buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(written));
    check(e, "write");
  }
  // To the disk.
  void sync() {
    flush();
    check(detail::uninterrupted([&] { return fs_.sync(handle_); }), "sync");
  }
  void close() {
    if (!open_) return;
    flush();
    open_ = false;
    const int e = fs_.close(handle_);
    check(e == EINTR ? 0 : e, "close");
  }

private:
  void check(int e, const char* operation) const {
    if (e != 0) raise({e, operation, path_});
  }

  F fs_;
  std::string path_;
  std::size_t capacity_;
  std::vector<std::byte> buffer_;
  typename F::handle handle_{};
  bool open_ = false;
};

}  // namespace gradus
