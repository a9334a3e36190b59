// The bodies of file.hpp.
#pragma once
#include "../base/body.hpp"
#include "../base/deferred.hpp"
#include "file.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY file_problem try_publish(const any_file_system& fs, std::span<const file_content> files) {
  publication out(fs);
  auto problem = out.stage(files);
  if (!problem) problem = out.reveal(files.size());
  if (problem) out.discard();
  return problem;
}
GRADUS_BODY file_problem try_publish(const any_file_system& fs, const std::string& path, byte_pieces pieces) {
  const file_content file{path, pieces};
  return try_publish(fs, std::span(&file, 1));
}

GRADUS_BODY void publish(const any_file_system& fs, const std::string& path, byte_pieces pieces) {
  clear_temporaries_of(fs, path);
  if (const auto p = try_publish(fs, path, pieces)) raise(p);
}
GRADUS_BODY void publish(const any_file_system& fs, const std::string& path, std::string_view content) {
  const auto piece = std::as_bytes(std::span(content.data(), content.size()));
  publish(fs, path, byte_pieces(&piece, 1));
}

GRADUS_BODY file_problem try_read(const any_file_system& fs, const std::string& path, std::uint64_t limit,
                                  std::vector<std::byte>& out) {
  any_file_system::handle h{};
  std::uint64_t size = 0;
  if (const int e = detail::uninterrupted([&] { return fs.open_read(path, h, size); }); e != 0)
    return {e, "open", path};
  const detail::closing closing(fs, h);
  if (size > limit || size > PTRDIFF_MAX) return {EFBIG, "read", path};
  out.resize(static_cast<std::size_t>(size));
  for (std::size_t at = 0; at < out.size();) {
    std::size_t moved = 0;
    const int e = detail::uninterrupted(
        [&] { return fs.read(h, std::span<std::byte>(out.data() + at, out.size() - at), moved); });
    if (e != 0) return {e, "read", path};
    if (moved == 0) out.resize(at);  // the file became shorter while it was read
    at += moved;
  }
  return {};
}

GRADUS_BODY std::vector<std::byte> read_file(const any_file_system& fs, const std::string& path, std::uint64_t limit) {
  std::vector<std::byte> out;
  if (const auto p = try_read(fs, path, limit, out)) raise(p);
  return out;
}

GRADUS_BODY std::vector<std::byte> read_file(const any_file_system& fs, const std::string& path,
                                             const reader_limits& limits) {
  std::vector<std::byte> out;
  const auto p = try_read(fs, path, limits.file_bytes, out);
  if (p.error == EFBIG)
    raise(status::resource_exhausted, text('"', path, "\" has more than ", limits.file_bytes,
                                           " bytes, the limit for files that are held in memory; raise "
                                           "reader_limits::file_bytes if the file is to be trusted"));
  if (p) raise(p);
  return out;
}

GRADUS_BODY void sync_entry_of(const any_file_system& fs, std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  const std::string above = directory_of(path);
  const int e = detail::uninterrupted([&] { return fs.sync_directory(above); });
  if (e != 0 && e != EACCES && e != EPERM && e != EINVAL) raise({e, "sync the directory above", std::string(path)});
}

GRADUS_BODY void make_directories(const any_file_system& fs, const std::string& path) {
  std::string there;  // the deepest one that was there before
  for (std::size_t end = 0; end != std::string::npos;) {
    end = path.find('/', end + 1);
    const std::string part = path.substr(0, end);
    if (part.empty() || part == "." || part.ends_with('/')) continue;
    if (detail::uninterrupted([&] { return fs.exists(part); }) == 0) {
      there = part;
      continue;
    }
    // The process that made it may have been killed before its entry was synced; the entries above it were synced
    // before.
    if (!there.empty()) sync_entry_of(fs, std::exchange(there, {}));
    const int e = detail::uninterrupted([&] { return fs.make_directory(part); });
    // If another process or thread was faster, it may not have synced the entry yet.
    if (e != 0 && e != EEXIST) raise({e, "create the directory", part});
    const std::string above = directory_of(part);
    const int synced = detail::uninterrupted([&] { return fs.sync_directory(above); });
    if (synced != 0) raise({synced, "sync the directory above", part});
  }
}

namespace detail {

GRADUS_BODY appended_file::appended_file(any_file_system fs, std::string path, std::size_t buffer)
    : fs_(std::move(fs)), path_(std::move(path)), capacity_(buffer) {
  buffer_.reserve(capacity_);
  check(uninterrupted([&] { return fs_.open_append(path_, handle_); }), "open");
  open_ = true;
}

GRADUS_BODY appended_file::appended_file(appended_file&& other) noexcept
    : fs_(other.fs_),
      path_(std::move(other.path_)),
      capacity_(other.capacity_),
      buffer_(std::move(other.buffer_)),
      handle_(other.handle_),
      open_(std::exchange(other.open_, false)) {}

GRADUS_BODY appended_file::~appended_file() {
  if (!open_) return;
  std::size_t written = 0;
  write_all(fs_, handle_, const_span(buffer_), written);
  fs_.close(handle_);
}

GRADUS_BODY void appended_file::check(int e, const char* operation) const {
  if (e != 0) raise({e, operation, path_});
}
GRADUS_BODY void appended_file::write(std::string_view bytes) { write(detail::text_bytes(bytes)); }
GRADUS_BODY void appended_file::write(std::span<const std::byte> bytes) {
  if (buffer_.size() + bytes.size() > capacity_) flush();
  // Large pieces go through the buffer too: an error half-way must not lose the rest.
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  if (buffer_.size() > capacity_) flush();
}

GRADUS_BODY void appended_file::flush() {
  std::size_t written = 0;
  const int e = write_all(fs_, handle_, const_span(buffer_), written);
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(written));
  check(e, "write");
}

GRADUS_BODY void appended_file::sync() {
  flush();
  check(uninterrupted([&] { return fs_.sync(handle_); }), "sync");
}

GRADUS_BODY void appended_file::close() {
  if (!open_) return;
  flush();
  open_ = false;
  const int e = fs_.close(handle_);
  check(e == EINTR ? 0 : e, "close");
}

}  // namespace detail

}  // namespace gradus
