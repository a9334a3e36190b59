// Files on their way to their names. Whatever is written beside a name goes through here: checkpoints and state files,
// graph.pbtxt, caches, exports.
//
//   publication<F> out(fs);
//   out.stage(files)            each is written and synced under a temporary name: "<path>.gradus-tmp-<random number>"
//   out.reveal(n)               the next n of them get their names, in order, and the directory is synced
//   out.discard()               what has no name yet goes away
//
// A temporary name is drawn at random and must be new (O_EXCL), so that two processes, or two objects of one, never
// write into one file. A process that is killed leaves its temporaries behind. Whoever opens the directory next
// removes them by clear_temporaries, and tells the dead from the living by a claim: a writer holds its temporary by a
// lock (flock) from its creation until it has its name, and the kernel drops that lock when the process ends, however
// it ends. What cannot be claimed is being written, and stays. (A child that was forked meanwhile shares the claim: the
// temporary then counts as living until the child has ended, too.) Where a file system has no locks, nothing is known
// to be dead, and nothing is removed.
#pragma once
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "file_problem.hpp"
#include "file_system.hpp"
#if __has_include(<sys/random.h>)
#include <sys/random.h>
#endif

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// Repeats an interrupted call; gives up where a signal storm would hold us for ever.
template <class Call>
int uninterrupted(Call&& call) {
  int e = EINTR;
  for (int tries = 0; e == EINTR && tries < 1000; ++tries) e = call();
  return e;
}

template <file_system F>
class closing {
public:
  closing(const F& fs, typename F::handle h) : fs_(fs), h_(h) {}
  closing(const closing&) = delete;
  closing& operator=(const closing&) = delete;
  ~closing() noexcept(false) { fs_.close(h_); }  // a file system of a test may throw (testing/faulty_files.hpp)

private:
  const F& fs_;
  typename F::handle h_;
};

// A number that no other process draws. Names that meet all the same only cost another try (O_EXCL).
std::uint64_t fresh_number();
}  // namespace detail

// A file system that can be told to begin with the disk's part of what was just written: large files then need not wait
// for all of it at the sync.
template <class F>
concept writes_behind =
    file_system<F> && requires(const F& fs, typename F::handle h, std::size_t bytes) { fs.write_behind(h, bytes); };

// Writes all bytes, however many calls it takes; `written` counts them, also when an error ends it.
template <file_system F>
int write_all(const F& fs, typename F::handle h, std::span<const std::byte> bytes, std::size_t& written) {
  constexpr std::size_t portion = std::size_t{8} << 20;
  written = 0;
  while (written < bytes.size()) {
    std::size_t moved = 0;
    auto rest = bytes.subspan(written);
    if constexpr (writes_behind<F>) rest = rest.first(std::min(rest.size(), portion));
    const int e = detail::uninterrupted([&] { return fs.write(h, rest, moved); });
    if (e != 0) return e;
    if (moved == 0) return EIO;  // no error and no progress: the kernel promises never to do that
    written += moved;
    if constexpr (writes_behind<F>)
      if (moved == portion) fs.write_behind(h, moved);
  }
  return 0;
}

using byte_pieces = std::span<const std::span<const std::byte>>;

// A file to be published: its name, and its bytes, one piece after another.
struct file_content {
  std::string path;
  byte_pieces pieces;
};

// One file that is being written beside its name. It cleans up nothing by itself: a file system of a test may throw
// from any operation, so that destructors stay out of it.
template <file_system F>
class temporary_file {
public:
  // A new temporary of `path`, claimed where that is possible.
  [[nodiscard]] file_problem create(const F& fs, std::string path) {
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
  [[nodiscard]] file_problem write(const F& fs, std::span<const std::byte> bytes) {
    std::size_t written = 0;
    const int e = write_all(fs, handle_, bytes, written);
    return e == 0 ? file_problem{} : file_problem{e, "write", name_};
  }
  // A failed sync is not to be repeated: the kernel may have dropped the pages and would then report success.
  [[nodiscard]] file_problem sync(const F& fs) {
    const int e = detail::uninterrupted([&] { return fs.sync(handle_); });
    return e == 0 ? file_problem{} : file_problem{e, "sync", name_};
  }
  // Closing gives the claim up.
  int close(const F& fs) {
    if (!std::exchange(open_, false)) return 0;
    const int e = fs.close(handle_);
    return e == EINTR ? 0 : e;
  }
  // The file gets its name; the directory is not synced yet.
  [[nodiscard]] file_problem reveal(const F& fs) {
    const int e = detail::uninterrupted([&] { return fs.rename(name_, path_); });
    if (e != 0) return {e, "rename", name_};
    name_.clear();
    close(fs);  // after the sync nothing can be lost by it
    return {};
  }
  void discard(const F& fs) {
    if (!name_.empty()) detail::uninterrupted([&] { return fs.remove(name_); });
    name_.clear();
    close(fs);
  }
  const std::string& path() const { return path_; }
  bool exists() const { return !name_.empty(); }

private:
  // False if somebody who clears the directory was faster than the claim: that file is as good as gone.
  bool claimed(const F& fs) {
    if constexpr (claims_files<F>) {
      const int e = detail::uninterrupted([&] { return fs.claim(handle_); });
      if (e == EAGAIN) return false;
      if (e == 0) return detail::uninterrupted([&] { return fs.exists(name_); }) != ENOENT;
    }
    return true;  // nobody can claim it, so nobody removes it
  }

  std::string path_, name_;  // name_: empty if there is no temporary
  typename F::handle handle_{};
  bool open_ = false;
};

// Files of one directory that get their names together.
template <file_system F>
class publication {
public:
  explicit publication(const F& fs) : fs_(fs) {}

  // Writes and syncs one after the other under temporary names.
  [[nodiscard]] file_problem stage(std::span<const file_content> files) {
    for (const auto& file : files) {
      auto& t = files_.emplace_back();
      if (auto p = t.create(fs_, file.path)) return p;
      for (const auto piece : file.pieces)
        if (auto p = t.write(fs_, piece)) return p;
      if (auto p = t.sync(fs_)) return p;
      // A process may hold only so many handles: of a large set the last ones go unclaimed.
      if (files_.size() > most_claims)
        if (const int e = t.close(fs_); e != 0) return {e, "close", file.path};
    }
    return {};
  }
  [[nodiscard]] file_problem sync_directory() {
    if (files_.empty()) return {};
    const std::string directory = directory_of(files_.front().path());
    const int e = detail::uninterrupted([&] { return fs_.sync_directory(directory); });
    return e == 0 ? file_problem{} : file_problem{e, "sync the directory", directory};
  }
  // The next n get their names, in this order. A problem is `published` if they all have them; else none of the n has.
  [[nodiscard]] file_problem reveal(std::size_t n) {
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
  void discard() {
    for (auto& t : files_) t.discard(fs_);
  }

private:
  static constexpr std::size_t most_claims = 256;
  const F& fs_;
  std::vector<temporary_file<F>> files_;
  std::size_t revealed_ = 0;
};

// Removes those of the `names` in the directory that are temporaries of dead processes and for which `decide(name of
// what they are temporaries of, path)` is true; it is called while they are claimed.
template <claims_files F, class Decide>
void clear_temporaries(const F& fs, const std::string& directory, std::span<const std::string> names, Decide&& decide) {
  for (const auto& name : names) {
    if (!is_temporary(name)) continue;
    const std::string path = join_path(directory, name);
    typename F::handle h{};
    if (detail::uninterrupted([&] { return fs.open_to_claim(path, h); }) != 0) continue;
    const detail::closing<F> closing(fs, h);
    if (detail::uninterrupted([&] { return fs.claim(h); }) != 0) continue;
    if (decide(name_of_temporary(name), path)) detail::uninterrupted([&] { return fs.remove(path); });
  }
}
// Those of one file.
template <file_system F>
void clear_temporaries_of(const F& fs, const std::string& path) {
  if constexpr (claims_files<F>) {
    const std::string directory = directory_of(path);
    std::vector<std::string> names;
    if (detail::uninterrupted([&] { return fs.list(directory, names); }) != 0) return;
    clear_temporaries(fs, directory, names,
                      [&](std::string_view of, const std::string&) { return of == file_name_of(path); });
  }
}

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "temporary.ipp"
#endif
