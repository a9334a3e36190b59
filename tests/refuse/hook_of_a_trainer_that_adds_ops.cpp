// expect: gradus: this hook's `begin` cannot be called with (), so it would never be called; write `void begin()`.
// at most: 70 lines
#include <gradus/gradus.hpp>
#include <gradus/train/supervisor.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  auto x = g.placeholder("x", {batch, 4});
  return model_spec{.loss = reduce_mean(square(dense(x, {.units = 3})))};
};

struct watcher {
  using policy_for = gradus::kind::hook;
#ifdef FIX
  void begin() {}
#else
  void begin(gradus::graph&) {}  // of a monitored session's hook
#endif
};

int main() { gradus::make_supervisor<model>({.logdir = "run"}, gradus::adam{}, watcher{}); }
