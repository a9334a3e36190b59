#include <gradus/train/run_hooks.hpp>

#include <gradus/gradus.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/validation.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
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

TEST_CASE(
    "a call of train inside another one of its trainer is refused, with and without files, and the outer goes on") {
  const testing::temp_dir place;
  for (const bool with_files : {false, true}) {
    run_config c;
    if (with_files) c.model_dir = place.path();
    auto t = make_trainer<line>(gradus::momentum{.rate = 0.1, .decay = 0.5}, c);
    int refused = 0;
    fetching nested;
    nested.see = [&](run_context& context, const run_values& v) {
      if (v.global_step != 2) return;
      CHECK(why([&] { t.train(data(), {.steps = 2}); }, status::failed_precondition).find("another call of train") !=
            std::string::npos);
      ++refused;
      CHECK(context.session().global_step() == 2);
    };
    t.train(data(), {.max_steps = 4, .hooks = {nested}});
    CHECK(refused == 1);
    CHECK(t.global_step() == 4);
    t.train(data(), {.steps = 1});
    CHECK(t.global_step() == 5);
  }
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

// --- the same lists of a supervisor over a model

namespace {
auto supervise() { return make_supervisor<line>({}, gradus::momentum{.rate = 0.1, .decay = 0.5}); }
const std::vector<fetch> all_kinds{
    "loss", "cost", "guess", "line/kernel", "line/kernel/Momentum", "global_step", "learning_rate", "gradient_norm"};
// What a hook saw in each step, as one text.
struct writing_down {
  std::string* log;
  session_run_args before_run(run_context&) { return {.fetches = all_kinds}; }
  void after_run(run_context&, const run_values& v) {
    for (const const_tensor_view& r : v.results)
      for (std::size_t i = 0; i < r.size(); ++i)
        *log += text(r.type == float32   ? static_cast<double>(r.as<float>()[i])
                     : r.type == float64 ? r.as<double>()[i]
                                         : static_cast<double>(r.as<std::int64_t>()[i]),
                     ' ');
    *log += text("| ", v.global_step, ' ', v.loss, ' ', v.learning_rate, ' ', v.result("cost"), '\n');
  }
};
// The steps of a session until something stops the supervisor, or so many.
template <class Supervisor, class Session>
std::int64_t loop(Supervisor& sv, Session& sess, std::int64_t most) {
  while (!sv.should_stop() && sess.global_step() < most) sess.run();
  return sess.global_step();
}
}  // namespace

TEST_CASE("a session of a supervisor calls the hooks of its list behind the policies, each once a step") {
  std::string log;
  auto input = data();
  auto sv = make_supervisor<line>({}, gradient_descent{.rate = 0.1}, as_policy{{&log, "p"}});
  {
    const std::vector<any_hook> hooks{recording{&log, "a"}, recording{&log, "b"}};
    auto sess = sv.managed_session("", data(), {.hooks = hooks});  // it keeps the data
    CHECK(log == "p begin; a begin; b begin; p session at 0; a session at 0; b session at 0; ");
    log.clear();
    CHECK(sess.run());
    CHECK(log == "p before; a before; b before; p after 1; a after 1; b after 1; ");
    log.clear();
  }
  CHECK(log == "p end at 1; a end at 1; b end at 1; ");
  // The next session has its own list, or none.
  log.clear();
  {
    auto sess = sv.managed_session("", input);
    sess.run();
  }
  CHECK(log.find("a ") == std::string::npos);
  // Without data, on arrays of the program's.
  log.clear();
  {
    auto sess = sv.managed_session("", {.hooks = {recording{&log, "c"}}});
    sess.run({{"x", xs}, {"y", ys}});
    sv.stop();  // `end` is called once
  }
  CHECK(log ==
        "p begin; c begin; p session at 0; c session at 0; p before; c before; p after 1; c after 1; p end at 1; c end "
        "at 1; ");
  // An error ends a run without `end`.
  log.clear();
  CHECK_THROWS_WITH_AS(
      [&] {
        auto sess = sv.managed_session("", input, {.hooks = {recording{&log, "d"}}});
        sess.run();
        raise(status::internal, "no more");
      }(),
      "no more", internal);
  CHECK(log.find("d after 1") != std::string::npos);
  CHECK(log.find("d end") == std::string::npos);
}

TEST_CASE("hooks of a supervisor see in each step what a trainer's see, compiled and interpreted, fed and read") {
  std::string of_trainer, read, fed, interpreted;
  auto trainer = make();
  trainer.train(data(), {.max_steps = 3, .hooks = {writing_down{&of_trainer}}});
  CHECK(std::count(of_trainer.begin(), of_trainer.end(), '\n') == 3);
  auto input = data();
  auto sv = supervise();
  {
    auto sess = sv.managed_session("", input, {.hooks = {writing_down{&read}}});
    CHECK(loop(sv, sess, 3) == 3);
  }
  {
    auto sess = sv.managed_session("", {.hooks = {writing_down{&fed}}});
    for (int i = 0; i < 3; ++i) sess.run({{"x", xs}, {"y", ys}});
  }
  auto by_program = make_supervisor(line, {}, gradus::momentum{.rate = 0.1, .decay = 0.5});
  {
    auto again = data();
    auto sess = by_program.managed_session("", again, {.hooks = {writing_down{&interpreted}}});
    CHECK(loop(by_program, sess, 3) == 3);
  }
  CHECK(read == of_trainer);
  CHECK(fed == of_trainer);
  CHECK(interpreted == of_trainer);
}

TEST_CASE("a hook's stop asks the supervisor to stop, which counts the step that asked; hooks do not change the bits") {
  const auto kernel = [](auto& sess) {
    auto& v = sess.steps().variables();
    float w = 0;
    std::memcpy(&w, v.value(static_cast<std::size_t>(v.find("line/kernel"))), sizeof w);
    return w;
  };
  for (const auto services : {service_place::in_step, service_place::threads}) {
    auto sv = make_supervisor<line>({.services = services}, gradus::momentum{.rate = 0.1, .decay = 0.5});
    auto input = data();
    float with = 0, without = 1;
    {
      auto sess = sv.managed_session("", input, {.hooks = {fetching{{"loss"}, [](run_context& c, const run_values& v) {
                                                                      if (v.global_step == 3) c.request_stop();
                                                                    }}}});
      CHECK(loop(sv, sess, 100) == 3);
      CHECK(sv.should_stop());
      with = kernel(sess);
    }
    {
      auto again = data();
      auto sess = sv.managed_session("", again);
      CHECK(loop(sv, sess, 3) == 3);
      CHECK(!sv.should_stop());
      without = kernel(sess);
    }
    CHECK(with == without);
  }
}

TEST_CASE("what a supervisor's hook cannot fetch is an error before the step that says what could be") {
  auto sv = supervise();
  auto input = data();
  const auto run = [&](const any_hook& h) {
    auto sess = sv.managed_session("", input, {.hooks = {h}});
    const auto w = sess.global_step();
    try {
      sess.run();
    } catch (...) {
      CHECK(sess.global_step() == w);
      throw;
    }
  };
  CHECK(why([&] { run(fetching{{"logits"}}); }, status::not_found) ==
        "a hook fetches \"logits\", which the model does not keep; of a step can be fetched: guess, cost, loss, "
        "global_step, line/kernel, line/kernel/Momentum, line/bias, line/bias/Momentum, learning_rate, gradient_norm. "
        "What else is computed can be fetched once the model names it with g.add_output");
  graph g;
  const value v = g.variable("w", {2}, {});
  CHECK(why([&] { run(fetching{{v}}); }, status::invalid_argument) ==
        "a hook fetches a tensor of a graph from a supervisor, whose model is not that graph; give its name, \"w\", "
        "and let the model name it with g.add_output");
  struct feeds_x {
    session_run_args before_run(run_context&) { return {.feeds = {{"x", xs}}}; }
  };
  CHECK(why([&] { run(feeds_x{}); }, status::invalid_argument) ==
        "a hook feeds a step of a supervisor, whose placeholders are fed by its data; add what is fed there, or feed "
        "in a monitored session");
  const auto run_fed = [&] {
    auto sess = sv.managed_session("", {.hooks = {feeds_x{}}});
    sess.run({{"x", xs}, {"y", ys}});
  };
  CHECK(why(run_fed, status::invalid_argument).find("fed by what run is given; add") != std::string::npos);
  struct traces {
    session_run_args before_run(run_context&) { return {.options = {.trace = trace_level::full_trace}}; }
  };
  CHECK(why([&] { run(traces{}); }, status::invalid_argument).find("a step of a supervisor; trainer.profile(data)") !=
        std::string::npos);
  struct adds_ops {
    void begin(graph&) {}
  };
  CHECK(why([&] { run(adds_ops{}); }, status::failed_precondition).find("here is none: the model of a trainer or") !=
        std::string::npos);
  // None of that is left behind: another session goes.
  int seen = 0;
  {
    auto sess = sv.managed_session("", input,
                                   {.hooks = {fetching{{"loss"}, [&](run_context&, const run_values&) { ++seen; }}}});
    sess.run();
  }
  CHECK(seen == 1);
}

TEST_CASE("saving listeners of a run-time list: of a trainer, with and without validation") {
  struct tells {
    std::string* log;
    void before_save(hooked_session& s, std::int64_t step) {
      *log += text("before ", step, " at ", s.global_step(), "; ");
    }
    bool after_save(hooked_session&, std::int64_t step) {
      *log += text("after ", step, "; ");
      return step == 4;
    }
    void end(hooked_session&, std::int64_t step) { *log += text("end ", step, "; "); }
  };
  for (const bool validates : {false, true}) {
    std::string log, of_hook;
    gradus::testing::temp_dir dir;
    auto t = make_trainer<line>(gradient_descent{.rate = 0.1}, silent{},
                                run_config{.model_dir = dir.path(), .save_checkpoints_steps = 2});
    if (validates)
      t.train(data(), {.max_steps = 9,
                       .hooks = {recording{&of_hook, "h"}},
                       .saving_listeners = {tells{&log}},
                       .validation = {data().take(1), 1}});
    else
      t.train(data(), {.max_steps = 9, .hooks = {recording{&of_hook, "h"}}, .saving_listeners = {tells{&log}}});
    CHECK(log == "before 0 at 0; after 0; before 2 at 2; after 2; before 4 at 4; after 4; end 4; ");
    CHECK(t.global_step() == 4);
    CHECK(of_hook.ends_with("h end at 4; "));
    // The next run has none.
    t.train(data(), {.max_steps = 6});
    CHECK(log.ends_with("end 4; "));
  }
  auto unsaved = make();
  std::string log;
  CHECK(why(
            [&] {
              unsaved.train(data(),
                            {.max_steps = 1, .hooks = std::vector<any_hook>(), .saving_listeners = {tells{&log}}});
            },
            status::failed_precondition)
            .starts_with("saving_listeners of a run that saves nothing"));
  CHECK(unsaved.global_step() == 0);
}
