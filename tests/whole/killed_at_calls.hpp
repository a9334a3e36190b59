// Runs a function in a child process that is killed with SIGKILL as it enters its n-th system call of some kinds,
// counted over all its threads.
#pragma once
#include <doctest/doctest.h>

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>

// Calls that change or order what is on the disk, or that lead there.
inline bool touches_files(long long call) {
  static constexpr long calls[] = {
    SYS_openat,
    SYS_write,
    SYS_pwrite64,
    SYS_writev,
    SYS_fsync,
    SYS_fdatasync,
    SYS_close,
    SYS_renameat,
    SYS_renameat2,
    SYS_unlinkat,
    SYS_mkdirat,
    SYS_flock,
    SYS_ftruncate,
    SYS_fallocate,
    SYS_fstat,
    SYS_newfstatat,
    SYS_getdents64,
    SYS_munmap,
    SYS_mmap,
#if defined(SYS_open)
    SYS_open,
    SYS_rename,
    SYS_unlink,
    SYS_mkdir,
    SYS_stat
#endif
  };
  return std::find(std::begin(calls), std::end(calls), call) != std::end(calls);
}

struct ended {
  bool killed = false;
  int exit_code = -1;
  long counted = 0;  // calls between the child's two marks
};

// Runs `f` in a child under trace and kills it at the n-th counted call (from 0; -1: never). The child begins to be
// counted at its first raise(SIGSTOP).
template <class F>
ended run_and_kill(long n, F&& f, bool (*counts)(long long) = touches_files) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    ::raise(SIGSTOP);
    int code = 3;
    try {
      code = f();
    } catch (...) {
    }
    ::_exit(code);
  }
  ended out;
  int how = 0;
  REQUIRE(::waitpid(child, &how, 0) == child);
  REQUIRE(WIFSTOPPED(how));
  constexpr long options =
      PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK;
  REQUIRE(::ptrace(PTRACE_SETOPTIONS, child, nullptr, options) == 0);
  ::ptrace(PTRACE_SYSCALL, child, nullptr, 0L);
  for (;;) {
    const pid_t who = ::waitpid(-1, &how, __WALL);
    if (who < 0) break;  // nobody is left
    if (WIFEXITED(how) || WIFSIGNALED(how)) {
      if (who != child) continue;
      out.killed = WIFSIGNALED(how), out.exit_code = WIFEXITED(how) ? WEXITSTATUS(how) : -1;
      continue;
    }
    const int signal = WSTOPSIG(how);
    long deliver = 0;
    if (signal == (SIGTRAP | 0x80)) {
      __ptrace_syscall_info info{};
      if (::ptrace(PTRACE_GET_SYSCALL_INFO, who, sizeof info, &info) > 0 && info.op == PTRACE_SYSCALL_INFO_ENTRY &&
          counts(static_cast<long long>(info.entry.nr)) && out.counted++ == n)
        ::kill(child, SIGKILL);
    } else if (signal != SIGTRAP && signal != SIGSTOP) {
      deliver = signal;
    }
    ::ptrace(PTRACE_SYSCALL, who, nullptr, deliver);
  }
  return out;
}
