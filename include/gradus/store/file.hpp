// This header writes files so that a reader sees all of a file or none, also after a crash. It implements once, for all
// file systems, the rules on top of their operations (interrupted calls, short writes, cleaning up, the order of
// syncs); the operations are those of file_system.hpp, and nothing here needs exceptions.
//
//   publish(fs, path, pieces)       write a temporary, sync it, rename it over `path`, sync the directory
//   read_file(fs, path, limit)      all bytes of a file that is no larger than `limit`
//   append_file(fs, path)           a file that grows: event files, logs
//   make_directories(fs, path)      mkdir -p, each new entry synced
//
// TensorFlow's Saver and PyTorch's writers do not sync the directory (and TensorFlow does not sync the file either), so
// a power failure after a save may lose it. Here, when publish returns, the file is on the disk.
#pragma once
#include "../base/build.hpp"

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

// Publishes files of one directory without raising: all are written and synced before the first gets its name, and they
// get their names in this order. Only a problem that is `published` leaves anything behind: the complete new files.
[[nodiscard]] file_problem try_publish(const any_file_system& fs, std::span<const file_content> files);
[[nodiscard]] file_problem try_publish(const any_file_system& fs, const std::string& path, byte_pieces pieces);

// Writes the pieces, one after another, as the file `path`, replacing a file of this name. A reader, also one after a
// power failure, sees the old file or the new one. Raises an error with the operation, the path, the reason and the
// remedy; the temporary is then removed and the old file untouched. Temporaries of this path that dead processes left
// are removed.
void publish(const any_file_system& fs, const std::string& path, byte_pieces pieces);
void publish(const any_file_system& fs, const std::string& path, std::string_view content);

// Reads a file as read_file does, without raising; `out` is replaced.
[[nodiscard]] file_problem try_read(const any_file_system& fs, const std::string& path, std::uint64_t limit,
                                    std::vector<std::byte>& out);

// Returns all bytes of a regular file. A file larger than `limit` is refused before anything is allocated.
std::vector<std::byte> read_file(const any_file_system& fs, const std::string& path, std::uint64_t limit = UINT64_MAX);

// The same for a file from outside; the error names the limit to raise.
std::vector<std::byte> read_file(const any_file_system& fs, const std::string& path, const reader_limits& limits);

// Creates `path` and missing directories above it. Each new entry is synced; otherwise a power failure could remove the
// directory together with a file that was published in it.
void make_directories(const any_file_system& fs, const std::string& path);

// Syncs the entry of `path`, which is there already, in the directory above it: the process that made it may have been
// killed before it could. Nothing is raised where this process may not open the directory above.
void sync_entry_of(const any_file_system& fs, std::string_view path);

namespace detail {
// An append_file whose file system is type-erased.
class appended_file {
public:
  appended_file(any_file_system fs, std::string path, std::size_t buffer = 1 << 16);
  appended_file(appended_file&& other) noexcept;
  appended_file& operator=(appended_file&&) = delete;
  // Bytes that cannot be written now are lost without an error: call close() first, which raises it.
  ~appended_file();

  const std::string& path() const { return path_; }

  void write(std::span<const std::byte> bytes);
  void write(std::string_view bytes);
  // Writes the buffer to the operating system: other processes see the bytes, and they survive the end of this process.
  void flush();
  // Writes the buffer to the disk.
  void sync();
  void close();

private:
  void check(int e, const char* operation) const;

  any_file_system fs_;
  std::string path_;
  std::size_t capacity_;
  std::vector<std::byte> buffer_;
  any_file_system::handle handle_{};
  bool open_ = false;
};
}  // namespace detail

// A file that grows at its end. Bytes are collected in a buffer (64 KiB by default); flush writes them to the file,
// sync to the disk. After an error the bytes not yet written are kept, so that a later flush continues where it
// stopped.
template <file_system F>
class append_file : public detail::appended_file {
public:
  append_file(const F& fs, std::string path, std::size_t buffer = 1 << 16)
      : appended_file(fs, std::move(path), buffer) {}
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "file.ipp"
#endif
