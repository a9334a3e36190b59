// A template: tests/places/places.py compiles it as a program of a user's, which is the only place that a hook has.
// halts_early stops a run whose loss is small; a trainer and a supervisor call it. (tests/refuse/hook_*.cpp have what
// is refused.)
#include <gradus/gradus.hpp>
#include <gradus/train/supervisor.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace gradus;

namespace {
struct halts_early {
  using policy_for = kind::hook;
  double target;
  std::string* said;
  void begin() { *said += "begin "; }
  void after_run(run_context& c, const run_values& v) {
    *said += text(v.global_step, ' ');
    if (v.loss < target) c.request_stop();
  }
  void end(hooked_session&) { *said += "end"; }
};

inline constexpr auto line = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 1}), y = g.placeholder("y", {batch, 1});
  return model_spec{.loss = reduce_mean(square(dense(x, {.units = 1, .kernel_initializer = zeros}) - y))};
};
const std::vector<float> xs{1, 2}, ys{3, 5};
auto data() { return from_spans("x", xs, extents{1}, "y", ys, extents{1}).repeat().batch(2); }
constexpr gradient_descent descent{.rate = 0.1};
}  // namespace

TEST_CASE("a trainer and a supervisor call the hook, and end where it stops them") {
  std::string by_trainer, by_supervisor;
  auto t = make_trainer<line>(descent, halts_early{2, &by_trainer});
  t.train(data(), {.max_steps = 100});
  auto sv = make_supervisor<line>({}, descent, halts_early{2, &by_supervisor});
  {
    auto sess = sv.managed_session("", data());
    while (!sv.should_stop()) sess.run();
  }
  CHECK(by_trainer == "begin 1 2 end");
  CHECK(by_supervisor == by_trainer);
}
