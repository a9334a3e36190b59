// file_bytes holds the bytes of a whole file: mapped into memory where the file system can map and the file is large
// enough, else read.
//
// A mapping shows the present contents of the file. This library replaces its files by renaming and never shortens
// them, so a mapping of such a file keeps its bytes. If another program truncates a file while it is mapped, the
// process that reads the mapping is killed (SIGBUS). (A log of a cluster's node writes a file again: it is mapped only
// by the process that has locked the log's folder.)
#pragma once
#include "file.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// file_bytes whose file system is type-erased.
class opened_bytes {
public:
  explicit opened_bytes(any_file_system fs = {}) : fs_(std::move(fs)) {}
  opened_bytes(opened_bytes&& other) noexcept
      : fs_(other.fs_), read_(std::move(other.read_)), mapped_(std::exchange(other.mapped_, {})) {}
  opened_bytes& operator=(opened_bytes&&) = delete;
  ~opened_bytes() { forget(); }

  // Opens `path`, and closes the file that was open. A file of more than `limit` bytes is refused (EFBIG).
  [[nodiscard]] file_problem open(const std::string& path, std::uint64_t limit = UINT64_MAX);

  std::span<const std::byte> bytes() const {
    return mapped_.empty() ? std::span<const std::byte>(read_.data(), read_.size()) : mapped_;
  }

private:
  static constexpr std::uint64_t worth_mapping = 1 << 20;

  void forget();

  any_file_system fs_;
  std::vector<std::byte> read_;
  std::span<const std::byte> mapped_;
};
}  // namespace detail

template <file_system F>
class file_bytes : public detail::opened_bytes {
public:
  explicit file_bytes(const F& fs = {}) : opened_bytes(fs) {}
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "file_bytes.ipp"
#endif
