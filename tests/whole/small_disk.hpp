// A disk with little room, at a folder, for processes that a test starts: the test makes it larger later on. It is a
// file system in memory of its own (tmpfs), if this process may mount one: in a name space of its own, which ends with
// the process, and, where it is not root, as the root of a name space of users. Where that is not allowed, it is a
// folder like any other, and each file of the processes that are started has a limit (RLIMIT_FSIZE).
#pragma once
#include <gradus/store/file.hpp>

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace disks {
using gradus::text;

inline void write_line(const std::string& path, const std::string& line) {
  const int f = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (f >= 0 && ::write(f, line.data(), line.size()) < 0) ::perror(path.c_str());
  if (f >= 0) ::close(f);
}
// Whether this process may mount file systems, which nobody else sees. GRADUS_NO_MOUNT: it is not to.
inline bool mounts() {
  static const bool may = [] {
    if (std::getenv("GRADUS_NO_MOUNT") != nullptr) return false;
    const uid_t user = ::geteuid();
    const gid_t group = ::getegid();
    if (::unshare(CLONE_NEWNS) != 0) {
      if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
      write_line("/proc/self/setgroups", "deny");
      write_line("/proc/self/uid_map", text("0 ", user, " 1"));
      write_line("/proc/self/gid_map", text("0 ", group, " 1"));
    }
    return ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  }();
  return may;
}

class small_disk {
public:
  static constexpr std::uint64_t any_number = 1 << 20;  // tmpfs takes no limit once it has none

  small_disk(std::string folder, std::uint64_t bytes) : folder_(std::move(folder)), limit_(folder_ + ".limit") {
    ::mkdir(folder_.c_str(), 0777);
    is_mounted_ = mounts() && ::mount("tmpfs", folder_.c_str(), "tmpfs", 0, options(bytes).c_str()) == 0;
    resize(bytes);
  }
  small_disk(const small_disk&) = delete;
  ~small_disk() {
    if (is_mounted_) ::umount2(folder_.c_str(), MNT_DETACH);
    ::unlink(limit_.c_str());
  }
  bool is_mounted() const { return is_mounted_; }
  std::string how() const { return is_mounted_ ? "a file system of its own (tmpfs)" : "limits of files (ulimit -f)"; }
  // It keeps what is on it. There may be `files` more, where it is a file system of its own.
  void resize(std::uint64_t bytes, std::uint64_t files = any_number) {
    if (!is_mounted_) return write_line(limit_, text(bytes / 512, '\n'));
    struct statvfs now {};
    REQUIRE(::statvfs(folder_.c_str(), &now) == 0);
    const std::uint64_t used = (now.f_blocks - now.f_bfree) * now.f_frsize, there = now.f_files - now.f_ffree;
    const std::string to = options(std::max(bytes, used), there + files);
    // It stays as it was where tasks have written meanwhile.
    ::mount("tmpfs", folder_.c_str(), "tmpfs", MS_REMOUNT, to.c_str());
  }
  // The words by which a process is started that has this disk.
  std::vector<std::string> words(std::vector<std::string> program) const {
    if (is_mounted_) return program;
    std::vector<std::string> all{"/bin/sh", "-c", R"sh(trap '' XFSZ; ulimit -f "$(cat "$0")"; exec "$@")sh", limit_};
    all.insert(all.end(), program.begin(), program.end());
    return all;
  }

private:
  std::string folder_, limit_;
  bool is_mounted_ = false;

  static std::string options(std::uint64_t bytes, std::uint64_t files = any_number) {
    return text("mode=777,size=", bytes, ",nr_inodes=", files);
  }
};

}  // namespace disks
