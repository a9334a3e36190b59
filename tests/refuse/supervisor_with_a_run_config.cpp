// expect: because a run_config configures a trainer; what it says is said to a supervisor by supervisor_options
// at most: 60 lines
#include <gradus/gradus.hpp>
#include <gradus/train/supervisor.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  auto x = g.placeholder("x", {batch, 4});
  return model_spec{.loss = reduce_mean(square(dense(x, {.units = 3})))};
};

int main() {
#ifdef FIX
  gradus::make_supervisor<model>({.logdir = "run"}, gradus::adam{});
#else
  gradus::make_supervisor<model>({.logdir = "run"}, gradus::adam{}, gradus::run_config{.model_dir = "run"});
#endif
}
