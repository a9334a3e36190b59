// What a session keeps beside its variables: which of them have no value, where its random stream stands, and whether a
// thread is at work in it.
#pragma once
#include <atomic>
#include <cstring>
#include <string_view>
#include <vector>

#include "machine.hpp"
#include "variables.hpp"

namespace gradus::detail {

// State of a session in a checkpoint: the names of the variables that have no value, each with a zero byte behind it.
// Local variables are not in checkpoints.
class variables_without_value final : public blob {
public:
  explicit variables_without_value(variable_arena& variables) : variables_(variables) {}
  void save(std::vector<std::byte>& out) const override {
    for (std::size_t i = 0; i < variables_.size(); ++i) {
      const variable_info& v = variables_.info(i);
      if (v.local || v.initialized) continue;
      const auto* p = reinterpret_cast<const std::byte*>(v.name.data());
      out.insert(out.end(), p, p + v.name.size());
      out.push_back(std::byte{0});
    }
  }
  void load(std::span<const std::byte> in) override {
    std::vector<bool> without(variables_.size());
    std::string_view rest(reinterpret_cast<const char*>(in.data()), in.size());
    while (!rest.empty()) {
      const std::size_t end = rest.find('\0');
      const int at = end == rest.npos ? -1 : variables_.find(rest.substr(0, end));
      if (at < 0)
        raise(status::data_loss,
              "the list of a session's variables without a value names none of its variables; expected the state of a "
              "session of the same graph");
      without[static_cast<std::size_t>(at)] = true;
      rest.remove_prefix(end + 1);
    }
    for (std::size_t i = 0; i < variables_.size(); ++i)
      if (variable_info& v = variables_.info(i); !v.local) v.initialized = !without[i];
  }

private:
  variable_arena& variables_;
};

// The number of a run that draws: one more than that of the last one. Runs that start side by side take different ones.
inline void take_number(std::int64_t& last) {
  if constexpr (__atomic_always_lock_free(sizeof last, nullptr))
    __atomic_fetch_add(&last, 1, __ATOMIC_RELAXED);
  else  // a board of 32 bits, where nothing runs side by side
    ++last;
}
// Whether a node reads the seed and the position of the random stream (ops/random.hpp).
inline bool draws_numbers(const runnable& r) {
  const graph_view& v = r.graph.view;
  for (int i = 0; i < v.size; ++i) {
    bool seed = false, step = false;
    for (int e = v.nodes[i].first, end = e + v.nodes[i].inputs; e < end; ++e) {
      if (v.nodes[v.edges[e]].op != &variable_card) continue;
      seed = seed || r.name_of(v.edges[e]) == "random_seed", step = step || r.name_of(v.edges[e]) == "random_step";
    }
    if (seed && step) return true;
  }
  return false;
}

// In a debug build, says so when a session is entered while it is at work; not where there are no threads.
class one_thread_at_a_time {
public:
#if !defined(NDEBUG) && (defined(__unix__) || defined(__APPLE__) || defined(_WIN32))
  explicit one_thread_at_a_time(std::atomic<bool>& busy) : busy_(busy) {
    if (busy_.exchange(true, std::memory_order_acquire))
      raise(status::failed_precondition,
            "this session is at work in another call: a session takes one thread at a time; give each thread a session "
            "of its own, or lock a mutex around every call of this one");
  }
  ~one_thread_at_a_time() { busy_.store(false, std::memory_order_release); }
  one_thread_at_a_time(const one_thread_at_a_time&) = delete;

private:
  std::atomic<bool>& busy_;
#else
  explicit one_thread_at_a_time(std::atomic<bool>&) {}
#endif
};

}  // namespace gradus::detail
