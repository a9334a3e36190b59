#include <gradus/train/run_hooks.hpp>

#include <gradus/gradus.hpp>

#include <doctest/doctest.h>

#include <functional>

using namespace gradus;

namespace {
// One weight and one bias, whose steps can be done by hand; the guess has a name in training.
inline constexpr auto line = [](graph& g) {
  auto x = g.placeholder("x", {batch, 1});
  auto y = g.placeholder("y", {batch, 1});
  auto guess = dense(x, {.units = 1, .name = "line", .kernel_initializer = ones});
  g.add_output(output::fetch, "guess", guess);
  auto loss = reduce_mean(square(guess - y));
  g.summary_scalar("cost", loss * 10.0);
  return model_spec{.loss = loss};
};
const std::vector<float> xs{1, 2}, ys{3, 5};
auto data() { return from_spans("x", xs, extents{1}, "y", ys, extents{1}).repeat().batch(2); }
auto make() { return make_trainer<line>(gradus::momentum{.rate = 0.1, .decay = 0.5}); }

std::string why(const std::function<void()>& call, status kind) {
  try {
    call();
  } catch (const error& e) {
    CHECK(e.kind() == kind);
    return e.what();
  }
  return "(nothing was refused)";
}
struct fetching {
  std::vector<fetch> fetches;
  std::function<void(run_context&, const run_values&)> see = [](run_context&, const run_values&) {};
  session_run_args before_run(run_context&) { return {.fetches = fetches}; }
  void after_run(run_context& c, const run_values& v) { see(c, v); }
};
struct recording {
  std::string* log;
  std::string name;
  void begin() { *log += name + " begin; "; }
  void after_create_session(hooked_session& s) { *log += text(name, " session at ", s.global_step(), "; "); }
  void before_run(run_context&) { *log += name + " before; "; }
  void after_run(run_context&, const run_values& v) { *log += text(name, " after ", v.global_step, "; "); }
  void end(hooked_session& s) { *log += text(name, " end at ", s.global_step(), "; "); }
};
struct as_policy : recording {
  using policy_for = kind::hook;
};
}  // namespace

TEST_CASE("hooks of a run-time list are called behind the policies, each once a step") {
  std::string log;
  auto trainer = make_trainer<line>(gradient_descent{.rate = 0.1}, as_policy{{&log, "p"}});
  std::vector<any_hook> hooks{recording{&log, "a"}, recording{&log, "b"}};
  trainer.train(data(), {.max_steps = 1, .hooks = hooks});
  CHECK(log ==
        "p begin; a begin; b begin; p session at 0; a session at 0; b session at 0; p before; a before; b "
        "before; p after 1; a after 1; b after 1; p end at 1; a end at 1; b end at 1; ");
  log.clear();
  trainer.train(data(), {.steps = 1, .hooks = {recording{&log, "c"}}});
  CHECK(log.find("c session at 1; p before; c before; p after 2; c after 2;") != std::string::npos);
}

TEST_CASE("a hook's stop ends the run, which counts the step that asked for it; hooks do not change the bits") {
  auto with = make(), without = make();
  with.train(data(), {.max_steps = 100, .hooks = {fetching{{}, [](run_context& c, const run_values& v) {
                                                             if (v.global_step == 3) c.request_stop();
                                                           }}}});
  without.train(data(), {.max_steps = 3});
  CHECK(with.global_step() == 3);
  const auto a = with.state(), b = without.state();
  for (const auto& e : a.entries())
    if (e.dynamic == nullptr) CHECK(std::equal(e.bytes.begin(), e.bytes.end(), b.find(e.name)->bytes.begin()));
}

TEST_CASE("fetches by name: outputs, variables, slots, step, rate, norm, and what the model named") {
  auto trainer = make();
  int steps = 0;
  std::vector<float> weights{1};
  float bias = 0;
  const auto see = [&](run_context& c, const run_values& v) {
    ++steps;
    REQUIRE(v.results.size() == 8);
    // The step by hand, from the parameters before it.
    const float w = weights.back(), g0 = w * xs[0] + bias - ys[0], g1 = w * xs[1] + bias - ys[1];
    CHECK(v.results[0].as<float>()[0] == doctest::Approx((g0 * g0 + g1 * g1) / 2));  // loss
    CHECK(v.results[1].as<float>()[0] == doctest::Approx(5 * (g0 * g0 + g1 * g1)));  // a summary
    CHECK(v.results[2].as<float>()[1] == doctest::Approx(w * xs[1] + bias));         // the guess
    CHECK((v.results[2].dims == extents{2, 1}));
    const float dw = g0 * xs[0] + g1 * xs[1], db = g0 + g1;
    CHECK(v.results[7].as<double>()[0] == doctest::Approx(std::sqrt(dw * dw + db * db)));           // norm
    CHECK(v.results[5].as<std::int64_t>()[0] == steps);                                             // step
    CHECK(v.results[6].as<double>()[0] == doctest::Approx(0.1));                                    // rate
    CHECK(v.results[3].as<float>()[0] == doctest::Approx(w - 0.1F * v.results[4].as<float>()[0]));  // momentum
    if (steps == 1) CHECK(v.results[4].as<float>()[0] == doctest::Approx(dw));
    CHECK(c.session().variable("line/kernel").as<float>()[0] == v.results[3].as<float>()[0]);
    CHECK((v.loss == doctest::Approx((g0 * g0 + g1 * g1) / 2) && v.result("cost") == doctest::Approx(10 * v.loss)));
    weights.push_back(v.results[3].as<float>()[0]);
    bias = c.session().variable("line/bias").as<float>()[0];
  };
  trainer.train(data(), {.max_steps = 3,
                         .hooks = {fetching{{"loss", "cost", "guess", "line/kernel", "line/kernel/Momentum",
                                             "global_step", "learning_rate", "gradient_norm"},
                                            see}}});
  CHECK(steps == 3);
  // An interpreted model has the same names.
  auto interpreted = make_trainer(line, gradus::momentum{.rate = 0.1, .decay = 0.5});
  weights = {1}, bias = 0, steps = 0;
  interpreted.train(data(), {.max_steps = 2,
                             .hooks = {fetching{{"loss", "cost", "guess", "line/kernel", "line/kernel/Momentum",
                                                 "global_step", "learning_rate", "gradient_norm"},
                                                see}}});
  CHECK(steps == 2);
}

TEST_CASE("the norm is that of the step in which it is asked for") {
  std::vector<double> each, some;
  struct sometimes {
    std::vector<double>* norms;
    std::int64_t every, step = 0;
    session_run_args before_run(run_context&) {
      if (++step % every != 0) return {};
      return {.fetches = {"gradient_norm"}};
    }
    void after_run(run_context&, const run_values& v) {
      for (const auto& one : v.results) norms->push_back(one.as<double>()[0]);
    }
  };
  make().train(data(), {.max_steps = 6, .hooks = {sometimes{&each, 1}}});
  make().train(data(), {.max_steps = 6, .hooks = {fetching{{"loss"}}, sometimes{&some, 2}}});
  REQUIRE(each.size() == 6);
  CHECK(each[1] != each[3]);
  CHECK(some == std::vector<double>{each[1], each[3], each[5]});
}

TEST_CASE("what cannot be fetched is an error before the step that says what could be") {
  auto trainer = make();
  const auto train = [&](const any_hook& h) { trainer.train(data(), {.steps = 1, .hooks = {h}}); };
  CHECK(why([&] { train(fetching{{"logits"}}); }, status::not_found) ==
        "a hook fetches \"logits\", which the model does not keep; of a step can be fetched: guess, cost, loss, "
        "global_step, line/kernel, line/kernel/Momentum, line/bias, line/bias/Momentum, learning_rate, gradient_norm. "
        "What else is computed can be fetched once the model names it with g.add_output");
  CHECK(trainer.global_step() == 0);
  graph g;
  const value v = g.variable("w", {2}, {});
  CHECK(why([&] { train(fetching{{v}}); }, status::invalid_argument).find("give its name, \"w\"") != std::string::npos);
  struct feeds_x {
    session_run_args before_run(run_context&) { return {.feeds = {{"x", xs}}}; }
  };
  CHECK(why([&] { train(feeds_x{}); }, status::invalid_argument).find("placeholders are fed by its data") !=
        std::string::npos);
  struct traces {
    session_run_args before_run(run_context&) { return {.options = {.trace = trace_level::full_trace}}; }
  };
  CHECK(why([&] { train(traces{}); }, status::invalid_argument).find("trainer.profile(data)") != std::string::npos);
  struct adds_ops {
    void begin(graph&) {}
  };
  CHECK(why([&] { train(adds_ops{}); }, status::failed_precondition).find("here is none") != std::string::npos);
  CHECK(trainer.global_step() == 0);
}
