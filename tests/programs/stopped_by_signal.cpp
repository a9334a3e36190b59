// Trains until a signal ends it.
//
//   stopped_by_signal trainer|run_time|supervisor|monitored|session DIR [stuck]
//
// It says "ready" once it has made three steps, and "ended N" with the step at which it ended in order. `stuck`: it
// says "stopping" then, and does not end by itself.
#include <gradus/gradus.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/train/hooks/checkpoint_saver_hook.hpp>
#include <gradus/train/hooks/stop_on_signal.hpp>
#include <gradus/train/monitored_session.hpp>
#include <gradus/train/run_hooks.hpp>
#include <gradus/train/session_supervisor.hpp>
#include <gradus/train/supervisor.hpp>

#include <unistd.h>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace {
inline constexpr auto line = [](gradus::graph& g) {
  using namespace gradus;
  auto x = g.placeholder("x", {batch, 1});
  auto y = g.placeholder("y", {batch, 1});
  return model_spec{.loss = reduce_mean(square(dense(x, {.units = 1, .name = "line"}) - y))};
};
const std::vector<float> xs{1, 2}, ys{3, 5};
auto data() { return gradus::from_spans("x", xs, gradus::extents{1}, "y", ys, gradus::extents{1}).repeat().batch(2); }

void say(const std::string& what) { std::printf("%s\n", what.c_str()), std::fflush(stdout); }
bool stuck = false;
void counted(std::int64_t step) {
  if (step == 3) say("ready");
}
struct speaking {
  using policy_for = gradus::kind::hook;
  void after_run(gradus::run_context& c, const gradus::run_values&) { counted(c.session().global_step()); }
  void end(gradus::hooked_session&) {
    if (!stuck) return;
    say("stopping");
    for (;;) ::pause();
  }
};
// A graph whose op counts the global step.
struct counting {
  gradus::graph g;
  gradus::value step = gradus::create_global_step(g);
  gradus::value next = gradus::assign_add(step, g.constant(1, gradus::int64));
};
constexpr std::int64_t many = 1'000'000'000'000;
}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string_view how = argv[1];
  const std::string dir = argv[2];
  stuck = argc > 3;
  const gradus::run_config config{.model_dir = dir, .save_summary_steps = 0, .save_checkpoints_steps = many};
  const gradus::stop_on_signal ends;
  std::int64_t at = -1;
  if (how == "trainer") {
    auto t = gradus::make_trainer<line>(gradus::gradient_descent{.rate = 0.001}, config, ends, speaking{});
    t.train(data(), {.max_steps = many});
    at = t.global_step();
  } else if (how == "run_time") {
    auto t = gradus::make_trainer<line>(gradus::gradient_descent{.rate = 0.001}, config);
    t.train(data(), {.max_steps = many, .hooks = {ends, speaking{}}});
    at = t.global_step();
  } else if (how == "supervisor") {
    auto sv = gradus::make_supervisor<line>({.logdir = dir, .summary_op = gradus::none},
                                            gradus::gradient_descent{.rate = 0.001}, ends, speaking{});
    auto input = data();
    auto sess = sv.managed_session("", input);
    while (!sv.should_stop()) sess.run();
    at = sess.global_step();
  } else if (how == "monitored") {
    counting m;
    gradus::scaffold parts;
    gradus::chief_session_creator chief(gradus::sessions_of(m.g), m.g, parts, {.checkpoint_dir = dir});
    gradus::monitored_session sess(
        chief, {gradus::checkpoint_saver_hook(dir, {.save_steps = many, .parts = &parts}), ends, speaking{}});
    sess.within([&] {
      while (!sess.should_stop()) at = sess.run(m.next).as<std::int64_t>()[0];
    });
  } else if (how == "session") {
    counting m;
    auto sv = gradus::make_supervisor(m.g, gradus::sessions_of(m.g), {.logdir = dir, .summary_op = gradus::none});
    auto sess = sv.managed_session();
    sess.within([&] {
      while (!sv.should_stop()) {
        counted(at = sess.run(m.next).as<std::int64_t>()[0]);
        ends.tell(sv);
      }
    });
  }
  say("ended " + std::to_string(at));
  return at < 0 ? 2 : 0;
}
