// costs: 300
#include <gradus/checkpoint/on_notice.hpp>
#include <gradus/gradus.hpp>
#include <gradus/input/map.hpp>
#include <gradus/testing/clock.hpp>
#include <gradus/testing/faulty_files.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <fcntl.h>
#include <functional>
#include <numeric>

#include "run_files.hpp"

using namespace gradus;
using gradus::testing::faulty_files;
using gradus::testing::hand_clock;

namespace {

// Everything that has a memory: dropout (random streams), batch_norm (moving statistics); with adam, decay, clip and
// average beside it.
inline constexpr auto rich = [](graph& g) {
  auto x = g.placeholder("x", {batch, 4});
  auto label = g.placeholder("label", {batch}, int32);
  auto h = relu(batch_norm(dense(x, {.units = 6, .name = "hidden"}), {.momentum = 0.9}));
  auto logits = dense(dropout(h, 0.25), {.units = 3, .name = "logits"});
  auto loss = reduce_mean(sparse_softmax_cross_entropy(logits, label));
  g.summary_scalar("cost", loss);
  return model_spec{.loss = loss,
                    .metrics = {{"accuracy", accuracy(logits, label)}},
                    .predictions = {{"class", argmax(logits)}, {"probability", softmax(logits)}}};
};

// One weight, one bias: what it does can be done by hand.
inline constexpr auto line = [](graph& g) {
  auto x = g.placeholder("x", {batch, 1});
  auto y = g.placeholder("y", {batch, 1});
  auto guess = dense(x, {.units = 1, .name = "line", .kernel_initializer = ones});
  return model_spec{.loss = reduce_mean(square(guess - y)), .predictions = {{"y", guess}}};
};

// 43 examples: no batch size divides it.
struct examples {
  std::vector<float> x;
  std::vector<std::int32_t> label;
  explicit examples(int n = 43) {
    std::uint32_t state = 7;
    const auto next = [&] { return static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) / 8388608.f - 1; };
    for (int i = 0; i < n; ++i) {
      for (int k = 0; k < 4; ++k) x.push_back(next());
      const auto row = x.end() - 4;
      label.push_back(row[0] + row[1] > 0.3f ? 0 : row[2] * row[3] > 0 ? 1 : 2);
    }
  }
  memory_dataset all() const { return from_spans("x", x, extents{4}, "label", label); }
  auto endless() const { return all().shuffle(16, 3).repeat().batch(5).prefetch(2); }
};

// A log sink that hands on what it is told.
struct listener {
  using policy_for = kind::log_sink;
  std::function<void(const progress_report&, bool)> on_step = {};
  std::function<void(std::string_view)> on_line = {};
  void line(std::string_view s) {
    if (on_line) on_line(s);
  }
  void step(const progress_report& r, bool due) {
    if (on_step) on_step(r, due);
  }
};

struct run_setting {
  faulty_files files = {};
  hand_clock clock{};
  run_config config = {.model_dir = "run", .save_summary_steps = 2, .save_checkpoints_steps = 7};
  listener sink = {};
};
auto policies_of_rich(const run_setting& s, auto make) {
  return make(adam{}, exponential_decay{.initial = 0.02, .decay_steps = 5, .decay_rate = 0.8, .staircase = true},
              clip_by_global_norm{0.5}, exponential_moving_average{.decay = 0.9}, s.sink, s.clock, s.files, s.config);
}
auto compiled(const run_setting& s) {
  return policies_of_rich(s, [](const auto&... p) { return make_trainer<rich>(p...); });
}
auto interpreted(const run_setting& s) {
  return policies_of_rich(s, [](const auto&... p) { return make_trainer(rich, p...); });
}
auto on_a_line(const run_setting& s) {
  return make_trainer(line, gradient_descent{.rate = 0.1}, s.sink, s.clock, s.files, s.config);
}

// The model with a memory, in a program that is quick to compile.
auto on_a_line_of(const run_setting& s) {
  return make_trainer(rich, gradient_descent{.rate = 0.1}, s.sink, s.clock, s.files, s.config);
}

run_files::content state_of(auto& trainer) {
  run_files::content out;
  out.step = trainer.global_step();
  const state_list list = trainer.state();
  for (const auto& e : list.entries())
    out.records[text(e.name, ' ', name_of(e.type), ' ', to_text(e.dims))] = {e.bytes.begin(), e.bytes.end()};
  return out;
}
template <class T = float>
std::vector<T> values_of(auto& trainer, std::string_view name) {
  const state_list list = trainer.state();
  const auto* e = list.find(name);
  REQUIRE(e != nullptr);
  std::vector<T> out(e->bytes.size() / sizeof(T));
  std::memcpy(out.data(), e->bytes.data(), e->bytes.size());
  return out;
}

template <class Kind = error>
std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const Kind& e) {
    return e.what();
  }
  return {};
}

constexpr std::int64_t last = 31;

struct uninterrupted {
  run_files::content end;
  run_files::curves log;
};
uninterrupted run_through(const examples& data) {
  const run_setting s;
  auto trainer = compiled(s);
  trainer.train(data.endless(), {.max_steps = last});
  return {run_files::newest_checkpoint(s.files, "run"), run_files::read_curves(s.files, "run")};
}

}  // namespace

TEST_CASE("stopped after any step and continued by another trainer: the same bits") {
  const examples data;
  const auto whole = run_through(data);
  CHECK(whole.end.step == last);
  CHECK(whole.end.records.size() > 20);  // variables, slots, averages, powers, random counters, position
  for (std::int64_t k = 1; k < last; ++k) {
    const run_setting s;
    compiled(s).train(data.endless(), {.max_steps = k});
    auto second = compiled(s);
    second.train(data.endless(), {.max_steps = last});
    CHECK_MESSAGE(run_files::difference(run_files::newest_checkpoint(s.files, "run"), whole.end).empty(), "at step ",
                  k);
  }
}

TEST_CASE("one trainer called many times: the same bits, the dataset goes on where it stood") {
  const examples data;
  const auto whole = run_through(data);
  const run_setting s;
  auto trainer = compiled(s);
  auto input = data.endless();
  for (std::int64_t k = 0; k < last; ++k) trainer.train(input, {.steps = 1});
  CHECK(run_files::difference(run_files::newest_checkpoint(s.files, "run"), whole.end).empty());
  trainer.train(input, {.max_steps = last});  // there already
  CHECK(trainer.global_step() == last);
}

TEST_CASE("the process dies at any operation on a file: the next one ends with the same bits and the same curves") {
  const examples data;
  const auto whole = run_through(data);
  const run_setting counted;
  compiled(counted).train(data.endless(), {.max_steps = last});
  const std::int64_t operations = counted.files.operations();
  CHECK(operations > 80);
  int later_than_0 = 0;
  for (std::int64_t n = 0; n < operations; ++n) {
    CAPTURE(n);
    run_setting s;
    s.files.plan({.at = n, .kill = true});
    CHECK_THROWS_AS(compiled(s).train(data.endless(), {.max_steps = last}), gradus::testing::killed);
    s.files = s.files.after_kill();
    s.sink.on_line = [&](std::string_view l) { later_than_0 += l.starts_with("restored step ") && l[14] != '0'; };
    compiled(s).train(data.endless(), {.max_steps = last});
    CHECK(run_files::difference(run_files::newest_checkpoint(s.files, "run"), whole.end).empty());
    const auto log = run_files::read_curves(s.files, "run");
    REQUIRE(log.size() == whole.log.size());
    for (const auto& [tag, points] : whole.log) CHECK_MESSAGE(run_files::same_points(log.at(tag), points), tag);
  }
  CHECK(later_than_0 > operations / 2);
}

TEST_CASE("however often it is killed, no temporary and no checkpoint too many is left") {
  const examples data;
  run_setting s;
  s.config.save_checkpoints_steps = 2;
  s.config.keep_checkpoint_max = 3;
  compiled(s).train(data.endless(), {.max_steps = 4});
  std::size_t temporaries = 0;
  for (std::int64_t at = 0; at < 60; at += 2) {
    s.files = s.files.after_kill();
    for (const auto& file : s.files.files()) temporaries += is_temporary(file);
    s.files.plan({.at = at, .kill = true});
    try {
      compiled(s).train(data.endless(), {.steps = 4});
    } catch (const gradus::testing::killed&) {
    }
  }
  CHECK(temporaries > 5);
  s.files = s.files.after_kill();
  compiled(s).train(data.endless(), {.steps = 2});
  std::size_t checkpoints = 0;
  for (const auto& file : s.files.files()) {
    CHECK_MESSAGE(!is_temporary(file), file);
    checkpoints += file.ends_with(".ckpt");
  }
  CHECK(checkpoints == 3);
}

TEST_CASE("checkpoints without a state file: training refuses, or goes on from the newest if it may") {
  const examples data;
  run_setting s;
  compiled(s).train(data.endless(), {.max_steps = 7});
  s.files.remove("run/checkpoint");
  const auto before = s.files.files();
  const auto why = refusal<failed_precondition>([&] { compiled(s).train(data.endless(), {.max_steps = 9}); });
  CHECK(
      why ==
      "the directory \"run\" holds checkpoints, but no state file (\"checkpoint\") that says which of them is the "
      "newest. The newest intact one is \"run/model-7.ckpt\" (step 7). Set restore_newest = true to go on from it, or "
      "choose an empty directory to start anew. Nothing was changed.");
  CHECK(s.files.files() == before);
  CHECK(refusal<failed_precondition>([&] { compiled(s).evaluate(data.all().batch(5)); }) == why);
  s.config.restore_newest = true;
  std::vector<std::string> lines;
  s.sink.on_line = [&](std::string_view line) { lines.emplace_back(line); };
  auto trainer = compiled(s);
  trainer.train(data.endless(), {.max_steps = 9});
  CHECK(trainer.global_step() == 9);
  CHECK(std::find(lines.begin(), lines.end(), "restored step 7 from run/model-7.ckpt") != lines.end());
  // The input's checkpoints of another list are none of the model's.
  run_setting other;
  make_directories(other.files, "run");
  publish(other.files, "run/input-3.ckpt", "x");
  auto fresh = compiled(other);
  fresh.train(data.endless(), {.max_steps = 2});
  CHECK(fresh.global_step() == 2);
}

TEST_CASE("interpreted and compiled, serial and with threads: the same bits") {
  const examples data;
  const auto whole = run_through(data);
  const run_setting s;
  auto trainer = interpreted(s);
  trainer.train(data.endless(), {.max_steps = last});
  CHECK(run_files::difference(run_files::newest_checkpoint(s.files, "run"), whole.end).empty());
  auto here = trainer.evaluate(data.all().batch(8));

  const run_setting t;  // the function may capture: a size from a file, say
  int units = 6;
  auto build = [&units](graph& g) { return units == 6 ? rich(g) : model_spec{}; };
  auto threaded = policies_of_rich(t, [&](const auto&... p) { return make_trainer(build, threads{2}, p...); });
  threaded.train(data.endless(), {.max_steps = last});
  CHECK(run_files::difference(run_files::newest_checkpoint(t.files, "run"), whole.end).empty());
  auto there = threaded.evaluate(data.all().batch(8));
  CHECK(here.values() == there.values());

  auto reader = compiled(s);  // continues what the interpreter wrote
  CHECK(reader.evaluate(data.all().batch(8)).values() == here.values());
}

TEST_CASE("a short last batch counts as what it is") {
  const std::vector<float> x{1, 2, 3, 4, 5, 6, 7}, y{3, 1, 4, 1, 5, 9, 2};
  std::vector<std::int64_t> seen;
  run_setting s;
  s.config = {};
  s.sink.on_step = [&](const progress_report& r, bool) { seen.push_back(r.step); };
  auto trainer = on_a_line(s);
  const auto data = [&] { return from_spans("x", x, extents{1}, "y", y, extents{1}).batch(3); };
  trainer.train(data(), {.max_steps = 100});  // the data ends first
  CHECK(seen == std::vector<std::int64_t>{1, 2, 3});
  CHECK(trainer.global_step() == 3);

  double w = 1, b = 0;
  for (std::size_t first = 0; first < x.size(); first += 3) {
    const std::size_t end = std::min(first + 3, x.size());
    double dw = 0, db = 0;
    for (std::size_t i = first; i < end; ++i) {
      const double r = w * double(x[i]) + b - double(y[i]);
      dw += 2 * r * double(x[i]) / double(end - first), db += 2 * r / double(end - first);
    }
    w -= 0.1 * dw, b -= 0.1 * db;
  }
  CHECK(double(values_of(trainer, "line/kernel")[0]) == doctest::Approx(w).epsilon(1e-5));
  CHECK(double(values_of(trainer, "line/bias")[0]) == doctest::Approx(b).epsilon(1e-5));

  double loss = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    loss += std::pow(w * double(x[i]) + b - double(y[i]), 2) / double(x.size());
  CHECK(trainer.evaluate(data())["loss"] == doctest::Approx(loss).epsilon(1e-5));  // over examples, not over batches
  CHECK(trainer.evaluate(data(), {.steps = 3})["loss"] == trainer.evaluate(data())["loss"]);

  std::vector<std::int64_t> sizes;
  std::vector<float> guesses;
  trainer.predict(data(), [&](const predictions& p) {
    sizes.push_back(p.size());
    const auto v = p["y"];
    REQUIRE(v.size() == static_cast<std::size_t>(p.size()));
    const auto* first = reinterpret_cast<const float*>(v.data);
    guesses.insert(guesses.end(), first, first + v.size());
  });
  CHECK(sizes == std::vector<std::int64_t>{3, 3, 1});
  REQUIRE(guesses.size() == x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    CHECK(double(guesses[i]) == doctest::Approx(w * double(x[i]) + b).epsilon(1e-5));
}

namespace {
// The rich model in mode evaluate, a loop over everything in double.
struct by_hand {
  std::vector<double> probability;
  std::vector<std::int64_t> best;
  double loss = 0, accuracy = 0;
};
by_hand evaluate_by_hand(auto& trainer, const examples& data, std::string_view suffix) {
  const auto get = [&](std::string_view name) { return values_of(trainer, text(name, suffix)); };
  const auto w1 = get("hidden/kernel"), b1 = get("hidden/bias"), gamma = get("batch_normalization/gamma"),
             beta = get("batch_normalization/beta"), w2 = get("logits/kernel"), b2 = get("logits/bias"),
             mean = values_of(trainer, "batch_normalization/moving_mean"),
             variance = values_of(trainer, "batch_normalization/moving_variance");
  by_hand out;
  const std::size_t n = data.label.size();
  for (std::size_t i = 0; i < n; ++i) {
    double logits[3] = {double(b2[0]), double(b2[1]), double(b2[2])};
    for (std::size_t j = 0; j < 6; ++j) {
      double h = double(b1[j]);
      for (std::size_t k = 0; k < 4; ++k) h += double(data.x[4 * i + k]) * double(w1[6 * k + j]);
      h = (h - double(mean[j])) / std::sqrt(double(variance[j]) + 1e-3) * double(gamma[j]) + double(beta[j]);
      for (std::size_t c = 0; h > 0 && c < 3; ++c) logits[c] += h * double(w2[3 * j + c]);
    }
    const double sum = std::exp(logits[0]) + std::exp(logits[1]) + std::exp(logits[2]);
    std::size_t best = 0;
    for (std::size_t c = 0; c < 3; ++c) {
      out.probability.push_back(std::exp(logits[c]) / sum);
      if (logits[c] > logits[best]) best = c;
    }
    const auto label = static_cast<std::size_t>(data.label[i]);
    out.best.push_back(static_cast<std::int64_t>(best));
    out.loss -= std::log(out.probability[3 * i + label]) / double(n);
    out.accuracy += double(best == label) / double(n);
  }
  return out;
}
}  // namespace

TEST_CASE("evaluate and predict against a plain loop, with parameters and with their averages") {
  const examples data;
  const run_setting s;
  auto trainer = compiled(s);
  trainer.train(data.endless(), {.max_steps = 60});
  const auto before = state_of(trainer);

  const auto expected = evaluate_by_hand(trainer, data, "");
  const auto result = trainer.evaluate(data.all().batch(8));
  CHECK(result.global_step() == 60);
  CHECK(result["loss"] == doctest::Approx(expected.loss).epsilon(1e-5));
  CHECK(result["accuracy"] == doctest::Approx(expected.accuracy).epsilon(1e-6));
  CHECK(expected.accuracy > 0.5);                                            // it has learnt something
  CHECK(result.values() == trainer.evaluate(data.all().batch(8)).values());  // metrics start anew
  CHECK(refusal<not_found>([&] { result["accurac"]; }) == "the evaluation has no \"accurac\"; it has loss, accuracy");

  const auto averaged = evaluate_by_hand(trainer, data, "/ExponentialMovingAverage");
  const auto of_averages = trainer.evaluate(data.all().batch(8), {.use_averages = true, .name = "eval_averages"});
  CHECK(of_averages["loss"] == doctest::Approx(averaged.loss).epsilon(1e-5));
  CHECK(of_averages["loss"] != result["loss"]);

  std::size_t row = 0;
  trainer.predict(data.all().batch(8), [&](const predictions& p) {
    const auto c = p["class"], probability = p["probability"];
    for (std::int64_t i = 0; i < p.size(); ++i, ++row) {
      const auto at = static_cast<std::size_t>(i);
      CHECK(reinterpret_cast<const std::int64_t*>(c.data)[at] == expected.best[row]);
      for (std::size_t k = 0; k < 3; ++k)
        CHECK(double(reinterpret_cast<const float*>(probability.data)[3 * at + k]) ==
              doctest::Approx(expected.probability[3 * row + k]).epsilon(1e-5));
    }
  });
  CHECK(row == data.label.size());
  // A loop that leaves by an error has read a part; the next call begins again.
  auto once = data.all().batch(8);
  CHECK_THROWS_AS(trainer.predict(once, [](const predictions&) { throw std::runtime_error("enough"); }),
                  std::runtime_error);
  std::int64_t all = 0;
  trainer.predict(once, [&](const predictions& p) { all += p.size(); });
  CHECK(all == 43);
  CHECK(refusal<not_found>([&] { trainer.predict(data.all().batch(8), [](const predictions& p) { p["clas"]; }); }) ==
        "the model predicts no \"clas\"; it predicts class, probability");
  CHECK(run_files::difference(before, state_of(trainer)).empty());  // swapped back, nothing moved

  // A trainer that has only the files.
  auto reader = compiled(s);
  CHECK(reader.evaluate(data.all().batch(8)).values() == result.values());
  CHECK(reader.evaluate(data.all().batch(8), {.use_averages = true, .name = "eval_averages"}).values() ==
        of_averages.values());
  reader.train(data.endless(), {.max_steps = 70});  // and goes on from there
  run_setting whole;
  auto other = compiled(whole);
  other.train(data.endless(), {.max_steps = 70});
  CHECK(run_files::difference(state_of(reader), state_of(other)).empty());

  // Curves of evaluations lie in directories of their own.
  const auto log = run_files::read_curves(s.files, "run/eval");
  REQUIRE(log.at("loss").size() >= 1);
  CHECK(log.at("loss")[0] == run_files::point{60, static_cast<float>(result["loss"])});
  CHECK(log.at("accuracy")[0].step == 60);
  CHECK(run_files::read_curves(s.files, "run/eval_averages").at("loss")[0].value ==
        static_cast<float>(of_averages["loss"]));
}

TEST_CASE("an error in the middle of an evaluation leaves the parameters where they were") {
  const examples data;
  examples wrong;
  wrong.label[20] = 3;
  const run_setting s;
  auto trainer = compiled(s);
  trainer.train(data.endless(), {.max_steps = 9});
  const auto before = state_of(trainer);
  CHECK_THROWS_AS(trainer.evaluate(wrong.all().batch(8), {.use_averages = true}), invalid_argument);
  CHECK(run_files::difference(before, state_of(trainer)).empty());
}

TEST_CASE("max_steps is where to stop, steps is how many more") {
  const examples data;
  run_setting s;
  s.config = {};  // no files: nothing is remembered beyond the trainer
  auto trainer = interpreted(s);
  trainer.train(data.endless(), {.max_steps = 4});
  CHECK(trainer.global_step() == 4);
  trainer.train(data.endless(), {.steps = 3});
  CHECK(trainer.global_step() == 7);
  auto untouched = data.all().batch(43);
  trainer.train(untouched, {.max_steps = 7});
  CHECK(trainer.global_step() == 7);
  std::vector<float> x(43 * 4);
  std::vector<std::int32_t> label(43);
  const tensor_view out[] = {{float32, {43, 4}, reinterpret_cast<std::byte*>(x.data())},
                             {int32, {43}, reinterpret_cast<std::byte*>(label.data())}};
  CHECK(untouched.next(out) == 43);
  CHECK(x == data.x);
  CHECK(s.files.operations() == 0);
}

TEST_CASE("what a sink hears: every step, which are due, the rate of the step, speed from the clock") {
  const examples data;
  run_setting s;
  s.config.log_step_count_steps = 4;
  std::vector<std::int64_t> due;
  std::vector<progress_report> all;
  std::vector<std::string> lines;
  s.sink.on_step = [&](const progress_report& r, bool d) {
    all.push_back(r);
    if (d) due.push_back(r.step);
    s.clock.advance(0.5);
  };
  s.sink.on_line = [&](std::string_view l) { lines.emplace_back(l); };
  compiled(s).train(data.endless(), {.max_steps = 10});
  REQUIRE(all.size() == 10);
  CHECK(due == std::vector<std::int64_t>{4, 8, 10});
  CHECK(lines.empty());
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(all[i].step == static_cast<std::int64_t>(i + 1));
    CHECK(all[i].max_steps == 10);
    CHECK(all[i].rate == doctest::Approx(i < 5 ? 0.02 : 0.016));  // of this step, not of the next
    CHECK(all[i].now == 0.5 * static_cast<double>(i));
  }
  CHECK(all[3].steps_per_sec == doctest::Approx(4 / 1.5));
  CHECK(all[7].steps_per_sec == doctest::Approx(2));  // four steps, two seconds
  CHECK(all[7].eta_secs == doctest::Approx(1));
  CHECK(std::isfinite(all[0].loss));

  compiled(s).train(data.endless(), {.max_steps = 11});
  CHECK(lines == std::vector<std::string>{"restored step 10 from run/model-10.ckpt"});
}

TEST_CASE("checkpoints by steps, by seconds, at the start and at the end, or never") {
  const examples data;
  const auto steps_saved = [&](const run_config& config) {
    run_setting s;
    s.config = config;
    s.config.model_dir = "run";
    s.sink.on_step = [&](const progress_report&, bool) { s.clock.advance(1); };
    interpreted(s).train(data.endless(), {.max_steps = 10});
    std::vector<std::int64_t> out;
    for (const auto& path : s.files.files())
      if (const auto step = checkpoint_step(file_name_of(path)); step && path.ends_with(".ckpt")) {
        out.push_back(*step);
        CHECK(s.files.holds(path.substr(0, path.size() - 5) + ".meta"));
      } else {
        CHECK((!step || path.ends_with(".meta")));
      }
    std::sort(out.begin(), out.end());
    return out;
  };
  using steps = std::vector<std::int64_t>;
  CHECK(steps_saved({.save_checkpoints_steps = 4}) == steps{0, 4, 8, 10});
  CHECK(steps_saved({.save_checkpoints_steps = 5}) == steps{0, 5, 10});
  CHECK(steps_saved({.save_checkpoints_secs = 3}) ==
        steps{0, 4, 8, 10});               // the clock is looked at before the sink turns it
  CHECK(steps_saved({}) == steps{0, 10});  // 600 seconds do not pass
  CHECK(steps_saved({.save_checkpoints_secs = none}).empty());
  CHECK(steps_saved({.save_checkpoints_steps = 0}).empty());
  CHECK(steps_saved({.save_checkpoints_steps = 1, .keep_checkpoint_max = 2}) == steps{9, 10});
  CHECK(steps_saved({.save_checkpoints_steps = 2, .keep_checkpoint_max = 0}).size() == 6);
}

TEST_CASE("curves: the model's summaries, loss, metrics, rate, gradient norm; speed where it is due") {
  const examples data;
  run_setting s;
  s.config.save_summary_steps = 3, s.config.log_step_count_steps = 5;
  std::vector<progress_report> heard;
  s.sink.on_step = [&](const progress_report& r, bool) {
    heard.push_back(r);
    s.clock.advance(0.25);
  };
  compiled(s).train(data.endless(), {.max_steps = 10});
  const auto log = run_files::read_curves(s.files, "run");
  for (const char* tag : {"cost", "loss", "accuracy", "learning_rate", "gradient_norm"})
    CHECK_MESSAGE((run_files::steps_of(log, tag) == std::vector<std::int64_t>{1, 3, 6, 9}), tag);
  CHECK(run_files::steps_of(log, "global_step/sec") == std::vector<std::int64_t>{5, 10});
  for (const auto& p : log.at("loss")) CHECK(p.value == static_cast<float>(heard[std::size_t(p.step - 1)].loss));
  for (const auto& p : log.at("learning_rate")) CHECK(p.value == doctest::Approx(p.step <= 5 ? 0.02 : 0.016));
  CHECK(run_files::same_points(log.at("cost"), log.at("loss")));
  CHECK(log.at("global_step/sec")[1].value == doctest::Approx(4));

  s.files = faulty_files();
  s.config.save_summary_steps = 0;
  compiled(s).train(data.endless(), {.max_steps = 10});
  for (const auto& path : s.files.files()) CHECK_MESSAGE(path.find("tfevents") == std::string::npos, path);
}

TEST_CASE("the data's parts meet placeholders by name; where no name agrees, in order") {
  const std::vector<float> x{1, 2, 3, 4}, y{2, 4, 6, 8}, more(12);
  const auto trained_on = [](auto&& data) {
    run_setting s;
    s.config = {};
    auto trainer = on_a_line(s);
    trainer.train(data.batch(2), {.max_steps = 2});
    return values_of(trainer, "line/kernel")[0];
  };
  const float expected = trained_on(from_spans("x", x, extents{1}, "y", y, extents{1}));
  CHECK(expected != 1);
  CHECK(trained_on(from_spans("y", y, extents{1}, "x", x, extents{1})) == expected);
  CHECK(trained_on(from_spans("more", more, extents{3}, "y", y, extents{1}, "x", x, extents{1})) == expected);
  CHECK(trained_on(from_spans("a", x, extents{1}, "b", y, extents{1})) == expected);
  CHECK(trained_on(from_spans("a", x, "b", y)) == expected);  // [n] for [n, 1]: as many numbers

  run_setting s;  // a prediction needs no labels
  s.config = {};
  auto trainer = on_a_line(s);
  trainer.train(from_spans("x", x, extents{1}, "y", y, extents{1}).batch(2), {.steps = 1});
  std::size_t rows = 0;
  trainer.predict(from_spans("x", x, extents{1}).batch(3), [&](const predictions& p) { rows += p["y"].size(); });
  CHECK(rows == 4);
}

TEST_CASE("placeholders that are fed in order and could be exchanged are named once, in a warning") {
  const std::vector<float> x{1, 2, 3, 4}, y{2, 4, 6, 8};
  const auto warnings = [](auto&& data) {
    run_setting s;
    s.config = {};
    std::vector<std::string> all;
    s.sink.on_line = [&](std::string_view line) {
      if (line.find("placeholder") != line.npos) all.emplace_back(line);
    };
    auto trainer = on_a_line(s);
    auto batches = data.repeat().batch(2);
    trainer.train(batches, {.steps = 1});
    trainer.train(batches, {.steps = 1});
    trainer.evaluate(data.batch(2));
    return all;
  };
  const auto found = warnings(from_spans("y_", y, extents{1}, "x_", x, extents{1}));
  REQUIRE(found.size() == 1);
  CHECK(found[0].find(
            "no component of the data has the name of a placeholder, so they are fed in their order: \"x\" from "
            "\"y_\", \"y\" from \"x_\"; give the components the placeholders' names if this is not meant") !=
        std::string::npos);
  CHECK(warnings(from_spans("y", y, extents{1}, "x", x, extents{1})).empty());

  run_setting s;  // names that agreed once, and do not in an evaluation
  s.config = {};
  int said = 0;
  s.sink.on_line = [&](std::string_view line) { said += line.find("placeholder") != line.npos; };
  auto trainer = on_a_line(s);
  trainer.train(from_spans("x", x, extents{1}, "y", y, extents{1}).batch(2), {.steps = 1});
  CHECK(said == 0);
  for (int i = 0; i < 2; ++i) trainer.evaluate(from_spans("p", x, extents{1}, "q", y, extents{1}).batch(2));
  CHECK(said == 1);
}

TEST_CASE("a notice ends every later call of train too, with a warning; another trainer goes on") {
  const std::vector<float> x{1, 2, 3, 4}, y{2, 4, 6, 8};
  const auto rows = from_spans("x", x, extents{1}, "y", y, extents{1}).repeat().batch(2);
  const testing::temp_dir dir;
  int steps = 0;
  std::vector<std::string> warnings;
  const auto build = [&](bool stops) {
    listener sink;
    sink.on_line = [&](std::string_view line) {
      if (line.find("should_stop()") != line.npos) warnings.emplace_back(line);
    };
    return make_trainer<line>(gradient_descent{.rate = 0.01},
                              any_of{every_steps{100}, on_notice{[&] { return ++steps == 3; }, stops}}, sink,
                              run_config{.model_dir = dir.path()});
  };
  {
    auto trainer = build(true);
    CHECK_FALSE(trainer.should_stop());
    for (auto data = rows; int round : {0, 1, 2}) {
      trainer.train(data, {.steps = 10});
      CHECK(trainer.should_stop());
      CHECK(trainer.global_step() == 3);
      CHECK(warnings.size() == static_cast<std::size_t>(round));
    }
    CHECK(warnings.at(0).find("a signal or a notice ended training at step 3, so nothing was trained") !=
          std::string::npos);
    auto data = rows;
    CHECK(trainer.evaluate(data, {.steps = 2}).global_step() == 3);
  }
  auto data = rows;
  steps = 0;
  auto trainer = build(false);  // this one saves and goes on
  trainer.train(data, {.max_steps = 10});
  CHECK(trainer.global_step() == 10);
  CHECK_FALSE(trainer.should_stop());
  CHECK(warnings.size() == 2);
}

TEST_CASE("a pipeline that failed before the first step may be repaired; one that steps have read may not") {
  const std::vector<float> x{1, 2, 3, 4}, y{2, 4, 6, 8};
  const auto rows = [&] { return from_spans("x", x, extents{1}, "y", y, extents{1}); };
  const auto repaired = [&] { return rows().shuffle(4, 1).repeat().batch(2); };
  run_setting s;
  auto first = on_a_line(s);
  CHECK_THROWS_WITH(
      first.train(rows().map([](datum&) { throw std::runtime_error("a bad row"); }).batch(2), {.max_steps = 3}),
      "a bad row");
  CHECK(s.files.exists("run/model-0.ckpt") == 0);
  first.train(repaired(), {.max_steps = 3});  // by the same trainer, and by another program
  run_setting again;
  {
    auto failed = on_a_line(again);
    CHECK_THROWS(failed.train(rows().map([](datum&) { throw 1; }).batch(2), {.max_steps = 3}));
  }
  auto second = on_a_line(again);
  second.train(repaired(), {.max_steps = 3});
  CHECK(second.global_step() == 3);
  CHECK(values_of(second, "line/kernel") == values_of(first, "line/kernel"));
  auto third = on_a_line(again);
  CHECK_THROWS_WITH_AS(
      third.train(rows().repeat().batch(2), {.max_steps = 5}),
      doctest::Contains(
          "build the same input, or set restore_input = saved_input::if_it_fits to read this one from its beginning"),
      data_loss);
}

TEST_CASE("a run of several calls of train that ended in any of them goes on with the same bits") {
  std::vector<float> x(12), y(12);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.1f * static_cast<float>(i), y[i] = x[i] * x[i];
  const auto first_of = [&](std::size_t n) {
    return from_spans("x", std::span<const float>(x).first(n), extents{1}, "y", std::span<const float>(y).first(n),
                      extents{1});
  };
  enum way { one_object, made_anew, other_input };
  for (const way w : {one_object, made_anew, other_input}) {
    const auto run = [&](const run_setting& s, std::int64_t until) {
      auto trainer = on_a_line(s);
      auto kept = first_of(7).shuffle(4, 1).repeat().batch(2);
      for (const std::int64_t end : {5, 11, 17}) {
        auto data = first_of(w == other_input && end == 11 ? 12 : 7).shuffle(4, 1).repeat().batch(2);
        trainer.train(w == one_object ? kept : data, {.max_steps = std::min(end, until)});
        if (end >= until) break;
        trainer.evaluate(first_of(7).batch(2));
      }
      return values_of(trainer, "line/kernel")[0];
    };
    const float undisturbed = run(run_setting{}, 17);
    for (std::int64_t until = 1; until < 17; ++until) {
      CAPTURE(int(w));
      CAPTURE(until);
      run_setting s;
      run(s, until);
      CHECK(run(s, 17) == undisturbed);
    }
  }
}

TEST_CASE("a program that was killed behind a call of train, and one whose call failed, keep their curves") {
  const std::vector<float> x{1, 2, 3, 4}, y{2, 4, 6, 8};
  const auto rows = [&] { return from_spans("x", x, extents{1}, "y", y, extents{1}).repeat().batch(2); };
  for (const bool fails : {false, true}) {
    run_setting s;
    s.config.save_summary_steps = 1;
    auto first = on_a_line(s);
    first.train(rows(), {.max_steps = 4});
    if (fails) {
      int left = 1;
      CHECK_THROWS(first.train(rows().map([left](datum&) mutable {
        if (left-- == 0) throw std::runtime_error("a bad row");
      }),
                               {.max_steps = 7}));
      first.train(rows(), {.max_steps = 8});
    } else {
      auto second = on_a_line(s);
      second.train(rows(), {.max_steps = 4});  // stands there
      second.train(rows(), {.max_steps = 8});
    }
    CHECK(run_files::steps_of(run_files::read_curves(s.files, "run"), "loss") ==
          std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8});
  }
}

TEST_CASE("events that a full queue did not take are warned of, also where a call of train fails") {
  const std::vector<float> x{1, 2, 3, 4}, y{2, 4, 6, 8};
  for (const bool fails : {false, true}) {
    run_setting s;
    s.config.save_summary_steps = 1, s.config.summaries = {.max_queue = 1};
    std::string said;
    s.sink.on_line = [&](std::string_view line) { said += line; };
    auto t = on_a_line(s);
    int left = 20'000;  // many more than the thread of the events can take one by one
    const auto train = [&] {
      t.train(from_spans("x", x, extents{1}, "y", y, extents{1}).repeat().batch(2).map([left](datum&) mutable {
        if (left-- == 0) throw std::runtime_error("a bad row");
      }),
              {.max_steps = fails ? 30'000 : 20'000});
    };
    if (fails)
      CHECK_THROWS(train());
    else
      train();
    CHECK(said.find("the queue of summaries was full") != std::string::npos);
  }
}

TEST_CASE("steps without an end: to the end of the data, in each call") {
  const std::vector<float> x{1, 2, 3, 4}, y{2, 4, 6, 8};
  const auto rows = [&] { return from_spans("x", x, extents{1}, "y", y, extents{1}).batch(2); };
  auto t = on_a_line({});
  for (const std::int64_t made : {2, 4}) {
    t.train(rows(), {.steps = std::numeric_limits<std::int64_t>::max()});
    CHECK(t.global_step() == made);
  }
}

TEST_CASE("a trainer does not go on over what another run has saved since") {
  const std::vector<float> x{1, 2, 3, 4}, y{2, 4, 6, 8};
  const auto rows = [&] { return from_spans("x", x, extents{1}, "y", y, extents{1}).repeat().batch(1); };
  run_setting s;
  auto a = on_a_line(s), b = on_a_line(s);
  a.train(rows(), {.max_steps = 3});
  a.train(rows(), {.max_steps = 4});
  b.train(rows(), {.max_steps = 9});
  CHECK_THROWS_WITH_AS(a.measured(0.5), doctest::Contains("another run has saved \"run/model-9.ckpt\""),
                       failed_precondition);
  CHECK_THROWS_WITH_AS(
      a.train(rows(), {.max_steps = 6}),
      "another run has saved \"run/model-9.ckpt\" since this one held step 4 there, and would lose it; "
      "make a new trainer, which goes on from it, or give each its own directory",
      failed_precondition);
  b.train(rows(), {.max_steps = 10});
  auto c = on_a_line(s);
  c.train(rows(), {.max_steps = 11});
  CHECK(c.global_step() == 11);
}

TEST_CASE("training goes on with another input if it is allowed, and says so") {
  const std::vector<float> x{1, 2, 3, 4}, y{2, 4, 6, 8};
  const auto rows = [&] { return from_spans("x", x, extents{1}, "y", y, extents{1}).repeat(); };
  std::string said;
  const auto train = [&](run_setting& s, saved_input how, auto data, std::int64_t until) {
    s.config.restore_input = how;
    s.sink.on_line = [&](std::string_view line) { said += line; };
    auto trainer = on_a_line(s);
    trainer.train(std::move(data), {.max_steps = until});
    return values_of(trainer, "line/kernel")[0];
  };
  // Other data from their beginning: what a trainer that was never stopped makes of them.
  const auto together = [&] {
    run_setting s;
    auto trainer = on_a_line(s);
    trainer.train(rows().batch(1), {.max_steps = 2});
    trainer.train(rows().shuffle(3, 1).batch(1), {.max_steps = 5});
    return values_of(trainer, "line/kernel")[0];
  };
  for (const saved_input how : {saved_input::if_it_fits, saved_input::ignored}) {
    run_setting s;
    train(s, how, rows().batch(1), 2);
    said.clear();
    CHECK(train(s, how, rows().shuffle(3, 1).batch(1), 5) == together());
    CHECK((said.find("the input is read from its beginning: the saved position is one in the input") != said.npos) ==
          (how == saved_input::if_it_fits));
  }
  // The same input: its position counts for if_it_fits alone.
  const auto in_two = [&](saved_input how) {
    run_setting s;
    train(s, how, rows().batch(1), 2);
    return train(s, how, rows().batch(1), 5);
  };
  run_setting at_once;
  const float whole = train(at_once, saved_input::required, rows().batch(1), 5);
  CHECK(in_two(saved_input::required) == whole);
  CHECK(in_two(saved_input::if_it_fits) == whole);
  CHECK(in_two(saved_input::ignored) != whole);
}

TEST_CASE("nothing is written to the screen unless a sink was asked to") {
  const gradus::testing::temp_dir dir;
  const std::string path = dir / "output";
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT, 0666);
  std::fflush(stdout), std::fflush(stderr);
  const int out = ::dup(1), err = ::dup(2);
  ::dup2(fd, 1), ::dup2(fd, 2);
  {
    const examples data;
    auto trainer = make_trainer(rich, adam{}, run_config{.model_dir = dir / "run", .save_checkpoints_steps = 2});
    trainer.train(data.endless(), {.max_steps = 5});
    trainer.evaluate(data.all().batch(8));
    auto second = make_trainer(rich, adam{}, run_config{.model_dir = dir / "run", .save_checkpoints_steps = 2});
    second.train(data.endless(), {.max_steps = 7});
  }
  std::fflush(stdout), std::fflush(stderr);
  ::dup2(out, 1), ::dup2(err, 2);
  ::close(out), ::close(err), ::close(fd);
  CHECK(read_file(posix{}, path).empty());
}

TEST_CASE("refusals of train, evaluate and predict") {
  const examples data;
  const run_setting s;
  auto trainer = interpreted(s);
  CHECK(refusal<invalid_argument>([&] { trainer.train(data.endless(), {}); }) ==
        "train: expected one of max_steps and steps above 0, found max_steps 0 and steps 0; give one, as in "
        "{.max_steps = 1000}, or {.steps = until_data_end}");
  CHECK(refusal<invalid_argument>([&] { trainer.train(data.endless(), {.max_steps = 5, .steps = 5}); }) ==
        "train: expected one of max_steps and steps above 0, found max_steps 5 and steps 5; give one, as in "
        "{.max_steps = 1000}, or {.steps = until_data_end}");
  CHECK(refusal<failed_precondition>([&] { trainer.evaluate(data.all().batch(8)); }) ==
        "there is no checkpoint in \"run\" to evaluate or predict with; train first");
  run_setting no_files;
  no_files.config = {};
  auto fresh = interpreted(no_files);
  CHECK(refusal<failed_precondition>([&] { fresh.predict(data.all().batch(8), [](const predictions&) {}); }) ==
        "the model has not been trained: call train first, or give run_config a model_dir with a checkpoint");
  // Nor has one whose training failed before its first step; what trains it then begins as if nothing had been.
  CHECK_THROWS(fresh.train(data.all().take(0).batch(8), {.max_steps = 3}));
  CHECK(refusal<failed_precondition>([&] { fresh.evaluate(data.all().batch(8)); }) ==
        "the model has not been trained: call train first, or give run_config a model_dir with a checkpoint");
  auto other = interpreted(no_files);
  fresh.train(data.endless(), {.max_steps = 3}), other.train(data.endless(), {.max_steps = 3});
  CHECK(fresh.evaluate(data.all().batch(8))["loss"] == other.evaluate(data.all().batch(8))["loss"]);
  trainer.train(data.endless(), {.max_steps = 1});
  CHECK(refusal<out_of_range>([&] { trainer.evaluate(data.all().take(0).batch(8)); }) ==
        "evaluate: the dataset gave no examples; rewind() it, or look at its path and filters");
  auto plain = on_a_line(no_files);
  const std::vector<float> x{1, 2};
  plain.train(from_spans("x", x, "y", x).batch(2), {.steps = 1});
  CHECK(refusal<invalid_argument>([&] {
          plain.evaluate(from_spans("x", x, "y", x).batch(2), {.use_averages = true});
        }) == "use_averages: there is no average among the trainer's policies; add exponential_moving_average{}");
  run_setting wrong;
  wrong.config.keep_checkpoint_max = -1;
  CHECK(refusal<invalid_argument>([&] { interpreted(wrong); }).find("keep_checkpoint_max") != std::string::npos);
}

namespace {
int event_files(const faulty_files& files, std::string_view directory) {
  int n = 0;
  for (const auto& path : files.files()) {
    const auto name = path.substr(path.rfind('/') + 1);
    n += path.substr(0, path.rfind('/')) == directory && name.starts_with("events.out.tfevents.");
  }
  return n;
}
}  // namespace

TEST_CASE("one event file for each role of a run, whatever is called how often; curves as from many") {
  run_setting s;
  s.config.save_summary_steps = 1;
  const examples data;
  auto train_set = data.endless();
  auto test_set = data.all().batch(10);
  {
    auto trainer = on_a_line_of(s);
    for (int round = 1; round <= 3; ++round) {
      trainer.train(train_set, {.steps = 4});
      CHECK(event_files(s.files, "run") == 1);
      const auto curves = run_files::read_curves(s.files, "run");  // all of it is there already
      CHECK(run_files::steps_of(curves, "loss").size() == static_cast<std::size_t>(4 * round));
      trainer.evaluate(test_set);
      trainer.evaluate(test_set, {.name = "other"});
      trainer.evaluate(test_set);  // once more at this step: takes the first one's place
      CHECK(event_files(s.files, "run/eval") == 1);
      CHECK(event_files(s.files, "run/other") == 1);
      const auto found = run_files::read_curves(s.files, "run/eval");
      CHECK(run_files::steps_of(found, "loss").size() == static_cast<std::size_t>(round));
    }
  }
  auto next = on_a_line_of(s);  // another process: a file of its own
  next.train(train_set, {.steps = 4});
  CHECK(event_files(s.files, "run") == 2);
  CHECK(run_files::steps_of(run_files::read_curves(s.files, "run"), "loss").size() == 16);
}

TEST_CASE("a variable by its name: of the last step, of a checkpoint, and what is refused") {
  const examples data;
  run_setting s;
  auto t = on_a_line_of(s);
  CHECK_THROWS_WITH_AS(t.variable("hidden/kernel"),
                       "there is no checkpoint in \"run\" to evaluate or predict with; train first",
                       failed_precondition);
  t.train(data.endless(), {.max_steps = 3});
  const auto now = [](auto& trainer) {
    const auto x = trainer.variable("logits/kernel").template as<float>();
    return std::vector<float>(x.begin(), x.end());
  };
  CHECK(now(t) == values_of(t, "logits/kernel"));
  CHECK(t.variable("logits/kernel").dims == extents{6, 3});
  const auto third = now(t);
  t.train(data.endless(), {.max_steps = 4});
  CHECK(now(t) != third);
  CHECK(now(t) == values_of(t, "logits/kernel"));
  auto again = on_a_line_of(s);  // has not trained
  CHECK(now(again) == now(t));
  CHECK_THROWS_WITH_AS(again.variable("logits"),
                       doctest::Contains("the model has no variable \"logits\"; it has global_step, hidden/kernel, "),
                       not_found);
  // A slot, an average, a rule's own number and the step, as a checkpoint has them.
  run_setting of_rich;
  auto r = interpreted(of_rich);
  r.train(data.endless(), {.max_steps = 4});
  const state_list all = r.state();
  for (const char* name :
       {"logits/kernel/Adam", "logits/kernel/ExponentialMovingAverage", "beta1_power", "global_step"}) {
    REQUIRE(all.find(name) != nullptr);
    CHECK(r.variable(name).data == all.find(name)->bytes.data());
    CHECK(r.variable(name).dims == all.find(name)->dims);
  }
  CHECK(r.variable("global_step").as<std::int64_t>()[0] == 4);
  CHECK(r.variable("beta1_power").as<double>()[0] == doctest::Approx(std::pow(0.9, 5)));
}

TEST_CASE("weights that the program gave are evaluated, read and trained on, without a step before") {
  const std::vector<float> x{1, 2, 3}, y{5, 7, 9};
  const auto rows = [&] { return from_spans("x", x, extents{1}, "y", y, extents{1}).batch(3); };
  for (const bool with_files : {false, true}) {
    run_setting s;
    if (!with_files) s.config = {};
    auto t = make_trainer(line, gradient_descent{.rate = 0.1}, s.config, s.files, silent{});
    CHECK_THROWS_AS(t.evaluate(rows()), failed_precondition);
    t.steps().initialize(42);
    const state_list all = t.state();
    for (const auto& e : all.entries())
      if (e.name.starts_with("line/"))
        *reinterpret_cast<float*>(e.bytes.data()) = e.name == "line/kernel" ? 2.0F : 0.0F;
    CHECK(t.evaluate(rows())["loss"] == doctest::Approx(9.0));  // 2 x lacks 3 everywhere
    CHECK(t.variable("line/kernel").as<float>()[0] == 2.0F);
    t.predict(rows(), [](const predictions& p) { CHECK(p["y"].as<float>()[1] == 4.0F); });
    // The gradient by w is mean(2 (2 x - y) x) = -12.
    t.train(rows(), {.steps = 1});
    CHECK(t.variable("line/kernel").as<float>()[0] == doctest::Approx(2.0 + 0.1 * 12));
    // A run that failed before its first step has not given anything.
    auto failed = make_trainer(line, gradient_descent{.rate = 0.1}, silent{});
    CHECK_THROWS(failed.train(rows().take(0), {.steps = 1}));
    failed.steps().initialize(42);
    CHECK_THROWS_AS(failed.evaluate(rows()), failed_precondition);
  }
}

TEST_CASE("evaluate and predict begin again where data ended") {
  run_setting s;
  const examples data;
  auto train_set = data.endless();
  auto trainer = on_a_line_of(s);
  trainer.train(train_set, {.steps = 3});
  auto test_set = data.all().batch(10);  // 5 batches, the last of 3
  const auto all = trainer.evaluate(test_set).values();
  CHECK(trainer.evaluate(test_set).values() == all);
  for (int k = 0; k < 2; ++k) {
    std::int64_t seen = 0;
    trainer.predict(test_set, [&](const predictions& p) { seen += p.size(); });
    CHECK(seen == 43);
  }
  // Some batches at a time: on from where the last call stopped, and round.
  const auto first = trainer.evaluate(test_set, {.steps = 3}).values();
  const auto rest = trainer.evaluate(test_set, {.steps = 3}).values();  // the last two
  CHECK(first != rest);
  CHECK(trainer.evaluate(test_set, {.steps = 3}).values() == first);
  trainer.evaluate(test_set, {.steps = 2});  // the last two: the end was not met
  CHECK(trainer.evaluate(test_set, {.steps = 3}).values() == first);
}

TEST_CASE("a model_dir that is moved away while a trainer runs: it locks the new one, or is refused there") {
  const std::vector<float> x{1, 2, 3, 4}, y{2, 4, 6, 8};
  for (const bool taken : {false, true}) {
    const gradus::testing::temp_dir dir;
    const std::string run = dir / "run";
    std::shared_ptr<detail::held_directory> other;
    bool refused = false;
    const auto move_away = [&](const progress_report& r, bool) {
      if (r.step == 5) {
        REQUIRE(posix{}.rename(run, dir / "old") == 0);
        REQUIRE(posix{}.make_directory(run) == 0);
        if (taken) other = hold_directory(posix{}, run);
      }
      if (r.step != 7 || taken) return;
      try {
        hold_directory(posix{}, run);
      } catch (const failed_precondition&) {
        refused = true;
      }
    };
    auto trainer = make_trainer(line, gradient_descent{.rate = 0.1}, listener{.on_step = move_away},
                                run_config{.model_dir = run, .save_summary_steps = 0, .save_checkpoints_steps = 2});
    auto rows = from_spans("x", x, extents{1}, "y", y, extents{1}).repeat().batch(1);
    if (taken) {
      CHECK_THROWS_WITH_AS(trainer.train(rows, {.max_steps = 9}), doctest::Contains("to be the only one that writes"),
                           failed_precondition);
      CHECK(latest_checkpoint(posix{}, run).empty());
      other.reset();
    } else {
      trainer.train(rows, {.max_steps = 9});
      CHECK(latest_checkpoint(posix{}, run) == run + "/model-9.ckpt");
      CHECK(refused);
    }
    CHECK(hold_directory(posix{}, run)->held());  // it holds nothing afterwards
    CHECK(latest_checkpoint(posix{}, dir / "old") == dir / "old/model-4.ckpt");
  }
}
