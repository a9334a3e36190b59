// A snapshot policy copies the state so that training can go on while a checkpoint is written. It takes the place of
// the trainer's default, in_place{}, with which training waits until the checkpoint is on the disk:
//
//   copy_snapshot{}     makes one copy, at once
//   rolling_snapshot{}  a thread copies piece by piece; a writer that would change a piece not yet copied copies it
//                       first. So the training thread is never stopped for longer than one piece takes
//   fork_snapshot{}     a child process sees the state as it was (copy on write) and copies it into memory that it
//                       shares with this process. It only copies, and so does nothing that is forbidden after a fork
//                       in a program with threads. The kernel copies every page that training writes meanwhile, which
//                       costs more than the copy where all state changes in every step: benchmarks/RESULTS.md
//
// The staged bytes are those of one instant, between two steps.
#pragma once
#include "../base/build.hpp"

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>

#include "../base/contract.hpp"
#include "../base/state.hpp"
#include "../codec/codec.hpp"
#include "../tensor/tensor.hpp"
#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace gradus::inline GRADUS_BUILD {

template <class Saver, class Snapshot>
class background_saver;  // checkpoint/background.hpp

namespace detail {

// This is the source and destination of each entry's bytes.
struct copy_range {
  const std::byte* from;
  std::byte* to;
  std::size_t bytes;
};

// The layout of staged state: one arena with the entries of fixed size, and the blobs as they were saved.
class staged_layout {
public:
  // Takes up names, types and extents. Returns true if the arena has to be made or made anew, with `bytes()` bytes.
  bool fit(const state_list& list);
  std::size_t bytes() const { return bytes_; }

  // Saves the blobs and points the records into `arena`; `ranges()` then returns the ranges to copy.
  void point(const state_list& list, std::byte* arena);
  const std::vector<copy_range>& ranges() const { return ranges_; }
  snapshot& content() { return content_; }

private:
  snapshot content_;
  std::vector<std::vector<std::byte>> blobs_;
  std::vector<copy_range> ranges_;
  std::size_t bytes_ = 0;
};

}  // namespace detail

// A staging area: `begin` fixes the instant, `complete` waits until everything is copied (on the thread that writes the
// checkpoint), and `content` returns the copy. `prepare` allocates and touches the memory ahead of the first save. Code
// that changes state between begin and complete calls `guard`; `before_step` receives the state for which the guard
// will be called.
template <class S>
concept staging = requires(S& s, const state_list& list, std::span<const std::span<const std::byte>> guarded) {
  s.prepare(list);
  s.begin(list);
  s.complete();
  { s.content() } -> std::same_as<snapshot&>;
  { s.guard() } -> std::same_as<write_guard*>;
  s.before_step(guarded);
};

// Training waits until the state is copied in memory; a thread then writes the copy.
struct copy_snapshot {
  using policy_for = kind::snapshot;
  template <class Saver>
  using saves = background_saver<Saver, copy_snapshot>;

  class area {
  public:
    explicit area(const copy_snapshot&) {}
    void prepare(const state_list& list);
    void begin(const state_list& list);
    void complete() {}
    write_guard* guard() { return nullptr; }
    void before_step(std::span<const std::span<const std::byte>> = {}) {}
    snapshot& content() { return layout_.content(); }

  private:
    detail::staged_layout layout_;
    aligned_buffer arena_;
  };
};
static_assert(staging<copy_snapshot::area>);

// A thread copies the state piece by piece while training goes on; a piece that a step is about to change is copied
// before that.
struct rolling_snapshot {
  using policy_for = kind::snapshot;
  template <class Saver>
  using saves = background_saver<Saver, rolling_snapshot>;
  // The number of bytes that are copied at a time.
  std::size_t piece = std::size_t{1} << 20;

  class area final : public write_guard {
  public:
    explicit area(const rolling_snapshot& settings);
    area(const area&) = delete;
    area& operator=(const area&) = delete;

    void prepare(const state_list& list);
    void begin(const state_list& list);
    // Copies the remaining pieces; the thread that writes the checkpoint calls it.
    void complete();
    // Copies the pieces outside of `guarded`: the guard is not called for changes there.
    void before_step(std::span<const std::span<const std::byte>> guarded = {});
    write_guard* guard() { return this; }
    bool active() const override { return active_.load(std::memory_order_acquire); }
    // Copies the pieces that overlap these bytes, or waits for the thread that is copying them.
    void before_write(std::span<const std::byte> bytes) override;
    snapshot& content() { return layout_.content(); }

  private:
    enum : std::uint32_t { waiting, copying, copied };  // words, since RISC-V with g++ 12 needs a library to swap bytes
    void ensure(std::size_t i);

    std::size_t piece_, places_ = 0;
    detail::staged_layout layout_;
    aligned_buffer arena_;
    std::vector<detail::copy_range> pieces_;
    std::unique_ptr<std::atomic<std::uint32_t>[]> states_;
    std::atomic<bool> active_{false};
  };
};
static_assert(staging<rolling_snapshot::area>);

#if defined(__unix__) || defined(__APPLE__)
// A child process has the state as it was at the save, and copies it while training goes on.
struct fork_snapshot {
  using policy_for = kind::snapshot;
  template <class Saver>
  using saves = background_saver<Saver, fork_snapshot>;

  class area {
  public:
    explicit area(const fork_snapshot&) {}
    area(const area&) = delete;
    area& operator=(const area&) = delete;
    ~area() {
      reap();
      unmap();
    }
    void prepare(const state_list& list) {
      if (layout_.fit(list)) {
        unmap();
        bytes_ = layout_.bytes() + 1;  // one byte after the state marks that all of it was copied
        if (bytes_ != 1) {
          void* at = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
          if (at == MAP_FAILED)
            raise(status::resource_exhausted, text("fork_snapshot: ", bytes_, " bytes of shared memory cannot be had: ",
                                                   std::strerror(errno), "; use copy_snapshot"));
          arena_ = static_cast<std::byte*>(at);
          std::memset(arena_, 0, bytes_);
        }
      }
      layout_.point(list, arena_);
    }
    void begin(const state_list& list) {
      prepare(list);
      const auto& ranges = layout_.ranges();
      if (arena_ != nullptr) arena_[layout_.bytes()] = std::byte{0};
      child_ = ::fork();
      if (child_ == 0) {
        // Another thread may have held any lock at the fork: the child does nothing but copy.
        for (const auto& r : ranges) std::memcpy(r.to, r.from, r.bytes);
        if (arena_ != nullptr) arena_[layout_.bytes()] = std::byte{1};
        ::_exit(0);
      }
      if (child_ < 0)  // no process could be made: a plain copy gives the same, only slower
        for (const auto& r : ranges) std::memcpy(r.to, r.from, r.bytes);
    }
    void complete() {
      if (child_ > 0 && !reap())
        raise(status::aborted, "fork_snapshot: the process that copied the state was killed; this save is lost");
    }
    write_guard* guard() { return nullptr; }
    void before_step(std::span<const std::span<const std::byte>> = {}) {}
    snapshot& content() { return layout_.content(); }

  private:
    bool reap() {
      if (child_ <= 0) return true;
      int how = 0;
      pid_t found = 0;
      do found = ::waitpid(child_, &how, 0);
      while (found < 0 && errno == EINTR);
      // Where SIGCHLD is ignored, waitpid has waited for the child, but the exit status is lost (ECHILD).
      const bool fine = (found == child_ ? WIFEXITED(how) && WEXITSTATUS(how) == 0 : errno == ECHILD) &&
                        (arena_ == nullptr || arena_[layout_.bytes()] == std::byte{1});
      child_ = -1;
      return fine;
    }
    void unmap() {
      if (arena_ != nullptr) ::munmap(arena_, bytes_);
      arena_ = nullptr, bytes_ = 0;
    }

    detail::staged_layout layout_;
    std::byte* arena_ = nullptr;
    std::size_t bytes_ = 0;
    pid_t child_ = -1;
  };
};
static_assert(staging<fork_snapshot::area>);
#endif

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "staging.ipp"
#endif
