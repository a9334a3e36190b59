// A thread, or an error that says what it was for, what failed and what to do: std::thread's own says "Resource
// temporarily unavailable". Everything here that begins a thread begins it by this.
#pragma once
#if defined(__STDCPP_THREADS__)
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "error.hpp"

namespace gradus {

// Begins a thread that calls f. `who` begins the sentence ("prefetch"), `remedy` ends it ("leave prefetch out").
// Error: resource_exhausted if there is none to be had (RLIMIT_NPROC, a container's limit, memory); f is not called
// then, but `otherwise` before the error is raised.
template <class Thread = std::jthread, class F, class Otherwise = void (*)()>
Thread start_thread(
    [[maybe_unused]] std::string_view who, [[maybe_unused]] std::string_view remedy, F&& f,
    Otherwise otherwise = [] {}) {
#if defined(__cpp_exceptions)
  try {
    return Thread(std::forward<F>(f));
  } catch (const std::system_error& e) {
    otherwise();
    raise(status::resource_exhausted,
          text(who, " cannot begin a thread: ", e.code().message(),
               " (end other threads or processes, raise the limit of them (ulimit -u), or ", remedy, ")"));
  }
#else
  (void)otherwise;
  return Thread(std::forward<F>(f));
#endif
}

}  // namespace gradus
#endif
