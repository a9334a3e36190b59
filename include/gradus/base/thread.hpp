// This header starts a thread, or raises an error that names the thread's purpose, the failure and the remedy; the
// message of std::thread's own error is "Resource temporarily unavailable". All code of the library that starts a
// thread uses it.
#pragma once
#include "build.hpp"

#if defined(__STDCPP_THREADS__)
#include <string_view>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

#include "error.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// A thread whose destructor waits for its end. It is std::jthread, which libc++ 16 does not have, without its stop
// token. Its owner tells the thread to end before (by a flag beside its condition).
class joining_thread {
public:
  joining_thread() = default;
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, joining_thread>)
  explicit joining_thread(F&& f) : thread_(std::forward<F>(f)) {}
  joining_thread(joining_thread&&) = default;
  joining_thread& operator=(joining_thread&& other) {
    if (joinable()) join();
    thread_ = std::move(other.thread_);
    return *this;
  }
  ~joining_thread() {
    if (joinable()) join();
  }
  bool joinable() const { return thread_.joinable(); }
  void join() { thread_.join(); }

private:
  std::thread thread_;
};
}  // namespace detail

#if defined(__cpp_exceptions)
namespace detail {
[[noreturn]] inline void raise_no_thread(std::string_view caller, std::string_view remedy, const std::system_error& e) {
  raise(status::resource_exhausted,
        text(caller, " cannot begin a thread: ", e.code().message(),
             " (end other threads or processes, raise the limit of them (ulimit -u), or ", remedy, ")"));
}
}  // namespace detail
#endif

// Starts a thread that calls f. An error message begins with `caller` ("prefetch") and ends with `remedy` ("leave
// prefetch out"). Raises resource_exhausted if no thread can be created (RLIMIT_NPROC, a container's limit, memory); f
// is then not called, and `otherwise` is called before the error is raised.
template <class Thread = detail::joining_thread, class F, class Otherwise = void (*)()>
Thread start_thread(
    [[maybe_unused]] std::string_view caller, [[maybe_unused]] std::string_view remedy, F&& f,
    Otherwise otherwise = [] {}) {
#if defined(__cpp_exceptions)
  try {
    return Thread(std::forward<F>(f));
  } catch (const std::system_error& e) {
    otherwise();
    detail::raise_no_thread(caller, remedy, e);
  }
#else
  (void)otherwise;
  return Thread(std::forward<F>(f));
#endif
}

}  // namespace gradus
#endif
