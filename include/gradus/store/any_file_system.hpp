// `any_file_system` is a type-erased file system, through which every operation goes that happens once per file. The
// code that uses it (publishing, reading, locks, savers, writers of events) is ordinary code, compiled once; otherwise
// it would be compiled for every file system. The cost of a call through a pointer is negligible beside that of a
// system call.
//
//   file_problem p = try_publish(my_files, "runs/a/model.ckpt", pieces);      // my_files is converted to one
//
// Copies are the same file system, as the concept `file_system` requires.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>

#include "file_system.hpp"

namespace gradus::inline GRADUS_BUILD {

class any_file_system {
public:
  using policy_for = kind::file_system;
  using handle = std::uintptr_t;  // an open file's own handle, or a pointer to it

  template <class F>
    requires(!std::same_as<F, any_file_system> && file_system<F>)
  any_file_system(const F& fs) : does_(&operations_of<F>) {
    if constexpr (!std::is_empty_v<F>) state_ = std::make_shared<const F>(fs);
  }
  any_file_system();  // the operating system's
#if defined(__unix__) || defined(__APPLE__)
  any_file_system(const posix&) : any_file_system() {}
#endif

  int create(const std::string& path, handle& h) const { return does_->create(state_.get(), path, h); }
  int open_append(const std::string& path, handle& h) const { return does_->open_append(state_.get(), path, h); }
  int open_read(const std::string& path, handle& h, std::uint64_t& size) const {
    return does_->open_read(state_.get(), path, h, size);
  }
  int write(handle h, std::span<const std::byte> from, std::size_t& moved) const {
    return does_->write(state_.get(), h, from, moved);
  }
  int read(handle h, std::span<std::byte> into, std::size_t& moved) const {
    return does_->read(state_.get(), h, into, moved);
  }
  int sync(handle h) const { return does_->sync(state_.get(), h); }
  int close(handle h) const { return does_->close(state_.get(), h); }
  int rename(const std::string& from, const std::string& to) const { return does_->rename(state_.get(), from, to); }
  int remove(const std::string& path) const { return does_->remove(state_.get(), path); }
  int exists(const std::string& path) const { return does_->exists(state_.get(), path); }
  int make_directory(const std::string& path) const { return does_->make_directory(state_.get(), path); }
  int sync_directory(const std::string& path) const { return does_->sync_directory(state_.get(), path); }
  int list(const std::string& path, std::vector<std::string>& names) const {
    return does_->list(state_.get(), path, names);
  }

  // Some file systems lack these operations. Each may be called only where the function above it returns true.
  bool claims() const { return does_->claim != nullptr; }  // claims_files (file_system.hpp)
  int claim(handle h) const { return does_->claim(state_.get(), h); }
  int open_to_claim(const std::string& path, handle& h) const { return does_->open_to_claim(state_.get(), path, h); }
  bool seeks() const { return does_->seek != nullptr; }  // seeks_files
  int seek(handle h, std::uint64_t offset) const { return does_->seek(state_.get(), h, offset); }
  bool maps() const { return does_->map != nullptr; }  // maps_files
  int map(const std::string& path, std::span<const std::byte>& bytes) const {
    return does_->map(state_.get(), path, bytes);
  }
  void unmap(std::span<const std::byte> bytes) const { does_->unmap(state_.get(), bytes); }
  bool writes_behind() const { return does_->write_behind != nullptr; }  // writes_behind_files
  void write_behind(handle h, std::size_t bytes) const { does_->write_behind(state_.get(), h, bytes); }
  bool rewinds() const { return does_->rewind != nullptr; }  // rewinds_files
  int rewind(handle h) const { return does_->rewind(state_.get(), h); }
  bool locks() const { return does_->lock != nullptr; }  // locks_files
  int lock(const std::string& path, handle& h, long& owner) const { return does_->lock(state_.get(), path, h, owner); }
  void unlock(handle h) const { does_->unlock(state_.get(), h); }
  bool checks() const { return does_->locked_at != nullptr; }  // checks_locks (file_system.hpp)
  int locked_at(const std::string& path, handle h) const { return does_->locked_at(state_.get(), path, h); }
  bool can_remove_directories() const { return does_->remove_directory != nullptr; }  // removes_directories
  int remove_directory(const std::string& path) const { return does_->remove_directory(state_.get(), path); }

private:
  struct operations {
    int (*create)(const void*, const std::string&, handle&);
    int (*open_append)(const void*, const std::string&, handle&);
    int (*open_read)(const void*, const std::string&, handle&, std::uint64_t&);
    int (*write)(const void*, handle, std::span<const std::byte>, std::size_t&);
    int (*read)(const void*, handle, std::span<std::byte>, std::size_t&);
    int (*sync)(const void*, handle);
    int (*close)(const void*, handle);
    int (*rename)(const void*, const std::string&, const std::string&);
    int (*remove)(const void*, const std::string&);
    int (*exists)(const void*, const std::string&);
    int (*make_directory)(const void*, const std::string&);
    int (*sync_directory)(const void*, const std::string&);
    int (*list)(const void*, const std::string&, std::vector<std::string>&);
    int (*claim)(const void*, handle) = nullptr;
    int (*open_to_claim)(const void*, const std::string&, handle&) = nullptr;
    int (*seek)(const void*, handle, std::uint64_t) = nullptr;
    int (*map)(const void*, const std::string&, std::span<const std::byte>&) = nullptr;
    void (*unmap)(const void*, std::span<const std::byte>) = nullptr;
    void (*write_behind)(const void*, handle, std::size_t) = nullptr;
    int (*rewind)(const void*, handle) = nullptr;
    int (*lock)(const void*, const std::string&, handle&, long&) = nullptr;
    void (*unlock)(const void*, handle) = nullptr;
    int (*locked_at)(const void*, const std::string&, handle) = nullptr;
    int (*remove_directory)(const void*, const std::string&) = nullptr;
  };

  // This is the operations table of one type.
  template <class F>
  struct of {
    using own_handle = typename F::handle;
    static constexpr bool fits = sizeof(own_handle) <= sizeof(handle) && std::is_trivially_copyable_v<own_handle>;

    static const F& in(const void* state) {
      if constexpr (std::is_empty_v<F>) {
        static const F one{};
        return one;
      } else {
        return *static_cast<const F*>(state);
      }
    }
    static own_handle at(handle h) {
      if constexpr (fits) {
        own_handle own;
        std::memcpy(&own, &h, sizeof own);
        return own;
      } else {
        return *reinterpret_cast<own_handle*>(h);
      }
    }
    // Keeps the handle of an opened file until close.
    template <class Open>
    static int keep(handle& h, Open&& open) {
      own_handle own{};
      const int e = open(own);
      if (e != 0) return e;
      if constexpr (fits) {
        h = 0;
        std::memcpy(&h, &own, sizeof own);
      } else {
        h = reinterpret_cast<handle>(new own_handle(std::move(own)));
      }
      return 0;
    }
    static void forget(handle h) {
      if constexpr (!fits) delete reinterpret_cast<own_handle*>(h);
    }
    static constexpr operations table() {
      using text = const std::string&;
      operations t{
          .create = [](const void* s, text p,
                       handle& h) { return keep(h, [&](auto& o) { return in(s).create(p, o); }); },
          .open_append = [](const void* s, text p,
                            handle& h) { return keep(h, [&](auto& o) { return in(s).open_append(p, o); }); },
          .open_read = [](const void* s, text p, handle& h,
                          std::uint64_t& n) { return keep(h, [&](auto& o) { return in(s).open_read(p, o, n); }); },
          .write = [](const void* s, handle h, std::span<const std::byte> b,
                      std::size_t& n) { return in(s).write(at(h), b, n); },
          .read = [](const void* s, handle h, std::span<std::byte> b,
                     std::size_t& n) { return in(s).read(at(h), b, n); },
          .sync = [](const void* s, handle h) { return in(s).sync(at(h)); },
          .close =
              [](const void* s, handle h) {
                const int e = in(s).close(at(h));
                forget(h);
                return e;
              },
          .rename = [](const void* s, text a, text b) { return in(s).rename(a, b); },
          .remove = [](const void* s, text p) { return in(s).remove(p); },
          .exists = [](const void* s, text p) { return in(s).exists(p); },
          .make_directory = [](const void* s, text p) { return in(s).make_directory(p); },
          .sync_directory = [](const void* s, text p) { return in(s).sync_directory(p); },
          .list = [](const void* s, text p, std::vector<std::string>& n) { return in(s).list(p, n); },
      };
      if constexpr (claims_files<F>) {
        t.claim = [](const void* s, handle h) { return in(s).claim(at(h)); };
        t.open_to_claim = [](const void* s, text p, handle& h) {
          return keep(h, [&](auto& o) { return in(s).open_to_claim(p, o); });
        };
      }
      if constexpr (seeks_files<F>)
        t.seek = [](const void* s, handle h, std::uint64_t n) { return in(s).seek(at(h), n); };
      if constexpr (maps_files<F>) {
        t.map = [](const void* s, text p, std::span<const std::byte>& b) { return in(s).map(p, b); };
        t.unmap = [](const void* s, std::span<const std::byte> b) { in(s).unmap(b); };
      }
      if constexpr (writes_behind_files<F>)
        t.write_behind = [](const void* s, handle h, std::size_t n) { in(s).write_behind(at(h), n); };
      if constexpr (rewinds_files<F>) t.rewind = [](const void* s, handle h) { return in(s).rewind(at(h)); };
      if constexpr (locks_files<F>) {
        t.lock = [](const void* s, text p, handle& h, long& owner) {
          return keep(h, [&](auto& o) { return in(s).lock(p, o, owner); });
        };
        t.unlock = [](const void* s, handle h) {
          if constexpr (requires(const F& fs, own_handle o) { fs.unlock(o); })
            in(s).unlock(at(h));
          else
            in(s).close(at(h));
          forget(h);
        };
      }
      if constexpr (checks_locks<F>)
        t.locked_at = [](const void* s, text p, handle h) { return in(s).locked_at(p, at(h)); };
      if constexpr (removes_directories<F>)
        t.remove_directory = [](const void* s, text p) { return in(s).remove_directory(p); };
      return t;
    }
  };
  template <class F>
  static constexpr operations operations_of = of<F>::table();

  const operations* does_;
  std::shared_ptr<const void> state_;  // null for a file system without state
};
static_assert(file_system<any_file_system>);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "any_file_system.ipp"
#endif
