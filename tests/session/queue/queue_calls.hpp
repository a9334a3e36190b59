// Calls of a queue on threads of their own, and how a test knows that they wait.
#pragma once
#include <gradus/session/queue/any_queue.hpp>

#include <optional>
#include <string>
#include <thread>
#include <vector>

// Runs a function on a thread; join() says how it ended. `at_once`: on this thread, since it will not wait.
class queue_call {
public:
  template <class F>
  explicit queue_call(F f, bool at_once = false) {
    auto body = [this, f = std::move(f)]() mutable {
      try {
        f();
      } catch (const gradus::error& e) {
        kind_ = e.kind(), what_ = e.what();
      }
    };
    if (at_once)
      body();
    else
      thread_ = std::thread(std::move(body));
  }
  queue_call(const queue_call&) = delete;
  ~queue_call() { join(); }
  // The error's kind, if it failed.
  std::optional<gradus::status> join() {
    if (thread_.joinable()) thread_.join();
    return kind_;
  }
  const std::string& what() const { return what_; }

private:
  std::optional<gradus::status> kind_;
  std::string what_;
  std::thread thread_;
};

// Until so many calls wait in the queue.
inline void until_pending(const gradus::any_queue& q, std::int64_t enqueues, std::int64_t dequeues) {
  while (q.pending() != gradus::pending_calls{enqueues, dequeues}) std::this_thread::yield();
}

template <gradus::storable T>
std::vector<T> values_of(const gradus::const_tensor_view& array) {
  const auto span = array.as<T>();
  return {span.begin(), span.end()};
}

// Rows of one component of scalars.
template <gradus::storable T>
void enqueue_rows(gradus::any_queue& q, const std::vector<T>& rows, const gradus::blocking_options& wait = {}) {
  const gradus::const_tensor_view view{std::span<const T>(rows)};
  q.enqueue_many(std::span<const gradus::const_tensor_view>(&view, 1), wait);
}
template <gradus::storable T>
std::vector<T> dequeue_rows(gradus::any_queue& q, std::int64_t n, const gradus::blocking_options& wait = {}) {
  return values_of<T>(q.dequeue_many(n, wait)[0]);
}
