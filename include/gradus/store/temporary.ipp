// The bodies of temporary.hpp.
#pragma once
#include "../base/body.hpp"
#include "../base/deferred.hpp"
#include "temporary.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#if __has_include(<sys/random.h>)
#include <sys/random.h>
#endif

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::uint64_t fresh_number() {
  std::uint64_t n = 0;
#if __has_include(<sys/random.h>)
  if (::getentropy(&n, sizeof n) == 0) return n;
#endif
  static std::atomic<std::uint64_t> count{0};
  n = reinterpret_cast<std::uintptr_t>(&n) + (++count) * 0x9E3779B97F4A7C15u;
#if defined(__unix__) || defined(__APPLE__)
  n ^= static_cast<std::uint64_t>(::getpid()) << 32;
#endif
  return n;
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY int write_all(const any_file_system& fs, any_file_system::handle h, std::span<const std::byte> bytes,
                          std::size_t& written) {
  constexpr std::size_t portion = std::size_t{8} << 20;
  const bool behind = fs.writes_behind();
  written = 0;
  while (written < bytes.size()) {
    std::size_t moved = 0;
    auto rest = bytes.subspan(written);
    if (behind) rest = rest.first(std::min(rest.size(), portion));
    const int e = detail::uninterrupted([&] { return fs.write(h, rest, moved); });
    if (e != 0) return e;
    if (moved == 0) return EIO;  // no error and no progress: the kernel promises that this never happens
    written += moved;
    if (behind && moved == portion) fs.write_behind(h, moved);
  }
  return 0;
}

GRADUS_BODY file_problem temporary_file::create(const any_file_system& fs, std::string path) {
  path_ = std::move(path);
  int e = EEXIST;
  for (int tries = 0; tries < 100; ++tries) {
    name_ = temporary_name(path_, detail::fresh_number());
    e = detail::uninterrupted([&] { return fs.create(name_, handle_); });
    if (e == EEXIST) continue;
    open_ = e == 0;
    if (e != 0 || claimed(fs)) break;
    close(fs);
    e = EEXIST;
  }
  return e == 0 ? file_problem{} : file_problem{e, "create", std::exchange(name_, {})};
}

GRADUS_BODY file_problem temporary_file::write(const any_file_system& fs, std::span<const std::byte> bytes) {
  std::size_t written = 0;
  const int e = write_all(fs, handle_, bytes, written);
  return e == 0 ? file_problem{} : file_problem{e, "write", name_};
}

GRADUS_BODY file_problem temporary_file::sync(const any_file_system& fs) {
  const int e = detail::uninterrupted([&] { return fs.sync(handle_); });
  return e == 0 ? file_problem{} : file_problem{e, "sync", name_};
}

GRADUS_BODY int temporary_file::close(const any_file_system& fs) {
  if (!std::exchange(open_, false)) return 0;
  const int e = fs.close(handle_);
  return e == EINTR ? 0 : e;
}

GRADUS_BODY file_problem temporary_file::reveal(const any_file_system& fs) {
  const int e = detail::uninterrupted([&] { return fs.rename(name_, path_); });
  if (e != 0) return {e, "rename", name_};
  name_.clear();
  close(fs);  // the bytes are synced, so an error here loses nothing
  return {};
}

GRADUS_BODY void temporary_file::discard(const any_file_system& fs) {
  if (!name_.empty()) detail::uninterrupted([&] { return fs.remove(name_); });
  name_.clear();
  close(fs);
}

// Returns false if a process that clears the directory claimed the file first: it is removed then.
GRADUS_BODY bool temporary_file::claimed(const any_file_system& fs) {
  if (!fs.claims()) return true;  // no process can claim it, so none removes it
  const int e = detail::uninterrupted([&] { return fs.claim(handle_); });
  if (e == EAGAIN) return false;
  return e != 0 || detail::uninterrupted([&] { return fs.exists(name_); }) != ENOENT;
}

GRADUS_BODY file_problem publication::stage(std::span<const file_content> files) {
  for (const auto& file : files) {
    auto& t = files_.emplace_back();
    if (auto p = t.create(fs_, file.path)) return p;
    for (const auto piece : file.pieces)
      if (auto p = t.write(fs_, piece)) return p;
    if (auto p = t.sync(fs_)) return p;
    // A process may hold only so many handles: in a large set the last files are not claimed.
    if (files_.size() > most_claims)
      if (const int e = t.close(fs_); e != 0) return {e, "close", file.path};
  }
  return {};
}

GRADUS_BODY file_problem publication::sync_directory() {
  if (files_.empty()) return {};
  const std::string directory = directory_of(files_.front().path());
  const int e = detail::uninterrupted([&] { return fs_.sync_directory(directory); });
  return e == 0 ? file_problem{} : file_problem{e, "sync the directory", directory};
}

GRADUS_BODY file_problem publication::reveal(std::size_t n) {
  const std::size_t from = revealed_;
  for (; revealed_ < from + n; ++revealed_)
    if (auto p = files_[revealed_].reveal(fs_)) {
      for (std::size_t i = from; i < revealed_; ++i)
        detail::uninterrupted([&] { return fs_.remove(files_[i].path()); });
      return p;
    }
  auto p = sync_directory();
  p.published = static_cast<bool>(p);
  return p;
}

GRADUS_BODY void publication::discard() {
  for (auto& t : files_) t.discard(fs_);
}

GRADUS_BODY void clear_temporaries(const any_file_system& fs, const std::string& directory,
                                   std::span<const std::string> names,
                                   const std::function<bool(std::string_view, const std::string&)>& decide) {
  if (!fs.claims()) return;
  for (const auto& name : names) {
    if (!is_temporary(name)) continue;
    const std::string path = join_path(directory, name);
    any_file_system::handle h{};
    if (detail::uninterrupted([&] { return fs.open_to_claim(path, h); }) != 0) continue;
    const detail::closing closing(fs, h);
    if (detail::uninterrupted([&] { return fs.claim(h); }) != 0) continue;
    if (decide(name_of_temporary(name), path)) detail::uninterrupted([&] { return fs.remove(path); });
  }
}

GRADUS_BODY void clear_temporaries_of(const any_file_system& fs, const std::string& path) {
  if (!fs.claims()) return;
  const std::string directory = directory_of(path);
  std::vector<std::string> names;
  if (detail::uninterrupted([&] { return fs.list(directory, names); }) != 0) return;
  clear_temporaries(fs, directory, detail::const_span(names.data(), names.size()),
                    [&](std::string_view of, const std::string&) { return of == file_name_of(path); });
}

}  // namespace gradus
