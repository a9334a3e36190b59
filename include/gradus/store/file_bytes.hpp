// The bytes of a whole file: mapped into memory where the file system can and the file is worth it, else read.
//
// A mapping shows what the file holds now. Files of ours are replaced by renaming and never cut short, so that a
// mapping of one keeps its bytes; a file that a stranger truncates while it is mapped kills the process that reads it
// (SIGBUS).
#pragma once
#include "file.hpp"

namespace gradus::inline GRADUS_BUILD {

// A file system that can show a file's bytes without reading them. `map` refuses (any errno) what it cannot map, and
// the file is then read.
template <class F>
concept maps_files = file_system<F> && requires(const F& fs, const std::string& path, std::span<const std::byte>& b) {
  { fs.map(path, b) } -> std::same_as<int>;
  { fs.unmap(b) };
};

template <file_system F>
class file_bytes {
public:
  explicit file_bytes(F fs = {}) : fs_(std::move(fs)) {}
  file_bytes(file_bytes&& other) noexcept
      : fs_(std::move(other.fs_)), read_(std::move(other.read_)), mapped_(std::exchange(other.mapped_, {})) {}
  file_bytes& operator=(file_bytes&&) = delete;
  ~file_bytes() { forget(); }

  // Opens `path`, forgetting what was open. A file of more than `limit` bytes is refused (EFBIG).
  [[nodiscard]] file_problem open(const std::string& path, std::uint64_t limit = UINT64_MAX) {
    forget();
    typename F::handle h{};
    std::uint64_t size = 0;
    if (const int e = detail::uninterrupted([&] { return fs_.open_read(path, h, size); }); e != 0)
      return {e, "open", path};
    fs_.close(h);
    if (size > limit) return {EFBIG, "read", path};
    if constexpr (maps_files<F>)
      if (size >= worth_mapping && fs_.map(path, mapped_) == 0) {
        if (mapped_.size() <= limit) return {};
        forget();
        return {EFBIG, "read", path};
      }
    auto p = try_read(fs_, path, limit, read_);
    if (p) read_.clear();
    return p;
  }

  std::span<const std::byte> bytes() const { return mapped_.empty() ? std::span<const std::byte>(read_) : mapped_; }

private:
  static constexpr std::uint64_t worth_mapping = 1 << 20;

  void forget() {
    if constexpr (maps_files<F>)
      if (!mapped_.empty()) fs_.unmap(mapped_);
    mapped_ = {};
    read_.clear();
  }

  F fs_;
  std::vector<std::byte> read_;
  std::span<const std::byte> mapped_;
};

}  // namespace gradus
