// The lock table lists the lock files that this process holds, so that no forked child inherits them.
//
// A lock of an open file (F_OFD_SETLK, flock) ends with its last descriptor. A directory lock needs such a lock within
// one process: a second lock of the same file is refused there too, and code that opens the file and closes it drops
// nothing (with fcntl's older locks, which belong to the process, both go wrong). But a forked child gets a copy of the
// descriptor, and would hold the lock after its parent has died. So the table lists all of them, and a handler that
// `fork` calls in the child (pthread_atfork) closes them there before anything else of the child runs. A child that
// executes another program does not have them anyway (O_CLOEXEC).
#pragma once
#include "../base/build.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace gradus::inline GRADUS_BUILD::detail {

class lock_table {
public:
  // Returns the table of the process, which all of its parts have to share.
  static lock_table& of_process() {
    static lock_table& table = *new lock_table;  // never destroyed: a fork may come at any time
    return table;
  }
  // No thread forks while this lives. A child that began after a lock's file was opened, and before its entry, would
  // inherit the lock; so would one that began between the entry's end and the file's.
  class without_forks {
  public:
    without_forks() { ::pthread_mutex_lock(&of_process().mutex_); }
    without_forks(const without_forks&) = delete;
    ~without_forks() { ::pthread_mutex_unlock(&of_process().mutex_); }
    // Remembers an open file until `remove`.
    void add(int descriptor) {
      entry e{descriptor, {}, {}};
      struct stat s {};
      if (::fstat(descriptor, &s) != 0) return;
      e.device = s.st_dev, e.inode = s.st_ino;
      of_process().entries_.push_back(e);
    }
    void remove(int descriptor) {
      std::erase_if(of_process().entries_, [descriptor](const entry& e) { return e.descriptor == descriptor; });
    }
  };

private:
  struct entry {
    int descriptor;
    dev_t device;
    ino_t inode;
  };

  lock_table() {
    ::pthread_atfork([] { ::pthread_mutex_lock(&of_process().mutex_); },
                     [] { ::pthread_mutex_unlock(&of_process().mutex_); }, [] { of_process().forget_in_child(); });
  }
  // Makes only calls that are safe in a forked child of a program with threads.
  void forget_in_child() {
    for (const entry& e : entries_) {
      struct stat s {};
      // A file system of the program may have closed it without notice; the number then belongs to another file.
      if (::fstat(e.descriptor, &s) == 0 && s.st_dev == e.device && s.st_ino == e.inode) ::close(e.descriptor);
    }
    entries_.clear();
    ::pthread_mutex_unlock(&mutex_);
  }

  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  std::vector<entry> entries_;
};

}  // namespace gradus::detail
#endif
