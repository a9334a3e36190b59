// costs: 100
#include <gradus/train/validation.hpp>

#include <gradus/checkpoint/background.hpp>
#include <gradus/gradus.hpp>
#include <gradus/input/map.hpp>
#include <gradus/testing/faulty_files.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "run_files.hpp"

using namespace gradus;
using gradus::testing::faulty_files;

namespace {
inline constexpr auto line = [](graph& g) {
  auto x = g.placeholder("x", {batch, 1});
  auto y = g.placeholder("y", {batch, 1});
  auto guess = dense(x, {.units = 1, .name = "line", .kernel_initializer = ones});
  return model_spec{.loss = reduce_mean(square(guess - y))};
};
// Trained towards y = 3 x from y = x. The validation's y = 2 x is met on the way, so its loss falls, then rises.
const std::vector<float> xs{1, 2, -1, -2}, ys{3, 6, -3, -6}, others{2, 4, -2, -4};
auto data() { return from_spans("x", xs, extents{1}, "y", ys, extents{1}).shuffle(4, 5).repeat().batch(2); }
auto test_set() { return from_spans("x", xs, extents{1}, "y", others, extents{1}).shuffle(4, 9).batch(3); }

template <class... More>
auto make(const faulty_files& files, const More&... more) {
  return make_trainer<line>(adam{.rate = 0.05}, files, silent{}, more...,
                            run_config{.model_dir = "run", .save_checkpoints_steps = 3, .keep_checkpoint_max = 0});
}
std::string why(const std::function<void()>& call, status kind) {
  try {
    call();
  } catch (const error& e) {
    CHECK(e.kind() == kind);
    return e.what();
  }
  return "(nothing was refused)";
}
struct hears_warnings {
  using policy_for = kind::log_sink;
  std::vector<std::string>* heard;
  void line(std::string_view) {}
  void step(const progress_report&, bool) {}
  void warning(std::string_view what) { heard->emplace_back(what); }
};
struct each_step {
  std::function<void(run_context&, const run_values&)> f;
  void after_run(run_context& c, const run_values& v) { f(c, v); }
};
// The losses of evaluations at every so many steps, made apart: a training without validation, evaluated by hand.
std::vector<double> losses_by_hand(int every, int steps) {
  faulty_files files;
  auto t = make(files);
  std::vector<double> all;
  auto input = data();
  for (int s = every; s <= steps; s += every)
    t.train(input, {.max_steps = s}), all.push_back(t.evaluate(test_set())["loss"]);
  return all;
}
const float& weight(auto& trainer) {
  return reinterpret_cast<const float&>(*trainer.state().find("line/kernel")->bytes.data());
}
}  // namespace

TEST_CASE("validates every so many steps, and ends by the rule at the step where it says so") {
  constexpr int every = 4, patience = 12;
  const auto losses = losses_by_hand(every, 80);
  std::size_t best = 0, end = 0;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    if (losses[i] < losses[best]) best = i;
    if (static_cast<int>(i - best) * every >= patience) {
      end = i;
      break;
    }
  }
  REQUIRE((best > 0 && end > best));
  for (const bool restore : {false, true}) {
    faulty_files files;
    std::vector<float> weights{1};
    auto t = make(files);
    t.train(data(), {.max_steps = 1000,
                     .hooks = {each_step{[&](run_context& c, const run_values&) {
                       weights.push_back(c.session().variable("line/kernel").as<float>()[0]);
                     }}},
                     .validation = {.data = test_set(),
                                    .every_n_steps = every,
                                    .stop_when = when_no_decrease("loss", patience),
                                    .restore_best = restore}});
    CHECK(t.global_step() == static_cast<std::int64_t>(end + 1) * every);
    CHECK(weight(t) == weights[restore ? (best + 1) * every : (end + 1) * every]);
    // The newest checkpoint holds what the memory holds, and a run that is begun again makes no step.
    auto again = make(files);
    again.train(data(), {.max_steps = 1000,
                         .hooks = {each_step{[](run_context&, const run_values&) { FAIL("a step"); }}},
                         .validation = {test_set(), every, when_no_decrease("loss", patience), restore}});
    CHECK((again.global_step() == t.global_step() && weight(again) == weight(t)));
    CHECK(t.evaluate(test_set())["loss"] == losses[restore ? best : end]);
    // With a rule that is content with more it goes on.
    again.train(data(), {.max_steps = t.global_step() + 2,
                         .validation = {test_set(), every, when_no_decrease("loss", patience + 100), restore}});
    CHECK(again.global_step() == t.global_step() + 2);
  }
}

TEST_CASE("a threshold ends it at the first evaluation beyond, in either direction") {
  const auto losses = losses_by_hand(4, 24);
  const double between = (losses[1] + losses[2]) / 2;
  REQUIRE((losses[1] > between && losses[2] < between));
  for (const auto& [rule, steps] :
       {std::pair(when_lower("loss", between), 12), std::pair(when_higher("loss", between), 4),
        std::pair(when_lower("loss", losses[2]), 16)}) {
    faulty_files files;
    auto t = make(files);
    t.train(data(), {.max_steps = 16, .validation = {test_set(), 4, rule}});
    CHECK(t.global_step() == steps);
  }
}

TEST_CASE("killed at any step and run again, the run ends with the same bits, and its checkpoint too") {
  const auto train = [](auto& t, const auto& on) {
    t.train(
        data(),
        {.max_steps = 1000,
         .hooks = {on},
         .validation = {
             .data = test_set(), .every_n_steps = 4, .stop_when = when_no_decrease("loss", 8), .restore_best = true}});
  };
  faulty_files whole;
  auto undisturbed = make(whole);
  train(undisturbed, each_step{[](run_context&, const run_values&) {}});
  const auto expected = run_files::newest_checkpoint(whole, "run");
  CHECK(expected.step == undisturbed.global_step());
  struct killed {};
  for (std::int64_t at = 1; at <= expected.step; ++at) {
    faulty_files files;
    {
      auto first = make(files);
      // Behind the step's checkpoint, and before its validation.
      CHECK_THROWS_AS(train(first, each_step{[&](run_context&, const run_values& v) {
                              if (v.global_step == at) throw killed();
                            }}),
                      killed);
    }
    auto second = make(files);
    train(second, each_step{[](run_context&, const run_values&) {}});
    CHECK(run_files::difference(run_files::newest_checkpoint(files, "run"), expected) == "");
  }
}

TEST_CASE("killed at any operation of the last save, the best parameters still come back") {
  const auto train = [](auto& t) {
    t.train(data(), {.max_steps = 30, .validation = {.data = test_set(), .every_n_steps = 5, .restore_best = true}});
  };
  faulty_files whole;
  auto undisturbed = make(whole);
  train(undisturbed);
  const auto expected = run_files::newest_checkpoint(whole, "run");
  CHECK(expected.step == 30);
  CHECK(weight(undisturbed) < 2.3F);  // that of the end is beyond
  // The checkpoint of step 30 that the loop wrote by itself, and nothing behind it.
  faulty_files files;
  {
    auto first = make(files);
    struct killed {};
    CHECK_THROWS_AS(first.train(data(), {.max_steps = 30,
                                         .hooks = {each_step{[](run_context&, const run_values& v) {
                                           if (v.global_step == 30) throw killed();
                                         }}},
                                         .validation = {test_set(), 5, {}, true}}),
                    killed);
  }
  auto second = make(files);
  train(second);
  CHECK(run_files::difference(run_files::newest_checkpoint(files, "run"), expected) == "");
}

TEST_CASE("somebody else's stop puts nothing back, and the run goes on where it was") {
  faulty_files a, b;
  auto whole = make(a), parts = make(b);
  const auto options = [](std::int64_t stop) {
    return each_step{[stop](run_context& c, const run_values& v) {
      if (v.global_step == stop) c.request_stop();
    }};
  };
  auto x = data(), y = data();
  whole.train(x, {.max_steps = 40, .hooks = {options(0)}, .validation = {test_set(), 5, {}, true}});
  const train_validation kept{test_set(), 5, {}, true};
  for (const std::int64_t stop : {5, 23, 40})
    parts.train(y, {.max_steps = 40, .hooks = {options(stop)}, .validation = kept});
  CHECK(parts.global_step() == 40);
  CHECK(weight(parts) == weight(whole));
}

TEST_CASE("in memory alone, with averages, and with saves in the background") {
  const auto train = [](auto t) {
    t.train(data(),
            {.max_steps = 40,
             .validation = {
                 .data = test_set(), .every_n_steps = 4, .restore_best = true, .evaluation = {.use_averages = true}}});
    return weight(t);
  };
  const exponential_moving_average average{.decay = 0.5};
  faulty_files a, b;
  const float in_place_bits = train(make(a, average));
  CHECK(train(make(b, average, copy_snapshot{})) == in_place_bits);
  CHECK(train(make_trainer<line>(adam{.rate = 0.05}, average)) == in_place_bits);
  CHECK(run_files::difference(run_files::newest_checkpoint(a, "run"), run_files::newest_checkpoint(b, "run")) == "");
}

namespace {
// A product of more than one term, so that the compute type of a product matters.
inline constexpr auto net = [](graph& g) {
  auto x = g.placeholder("x", {batch, 1}), y = g.placeholder("y", {batch, 1});
  auto hidden = tanh(dense(x, {.units = 5, .name = "hidden"}));
  return model_spec{.loss = reduce_mean(square(dense(hidden, {.units = 1, .name = "out"}) - y))};
};
std::vector<std::byte> parameters(auto& trainer) {
  std::vector<std::byte> all;
  const state_list list = trainer.state();
  for (const char* name : {"hidden/kernel", "hidden/bias", "out/kernel", "out/bias"}) {
    const auto bytes = list.find(name)->bytes;
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}
// Validation beside policies that change how a step is made: evaluated by hand, and killed at every step.
template <class... Policies>
void check_beside(const Policies&... policies) {
  const auto made = [&](const faulty_files& files) {
    return make_trainer<net>(adam{.rate = 0.05}, files, silent{}, policies...,
                             run_config{.model_dir = "run", .save_checkpoints_steps = 3, .keep_checkpoint_max = 0});
  };
  constexpr std::int64_t every = 4, last = 40;
  // A training without validation, evaluated between calls.
  faulty_files by_hand_files;
  auto by_hand = made(by_hand_files);
  std::vector<double> losses;
  std::vector<std::vector<std::byte>> then;
  auto input = data();
  for (std::int64_t step = every; step <= last; step += every) {
    by_hand.train(input, {.max_steps = step});
    losses.push_back(by_hand.evaluate(test_set())["loss"]);
    then.push_back(parameters(by_hand));
  }
  const auto best = static_cast<std::size_t>(std::min_element(losses.begin(), losses.end()) - losses.begin());
  REQUIRE((best > 0 && best + 1 < losses.size()));  // it falls, and rises again

  const auto train = [&](auto& t, const auto& on, bool restore) {
    t.train(data(), {.max_steps = last, .hooks = {on}, .validation = {test_set(), every, {}, restore}});
  };
  const auto nothing = each_step{[](run_context&, const run_values&) {}};
  faulty_files kept_files, whole_files;
  auto kept = made(kept_files), whole = made(whole_files);
  train(kept, nothing, false);
  CHECK(parameters(kept) == then.back());  // looking changes no bit
  train(whole, nothing, true);
  CHECK(parameters(whole) == then[best]);
  CHECK(whole.evaluate(test_set())["loss"] == losses[best]);
  // Its rule ends it at the first evaluation that is not below the one before.
  faulty_files ended_files;
  auto ended = made(ended_files);
  ended.train(data(), {.max_steps = last, .validation = {test_set(), every, when_no_decrease("loss", every)}});
  std::size_t stop = 0;
  while (losses[stop + 1] < *std::min_element(losses.begin(), losses.begin() + static_cast<std::ptrdiff_t>(stop) + 1))
    ++stop;
  CHECK(ended.global_step() == static_cast<std::int64_t>(stop + 2) * every);

  const auto expected = run_files::newest_checkpoint(whole_files, "run");
  struct killed {};
  for (std::int64_t at = 1; at <= last; ++at) {
    faulty_files files;
    {
      auto first = made(files);
      const auto kill = each_step{[&](run_context&, const run_values& v) {
        if (v.global_step == at) throw killed();
      }};
      CHECK_THROWS_AS(train(first, kill, true), killed);
    }
    auto second = made(files);
    train(second, nothing, true);
    CHECK(run_files::difference(run_files::newest_checkpoint(files, "run"), expected) == "");
  }
}
}  // namespace

TEST_CASE("with batches in parts") { check_beside(microbatch{2}); }

TEST_CASE("in mixed precision, with a loss scale that overflows, shrinks and grows") {
  check_beside(mixed_precision<bfloat16>{});
  const dynamic_loss_scale scale{.initial = 0x1p17, .growth_interval = 2};
  check_beside(mixed_precision<float16>{}, scale);
  check_beside(mixed_precision<float16>{}, scale, microbatch{2});
  // It did all of that, and its state is among what a checkpoint holds and the best evaluation puts back.
  faulty_files files;
  auto t = make_trainer<net>(adam{.rate = 0.05}, files, silent{}, mixed_precision<float16>{}, scale,
                             run_config{.model_dir = "run", .save_checkpoints_steps = 3});
  std::vector<double> scales;
  t.train(data(), {.max_steps = 24,
                   .hooks = {each_step{[&](run_context& c, const run_values&) {
                     scales.push_back(c.session().variable("loss_scale").as<double>()[0]);
                   }}},
                   .validation = {.data = test_set(), .every_n_steps = 4}});
  CHECK(scales[0] == 0x1p16);
  CHECK(std::adjacent_find(scales.begin(), scales.end(), std::less<>()) != scales.end());
}

TEST_CASE("a validation that keeps the worst checkpoints, or ends by no value, is refused") {
  const auto refused = [](std::int64_t every, stop_condition stop = {}, keep_best kept = {}) {
    auto t = make_trainer<line>(adam{.rate = 0.05}, faulty_files(), silent{},
                                run_config{.model_dir = "run", .keep_checkpoint_best = kept});
    return why(
        [&] {
          t.train(data(),
                  {.max_steps = 20, .validation = {.data = test_set(), .every_n_steps = every, .stop_when = stop}});
        },
        status::invalid_argument);
  };
  CHECK(
      refused(4, {}, {.count = 2}) ==
      "validation: keep_checkpoint_best keeps the checkpoints whose value is higher, but by stop_when a lower \"loss\" "
      "is better; give both one higher_is_better");
  CHECK(
      refused(4, {.higher_is_better = true}, {2, false}) ==
      "validation: keep_checkpoint_best keeps the checkpoints whose value is lower, but by stop_when a higher \"loss\" "
      "is better; give both one higher_is_better");
  CHECK(refused(4, when_lower("loss", std::numeric_limits<double>::quiet_NaN())) ==
        "validation: stop_when has the threshold NaN, which no value passes");
}

TEST_CASE("a schedule that observes a value is given the metric, and a killed run ends with the same rate and bits") {
  constexpr reduce_on_plateau plateau{.initial = 0.05, .factor = 0.5, .patience = 1};
  constexpr int every = 4, steps = 48;
  const auto made = [&](const faulty_files& files) {
    return make_trainer<line>(adam{}, plateau, files, silent{},
                              run_config{.model_dir = "run", .save_checkpoints_steps = 3, .keep_checkpoint_max = 0});
  };
  const auto train = [](auto& t, int last) {
    t.train(data(), {.max_steps = last, .validation = {.data = test_set(), .every_n_steps = every}});
  };
  const faulty_files by_hand;
  auto one = made(by_hand);
  auto input = data();
  for (int s = every; s <= steps; s += every)
    one.train(input, {.max_steps = s}), one.watch(one.evaluate(test_set())["loss"]);
  const auto rate_of = [](auto& t) {
    return reinterpret_cast<const double&>(*t.state().find("reduce_on_plateau/rate")->bytes.data());
  };
  REQUIRE(rate_of(one) < 0.05);
  const faulty_files files;
  auto whole = made(files);
  train(whole, steps);
  CHECK((weight(whole) == weight(one) && rate_of(whole) == rate_of(one)));
  const faulty_files stopped;
  for (const int until : {5, 8, 21, 22, steps}) {
    auto t = made(stopped);
    train(t, until);
    if (until == steps) CHECK((weight(t) == weight(one) && rate_of(t) == rate_of(one)));
  }
}

TEST_CASE("a validation of some steps reads the same batches each time") {
  auto t = make_trainer<line>(gradient_descent{.rate = 0}, faulty_files(), silent{}, run_config{.model_dir = "run"});
  const std::vector<float> x{1, 2, 3, 4, 5}, y{1, 0, 7, -3, 2};
  std::vector<float> seen;
  auto some = from_spans("x", x, extents{1}, "y", y, extents{1})
                  .map([&](datum& d) { seen.push_back(d["x"].as<float>()[0]); })
                  .batch(1);
  t.train(data(), {.max_steps = 5, .validation = {.data = some, .every_n_steps = 1, .evaluation = {.steps = 2}}});
  CHECK(std::ranges::count(seen, 1.f) == 5);
  CHECK(std::ranges::count(seen, 2.f) == 5);
  CHECK(std::ranges::count(seen, 5.f) == 0);
}

TEST_CASE("a save when the value is better has the validation's") {
  const faulty_files files;
  auto t = make_trainer<line>(adam{.rate = 0.05}, files, silent{}, when_better{.higher_is_better = false},
                              run_config{.model_dir = "run", .keep_checkpoint_max = 0});
  t.train(data(), {.max_steps = 12, .validation = {.data = test_set(), .every_n_steps = 4}});
  for (const char* name : {"run/model-5.ckpt", "run/model-9.ckpt", "run/model-12.ckpt"}) {
    CAPTURE(name);
    CHECK(files.exists(name) == 0);
  }
}

TEST_CASE("a validation that does not happen, or whose rule counts fewer steps than one evaluation, is a warning") {
  const auto warned = [](std::int64_t every, stop_condition stop = {}) {
    std::vector<std::string> said;
    auto t =
        make_trainer<line>(adam{.rate = 0.05}, faulty_files(), hears_warnings{&said}, run_config{.model_dir = "run"});
    t.train(data(), {.max_steps = 20, .validation = {.data = test_set(), .every_n_steps = every, .stop_when = stop}});
    return said;
  };
  CHECK(warned(20).empty());
  CHECK(warned(21) ==
        std::vector<std::string>{"validation: nothing was evaluated until step 20, because every_n_steps is 21"});
  CHECK(warned(4, when_no_decrease("loss", 4)).empty());
  CHECK(warned(4, when_no_decrease("loss", 3)) ==
        std::vector<std::string>{"validation: stop_when counts steps, not evaluations: with 3 the training ends at the "
                                 "first evaluation, every 4 steps, that is not the best"});
}

TEST_CASE("a schedule that observes values has the direction of the rule, and has seen the best ones' value") {
  constexpr reduce_on_plateau plateau{.initial = 0.05, .factor = 0.5, .patience = 1};
  const auto refused = [&](const auto& schedule, stop_condition stop) {
    auto t = make_trainer<line>(adam{}, schedule, faulty_files(), silent{}, run_config{.model_dir = "run"});
    return why(
        [&] {
          t.train(data(), {.max_steps = 4, .validation = {test_set(), 4, stop}});
        },
        status::invalid_argument);
  };
  CHECK(
      refused(plateau, when_higher("loss", 1e9)) ==
      "validation: to the schedule (reduce_on_plateau) lower values are better, but by stop_when a higher \"loss\" is; "
      "give both one direction (plateau_mode::max)");
  CHECK(refused(product_of(constant{1}, reduce_on_plateau{.mode = plateau_mode::max}), {}).find("higher values") !=
        std::string::npos);
  auto t = make_trainer<line>(adam{}, plateau, faulty_files(), silent{}, run_config{.model_dir = "run"});
  t.train(data(), {.max_steps = 60, .validation = {.data = test_set(), .every_n_steps = 4, .restore_best = true}});
  const auto number = [&](std::string_view name) {
    return reinterpret_cast<const double&>(*t.state().find(name)->bytes.data());
  };
  CHECK(number("reduce_on_plateau/best") == doctest::Approx(t.evaluate(test_set())["loss"]).epsilon(1e-5));
}

TEST_CASE("the checkpoint of the last step keeps its rank") {
  const faulty_files files;
  auto t = make_trainer<line>(
      adam{.rate = 0.05}, files, silent{},
      run_config{.model_dir = "run", .save_checkpoints_steps = 4, .keep_checkpoint_best = {1, false}});
  t.train(data(), {.max_steps = 8, .validation = {.data = test_set(), .every_n_steps = 4}});
  const auto state = read_state_file(files, "run");
  REQUIRE(state);
  REQUIRE(state->best.size() == 1);  // the loss falls, so the last is the best
  CHECK(state->best[0].first == "model-8.ckpt");
}

TEST_CASE("killed between the save of a step and its evaluation, the run goes on, and that checkpoint has its rank") {
  const faulty_files files;
  const auto made = [&] {
    return make_trainer<line>(
        adam{.rate = 0.05}, files, silent{},
        run_config{.model_dir = "run", .save_checkpoints_steps = 4, .keep_checkpoint_best = {2, false}});
  };
  const auto train = [](auto& t, std::int64_t kill_at) {
    struct killed {};
    const auto kill = each_step{[&](run_context&, const run_values& v) {
      if (v.global_step == kill_at) throw killed();
    }};
    try {
      t.train(data(), {.max_steps = 12, .hooks = {kill}, .validation = {.data = test_set(), .every_n_steps = 4}});
    } catch (const killed&) {
    }
  };
  const auto ranked = [&] {
    std::vector<std::string> names;
    const auto state = read_state_file(files, "run");
    for (const auto& best : state.value().best) names.push_back(best.first);
    return names;
  };
  {
    auto first = made();
    train(first, 8);  // behind the checkpoint of step 8
  }
  CHECK(ranked() == std::vector<std::string>{"model-4.ckpt"});
  auto second = made();
  train(second, -1);
  CHECK(second.global_step() == 12);
  // The loss falls, so the later one is the better one.
  CHECK(ranked() == std::vector<std::string>{"model-12.ckpt", "model-8.ckpt"});
  // A program that is started again when all is done, and measures then: with a call of train before it or without.
  for (const bool trains : {true, false}) {
    auto again = made();
    if (trains) train(again, -1);
    const double loss = again.evaluate(test_set())["loss"];
    again.measured(trains ? loss : loss + 1000);
    CHECK(again.global_step() == 12);
    CHECK(ranked().front() == (trains ? "model-12.ckpt" : "model-8.ckpt"));
  }
}

TEST_CASE("what means nothing is refused; an unknown metric says which there are") {
  faulty_files files;
  auto t = make(files);
  CHECK(why(
            [&] {
              t.train(data(), {.max_steps = 5, .validation = {test_set(), 0}});
            },
            status::invalid_argument) == "validation: expected every_n_steps above 0, got 0");
  CHECK(why(
            [&] {
              t.train(data(), {.max_steps = 5, .validation = {test_set(), 1, when_no_increase("loss", -1)}});
            },
            status::invalid_argument)
            .find("0 or more, got -1") != std::string::npos);
  CHECK(why(
            [&] {
              t.train(data(), {.max_steps = 5, .validation = {test_set(), 1, when_no_increase("auc", 1)}});
            },
            status::not_found)
            .find("loss") != std::string::npos);
}

TEST_CASE("a NaN is the worst value; what was kept of another model is refused, and nothing changes") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  detail::validation_state s;
  CHECK((s.take(nan, 1, false) && !s.take(nan, 2, false) && s.waits == 1));
  CHECK((s.take(5, 3, false) && !s.take(nan, 4, false) && !s.take(5, 5, false) && s.take(4, 6, false)));
  CHECK((s.best == 4 && s.best_step == 6 && s.waits == 0));
  detail::kept_values kept;
  std::vector<float> a{1, 2}, b{3}, c{4, 5, 6};
  state_list small, large;
  small.tensor("a", {2}, std::span(a)), small.tensor("b", {1}, std::span(b));
  large.tensor("a", {2}, std::span(a)), large.tensor("c", {3}, std::span(c));
  kept.keep(small);
  a = {7, 8};
  CHECK(why([&] { kept.put_back(large); }, status::data_loss).find("of another model") != std::string::npos);
  CHECK(a == std::vector<float>{7, 8});
  b = {9};
  kept.put_back(small);
  CHECK((a == std::vector<float>{1, 2} && b == std::vector<float>{3}));
  std::vector<std::byte> bytes;
  kept.save(bytes);
  bytes.pop_back();
  detail::kept_values torn;
  torn.load(bytes);
  CHECK(why([&] { torn.put_back(small); }, status::data_loss).find("damaged") != std::string::npos);
}

TEST_CASE("a save when the value is better goes the validation's way, or is refused") {
  const auto refused = [](auto decision, stop_condition stop) {
    auto t = make_trainer<line>(adam{.rate = 0.05}, faulty_files(), silent{}, decision,
                                run_config{.model_dir = "run", .keep_checkpoint_max = 0});
    return why(
        [&] {
          t.train(data(), {.max_steps = 4, .validation = {.data = test_set(), .every_n_steps = 4, .stop_when = stop}});
        },
        status::invalid_argument);
  };
  const std::string
      none = "(nothing was refused)",
      said =
          "validation: when_better saves at a higher value, but by stop_when a lower \"loss\" is better; give "
          "when_better{.higher_is_better = false}";
  CHECK(refused(when_better{}, {}) == said);
  CHECK(refused(any_of{every_steps{2}, when_better{}}, {}) == said);
  CHECK(refused(any_of{every_steps{2}, any_of{when_better{.higher_is_better = false}}}, {}) == none);
  CHECK(refused(when_better{.higher_is_better = false}, {}) == none);
  stop_condition other;
  other.higher_is_better = true;
  CHECK(refused(when_better{}, other) == none);
  CHECK(refused(when_better{.higher_is_better = false}, other).find("when_better{.higher_is_better = true}") !=
        std::string::npos);
}

TEST_CASE("a rule that observes estimates is given none by a trainer, which says so once") {
  std::vector<std::string> said;
  auto t = make_trainer<line>(sophia{}, faulty_files(), hears_warnings{&said});
  t.train(data(), {.steps = 2});
  t.train(data(), {.steps = 2});
  CHECK(std::ranges::count_if(said, [](const std::string& s) { return s.find("sophia") != std::string::npos; }) == 1);
  said.clear();
  auto other = make_trainer<line>(adam{}, faulty_files(), hears_warnings{&said});
  other.train(data(), {.steps = 2});
  CHECK(std::ranges::count_if(said, [](const std::string& s) { return s.find("sophia") != std::string::npos; }) == 0);
}

TEST_CASE("several calls that put the best values back: killed anywhere and run again, they end with the same bits") {
  struct killed {};
  const auto program = [](const faulty_files& files, std::int64_t at) {
    auto t = make(files);
    auto input = data();
    for (const std::int64_t last : {10, 26, 42})
      t.train(input, {.max_steps = last,
                      .hooks = {each_step{[&](run_context&, const run_values& v) {
                        if (v.global_step == at) throw killed();
                      }}},
                      .validation = {.data = test_set(), .every_n_steps = 4, .restore_best = true}});
  };
  faulty_files whole;
  program(whole, -1);
  const auto expected = run_files::newest_checkpoint(whole, "run");
  for (const std::int64_t at : {8, 10, 12, 27, 36}) {
    CAPTURE(at);
    faulty_files files;
    CHECK_THROWS_AS(program(files, at), killed);
    program(files, -1);
    CHECK(run_files::difference(run_files::newest_checkpoint(files, "run"), expected) == "");
  }
  program(whole, -1);
  CHECK(run_files::difference(run_files::newest_checkpoint(whole, "run"), expected) == "");
}

TEST_CASE("the best values come back; what belongs to the count of steps stays") {
  constexpr std::int64_t last = 46;
  struct seen {
    std::vector<float> weights{1};
    std::vector<double> powers;
    double power = 0;
    std::size_t of = 0;  // the step whose weight is there in the end
    float sum = 0;
  };
  const auto trained = [](bool restore, const auto&... policies) {
    seen s;
    auto t = make_trainer<line>(policies..., silent{}, run_config{});
    t.train(data(), {.max_steps = last,
                     .hooks = {each_step{[&](run_context& c, const run_values&) {
                       s.weights.push_back(c.session().variable("line/kernel").template as<float>()[0]);
                     }}},
                     .validation = {.data = test_set(), .every_n_steps = 2, .restore_best = restore}});
    s.of = static_cast<std::size_t>(std::find(s.weights.begin(), s.weights.end(), weight(t)) - s.weights.begin());
    const state_list list = t.state();
    if (const auto* e = list.find("beta1_power")) std::memcpy(&s.power, e->bytes.data(), sizeof s.power);
    if (const auto* e = list.find("line/kernel/GradientAccumulator"))
      std::memcpy(&s.sum, e->bytes.data(), sizeof s.sum);
    return s;
  };
  // Two gradients of a sum of four are there.
  const seen plain = trained(false, gradient_descent{.rate = 0.05}, accumulate{4});
  const seen best = trained(true, gradient_descent{.rate = 0.05}, accumulate{4});
  CHECK(best.of + 2 < plain.of);
  CHECK((plain.sum != 0 && best.sum == plain.sum));
  // A product has the factors until the best step, and the next step's.
  const auto beta = [](std::int64_t step) { return 0.9 - 0.01 * static_cast<double>(step); };
  const seen varied = trained(true, adam{}, constant{0.05}, vary<&adam::beta1>(beta));
  REQUIRE((varied.of > 0 && varied.of < last));
  double product = beta(last);
  for (std::size_t s = 0; s < varied.of; ++s) product *= beta(static_cast<std::int64_t>(s));
  CHECK(varied.power == doctest::Approx(product).epsilon(1e-12));
}

TEST_CASE("a profile drops no value that a schedule has watched since the last save") {
  const faulty_files files;
  auto t =
      make_trainer<line>(adam{}, reduce_on_plateau{.initial = 0.05}, files, silent{}, run_config{.model_dir = "run"});
  t.train(data(), {.max_steps = 4});
  t.profile(data(), 1);
  t.train(data(), {.max_steps = 8});
  t.watch(1);
  CHECK(why([&] { t.profile(data(), 1); }, status::failed_precondition)
            .find("and with them values of step 8 that no checkpoint has") != std::string::npos);
  t.train(data(), {.max_steps = 9});
  t.profile(data(), 1);
}

TEST_CASE("a save when the value is better knows after a restart the best one before it") {
  const auto losses = losses_by_hand(4, 80);
  const auto best = std::min_element(losses.begin(), losses.end()) - losses.begin();
  REQUIRE(best + 4 < static_cast<std::ptrdiff_t>(losses.size()));
  const faulty_files files;
  const auto go_on = [&](std::int64_t last) {
    auto t = make_trainer<line>(adam{.rate = 0.05}, files, silent{},
                                any_of{every_steps{1000}, when_better{.higher_is_better = false}},
                                run_config{.model_dir = "run", .keep_checkpoint_max = 0});
    t.train(data(), {.max_steps = last, .validation = {.data = test_set(), .every_n_steps = 4}});
  };
  const std::int64_t then = 4 * (best + 2);
  go_on(then + 1), go_on(then + 6);
  CHECK(files.exists(text("run/model-", 4 * (best + 1) + 1, ".ckpt")) == 0);
  CHECK(files.exists(text("run/model-", then + 5, ".ckpt")) != 0);
}
