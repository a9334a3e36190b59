// This header writes files under temporary names before they get their own. All files that are written as a whole are
// written by it: checkpoints and state files, graph.pbtxt, caches, exports.
//
//   publication out(fs);
//   out.stage(files)            writes and syncs each under a temporary name: "<path>.gradus-tmp-<random number>"
//   out.reveal(n)               gives the next n of them their names, in order, and syncs the directory
//   out.discard()               removes those that have no name yet
//
// A temporary name is drawn at random and must be new (O_EXCL), so that two processes, or two objects of one, never
// write into one file. A process that is killed leaves its temporaries behind. The process that opens the directory
// next removes them by clear_temporaries, which tells by a claim whether the writer is alive: a writer locks its
// temporary (flock) from its creation until it has its name, and the kernel drops that lock when the process ends,
// however it ends. A file that cannot be claimed is being written, and stays. (A child that was forked meanwhile shares
// the claim: the temporary then counts as being written until the child has ended, too.) Where a file system has no
// locks, clear_temporaries cannot tell and removes nothing. Of more than 256 files that are published together, only
// the first 256 are locked, since a process may hold only so many descriptors.
#pragma once
#include "../base/build.hpp"

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "any_file_system.hpp"
#include "file_problem.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// Repeats an interrupted call; gives up after 1000 tries, so that a flood of signals cannot block it for ever.
template <class Call>
int uninterrupted(Call&& call) {
  int e = EINTR;
  for (int tries = 0; e == EINTR && tries < 1000; ++tries) e = call();
  return e;
}

class closing {
public:
  closing(const any_file_system& fs, any_file_system::handle h) : fs_(fs), h_(h) {}
  closing(const closing&) = delete;
  closing& operator=(const closing&) = delete;
  ~closing() noexcept(false) { fs_.close(h_); }  // a file system of a test may throw (testing/faulty_files.hpp)

private:
  const any_file_system& fs_;
  any_file_system::handle h_;
};

// Returns a number that no other process draws. If two draw the same one, that only costs another try (O_EXCL).
std::uint64_t fresh_number();
}  // namespace detail

// Writes all bytes, in as many calls as it takes; `written` counts them, also if an error ends it.
int write_all(const any_file_system& fs, any_file_system::handle h, std::span<const std::byte> bytes,
              std::size_t& written);

using byte_pieces = std::span<const std::span<const std::byte>>;

// A file to be published: its path, and its bytes, one piece after another.
struct file_content {
  std::string path;
  byte_pieces pieces;
};

// One file that is being written under a temporary name. Its destructor cleans up nothing, since the file system of a
// test may throw from any operation.
class temporary_file {
public:
  // Creates a temporary of `path`, and claims it where that is possible.
  [[nodiscard]] file_problem create(const any_file_system& fs, std::string path);
  [[nodiscard]] file_problem write(const any_file_system& fs, std::span<const std::byte> bytes);
  // A failed sync is not to be repeated: the kernel may have dropped the pages and would then report success.
  [[nodiscard]] file_problem sync(const any_file_system& fs);
  // Closes the file, which gives the claim up.
  int close(const any_file_system& fs);
  // Renames the file to its own name; the directory is not synced yet.
  [[nodiscard]] file_problem reveal(const any_file_system& fs);
  void discard(const any_file_system& fs);
  const std::string& path() const { return path_; }
  bool exists() const { return !name_.empty(); }

private:
  bool claimed(const any_file_system& fs);

  std::string path_, name_;  // name_: empty if there is no temporary
  any_file_system::handle handle_{};
  bool open_ = false;
};

// Files of one directory that get their names together.
class publication {
public:
  explicit publication(const any_file_system& fs) : fs_(fs) {}

  // Writes and syncs the files, one after the other, under temporary names.
  [[nodiscard]] file_problem stage(std::span<const file_content> files);
  [[nodiscard]] file_problem sync_directory();
  // Gives the next n files their names, in this order. A returned problem is `published` if they all have their names;
  // otherwise none of the n has.
  [[nodiscard]] file_problem reveal(std::size_t n);
  void discard();

private:
  static constexpr std::size_t most_claims = 256;
  any_file_system fs_;
  std::vector<temporary_file> files_;
  std::size_t revealed_ = 0;
};

// Removes those of the `names` in the directory that are temporaries of dead processes and for which `decide(name of
// the file that it was to become, path)` returns true; `decide` is called while the temporary is claimed. Does nothing
// where the file system has no claims.
void clear_temporaries(const any_file_system& fs, const std::string& directory, std::span<const std::string> names,
                       const std::function<bool(std::string_view of, const std::string& path)>& decide);
// Removes the temporaries of one file.
void clear_temporaries_of(const any_file_system& fs, const std::string& path);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "temporary.ipp"
#endif
