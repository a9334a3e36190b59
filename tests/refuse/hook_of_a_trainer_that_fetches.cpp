// expect: gradus: this hook's `before_run` returns what a run shall fetch, and a trainer has no such fetches; return
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
  void before_run(gradus::run_context&) {}
#else
  int before_run(gradus::run_context&) { return 3; }
#endif
};

int main() { gradus::make_supervisor<model>({.logdir = "run"}, gradus::adam{}, watcher{}); }
