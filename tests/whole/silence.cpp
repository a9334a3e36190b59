// costs: 300
// What used to happen without a word: data that give nothing or end early, masks that no variable belongs to, best
// checkpoints that nobody measures. Where nothing could have been meant it is an error, else a warning, at every door.
#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/local_cluster.hpp>
#include <gradus/estimator/estimator.hpp>
#include <gradus/gradus.hpp>
#include <gradus/run/optimizer.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/testing/faulty_files.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/supervisor.hpp>

#include <doctest/doctest.h>

using namespace gradus;

namespace {

// Two variables, "line/kernel" and "line/bias".
inline constexpr auto line = [](graph& g) {
  auto x = g.placeholder("x", {batch, 1});
  auto y = g.placeholder("y", {batch, 1});
  auto guess = dense(x, {.units = 1, .name = "line"});
  return model_spec{.loss = reduce_mean(square(guess - y))};
};
const std::vector<float> values{1, 2, 3, 4};
memory_dataset points() { return from_spans("x", values, "y", values); }

struct listener {
  using policy_for = kind::log_sink;
  std::vector<std::string>* heard = nullptr;
  void line(std::string_view) {}
  void step(const progress_report&, bool) {}
  void warning(std::string_view what) {
    if (heard != nullptr) heard->emplace_back(what);
  }
};
constexpr gradient_descent descent{.rate = 0.01};
using texts = std::vector<std::string>;

// The same line as an estimator's model_fn, and its input.
template <class MakeOptimizer>
estimator estimate(const std::string& dir, MakeOptimizer make, run_config config = {}, texts* heard = nullptr,
                   std::shared_ptr<scaffold> parts = nullptr) {
  const auto model = [make, parts](const named_tensors& features, value labels, mode m) {
    auto guess = dense(reshape(features["x"], {-1, 1}), {.units = 1, .name = "line"});
    estimator_spec spec{.mode = m, .loss = reduce_mean(square(guess - reshape(labels, {-1, 1}))), .scaffold = parts};
    auto opt = make();
    spec.train_op = opt.minimize(spec.loss, {.global_step = get_global_step(features.of())}), spec.optimizers = opt;
    return spec;
  };
  config.model_dir = dir;
  return estimator(model, {.config = config, .log = [heard](const std::string& l) {
                             if (heard != nullptr && l.starts_with("WARNING: ")) heard->push_back(l);
                           }});
}
auto descending() { return optimizer{descent}; }
estimator_input once() { return labelled(points().batch(2), {"y"}); }
estimator_input endless() { return labelled(points().repeat().batch(2), {"y"}); }

// Every door that takes an update, with these policies: what each says.
template <class... Policies>
texts doors(const Policies&... policies) {
  const auto said = [](auto&& f) {
    try {
      f();
      return std::string("nothing");
    } catch (const invalid_argument& e) {
      return std::string(e.what());
    }
  };
  texts out;
  out.push_back(said([&] { make_trainer(line, policies...).train(points().batch(2), {.steps = 1}); }));
  out.push_back(said([&] {
    const testing::temp_dir dir;
    auto sv = make_supervisor(line, {.logdir = dir / "run"}, policies...);
    auto data = points().batch(2);
    auto sess = sv.managed_session("", data);
    sess.run();
  }));
  out.push_back(said([&] {
    using update = decltype(composed{policies...});
    using model = interpreted_model<cpu<fast>, ops<>, gating::op, false, true>;
    stepper<model, update, cpu<fast>> s(model{line}, update{policies...});
    s.allocate();
  }));
  out.push_back(said([&] {
    updater u{policies...};
    std::vector<float> kernel{1}, bias{1};
    u.track("line/kernel", tensor_view(float32, {1, 1}, reinterpret_cast<std::byte*>(kernel.data())));
    u.track("line/bias", bias);
    u.apply({{"line/bias", bias}});
  }));
  out.push_back(said([&] {
    graph g;
    const auto loss = line(g).loss;
    optimizer opt{policies...};
    const auto train = opt.minimize(loss);
    session s{g, opt};
    s.initialize(1);
    const std::vector<float> one{1};
    s.run(train, {{"x", one}, {"y", one}});
  }));
  out.push_back(said([&] {
    auto s = make_static_stepper<line>(static_batch<2>{}, policies...);
    s.initialize(1);
  }));
  out.push_back(said([&] {
    local_cluster{.ps = 1, .workers = 1}.run([&](server& here) {
      if (here.is_ps()) return here.join();
      make_trainer(line, connected{here}, sync_replicas{}, policies...).train(points().batch(2), {.steps = 1});
    });
  }));
  out.push_back(said([&] {
    const testing::temp_dir dir;
    estimate(dir.path(), [&] { return optimizer{policies...}; }).train(once, {.steps = 1});
  }));
  return out;
}

}  // namespace

TEST_CASE("a mask that no variable belongs to is an error at every door") {
  const std::string known = "\"line/kernel\", \"line/bias\"", frozen = "the mask of freeze matches no variable of ",
                    mend = "; mend the mask, or leave freeze out";
  const auto all_start = [](const texts& said, const std::string& head) {
    CHECK(said.size() == 8);
    for (const auto& s : said) CHECK_MESSAGE(s.starts_with(head), s);
  };
  all_start(doors(descent, freeze{named{"encoder/"}}), frozen + known + mend);
  CHECK(doors(descent, freeze{named{"line/bias"}}) == texts(8, "nothing"));
  const std::string part = "the mask of a weight_decay, or of another part of a chain, matches no variable of ";
  const auto decayed = [](const char* prefix) { return chain{weight_decay{0.01, named{prefix}}, descent}; };
  all_start(doors(decayed("encoder/")), part + known + "; mend the mask, or leave the part out");
  CHECK(doors(decayed("line/kernel")) == texts(8, "nothing"));
  all_start(doors(multi{on{named{"line/kernel"}, decayed("encoder/")}, descent}), part);
  // A mask that fits only variables of other groups is none's mistake: generic recipes have such.
  CHECK(doors(multi{on{named{"line/bias"}, chain{weight_decay{0.01, matrices{}}, descent}}, descent}) ==
        texts(8, "nothing"));
  const auto groups = [](const char* first, const char* second) {
    return multi{on{named{first}, descent}, on{named{second}, descent}, descent};
  };
  all_start(doors(groups("encoder/", "line/")), "group 1 of multi has no variable: its mask matches none of " + known);
  // The first group takes what the second would have.
  all_start(doors(groups("line/", "line/bias")), "group 2 of multi has no variable");
  CHECK(doors(groups("line/bias", "line/")) == texts(8, "nothing"));  // the last rule may have none
}

TEST_CASE("data that give nothing at all are an error where nothing was trained yet") {
  auto trainer = make_trainer(line, descent);
  CHECK_THROWS_WITH_AS(trainer.train(points().take(0).batch(2), {.max_steps = 5}),
                       "train: the dataset gave no examples, so nothing was trained: look at the path, at the filters, "
                       "at a batch size with drop_remainder, and at skipped() if ignore_errors passes bad records over",
                       out_of_range);
  const testing::temp_dir dir;
  auto sv = make_supervisor(line, {.logdir = dir / "run"}, descent);
  auto none = points().take(0).batch(2);
  auto sess = sv.managed_session("", none);
  CHECK_THROWS_AS(sess.run(), out_of_range);
}

TEST_CASE("steps that change nothing are a warning if they are most of a training") {
  texts heard;
  const std::vector<float> bad(4, std::numeric_limits<float>::quiet_NaN());
  auto trainer = make_trainer(line, descent, not_finite::skip{}, listener{&heard});
  trainer.train(from_spans("x", bad, "y", bad).repeat().batch(2), {.max_steps = 20});
  CHECK(heard ==
        texts{"train: 20 of 20 steps changed no variable, because their loss or gradients were not finite; look at "
              "the data, at the rate and at the loss scale"});
  heard.clear();
  trainer.train(points().repeat().batch(2), {.max_steps = 40});
  CHECK(heard.empty());
  auto scaled = make_trainer(line, descent, static_loss_scale{1e38}, listener{&heard});
  scaled.train(points().repeat().batch(2), {.max_steps = 3});
  CHECK(heard.empty());  // so few may be a scale that settles
  scaled.train(points().repeat().batch(2), {.max_steps = 20});
  CHECK(heard.size() == 1);
}

TEST_CASE("a schedule that observes values and was given none is a warning at the end") {
  texts heard;
  constexpr reduce_on_plateau plateau{.initial = 0.01};
  const std::string said =
      "the learning rate did not change: its schedule (reduce_on_plateau) observes values and was given none; call "
      "watch with the loss of each evaluation, or give train a validation";
  const auto warned = [&](auto&& run) {
    heard.clear();
    run();
    return heard;
  };
  const auto train = [&](auto&& more) {
    auto trainer = make_trainer(line, gradient_descent{}, plateau, listener{&heard});
    trainer.train(points().repeat().batch(2), {.steps = 3});
    CHECK(heard.empty());
    more(trainer);
  };
  CHECK(warned([&] { train([](auto&) {}); }) == texts{said});
  CHECK(warned([&] { train([](auto& t) { t.watch(1.0); }); }).empty());
  CHECK(warned([&] { make_trainer(line, gradient_descent{}, plateau, listener{&heard}); }).empty());
  const auto supervise = [&](bool watches) {
    const testing::temp_dir dir;
    auto sv = make_supervisor(line, {.logdir = dir / "run"}, gradient_descent{}, plateau, listener{&heard});
    auto input = points().batch(2);
    auto sess = sv.managed_session("", input);
    sess.run();
    if (watches) sv.watch(1.0);
  };
  CHECK(warned([&] { supervise(false); }) == texts{said});
  CHECK(warned([&] { supervise(true); }).empty());
}

TEST_CASE("a training that ends before accumulate's first update is a warning") {
  texts heard;
  const auto train = [&](std::int64_t max_steps) {
    heard.clear();
    auto trainer = make_trainer(line, descent, accumulate{.every = 4}, listener{&heard});
    trainer.train(points().repeat().batch(2), {.max_steps = max_steps});
    return heard;
  };
  CHECK(train(3) == texts{"train: at step 3 accumulate has made no update, because it makes one of `every` steps, and "
                          "global_step counts each of them; raise max_steps, or lower accumulate::every"});
  CHECK(train(4).empty());
}

TEST_CASE("data that end before the last step, or stand at their end, are one warning at every door") {
  const std::string early = "the data ended at step 2, before step 5; rewind() them or add .repeat() to go on";
  texts heard;
  const testing::temp_dir dir;
  {
    auto trainer = make_trainer(line, descent, listener{&heard}, run_config{.model_dir = dir / "run"});
    auto data = points().batch(2);
    trainer.train(data, {.max_steps = 5});
    CHECK(heard == texts{early});
    trainer.train(data, {.steps = 5});
    REQUIRE(heard.size() == 2);
    CHECK(heard[1] ==
          "the data ended at step 2, before step 7 (they gave no step to this call); rewind() them or add .repeat() to "
          "go on");
    trainer.train(points().repeat().batch(2), {.steps = 5});
    CHECK(heard.size() == 2);
    auto again = points().batch(2);
    trainer.train(again, {.steps = until_data_end});
    CHECK((heard.size() == 2 && trainer.global_step() == 9));
    trainer.train(again, {.steps = until_data_end});
    REQUIRE(heard.size() == 3);
    CHECK(heard[2] ==
          "the data ended at step 9 (they gave no step to this call); rewind() them or add .repeat() to go on");
  }
  heard.clear();
  const auto run = [&] {
    auto sv = make_supervisor(line, {.logdir = dir / "sv"}, descent, listener{&heard});
    auto data = points().batch(2);
    auto sess = sv.managed_session("", data);
    while (sess.run()) {
    }
  };
  run();
  CHECK(heard.empty());  // the program's own loop has no last step
  run();                 // restored at the end of the data
  CHECK(heard == texts{"the data gave no step: they stand at their end since step 2; rewind() them or add .repeat() to "
                       "go on"});

  heard.clear();
  estimator e = estimate(dir / "estimator", descending, {}, &heard);
  e.train(once, {.max_steps = 5});
  CHECK(heard ==
        texts{"WARNING: the data ended at step 2, before step 5; add .repeat() to what input_fn gives to go on"});
  e.train(once, {.steps = 5});
  REQUIRE(heard.size() == 2);
  CHECK(heard[1] == "WARNING: the data ended at step 4, before step 7; add .repeat() to what input_fn gives to go on");
  e.train([] { return labelled(points().take(0).batch(2), {"y"}); }, {.steps = 5});
  REQUIRE(heard.size() == 3);
  CHECK(heard[2] == "WARNING: Training with estimator made no steps. Perhaps input is empty or misspecified.");
  // An end that was meant, by the data's end or by a hook's stop, is none.
  struct stops {
    void after_run(run_context& c, const run_values&) { c.request_stop(); }
  };
  e.train(once), e.train(once, {.steps = 2}), e.train(endless, {.max_steps = 12});
  e.train(once, {.steps = 5, .hooks = {stops{}}});
  CHECK(e.latest_checkpoint() == (dir / "estimator") + "/model-13.ckpt");
  CHECK(heard.size() == 3);
}

TEST_CASE("the best checkpoints are kept only where somebody measures: said once at every door") {
  const auto unranked = [](const char* option) {
    return text(option,
                " keeps the best 2, but none of the 3 checkpoints up to step 3 was given a metric: call "
                "measured(metric) after each of them");
  };
  texts heard;
  const testing::temp_dir dir;
  run_config config{.model_dir = dir / "run", .save_checkpoints_steps = 1, .keep_checkpoint_best = {.count = 2}};
  auto data = points().repeat().batch(2);
  {
    auto trainer = make_trainer(line, descent, listener{&heard}, config);
    trainer.train(data, {.steps = 3});
    trainer.train(data, {.steps = 3});
    CHECK(heard == texts{unranked("keep_checkpoint_best")});
  }
  heard.clear();
  config.model_dir = dir / "measured";
  auto trainer = make_trainer(line, descent, listener{&heard}, config);
  for (int i = 0; i < 3; ++i) {
    trainer.train(data, {.steps = 1});
    trainer.measured(i);
  }
  trainer.train(data, {.steps = 3});
  CHECK(heard.empty());

  for (const bool measures : {false, true}) {
    heard.clear();
    auto sv =
        make_supervisor(line, {.logdir = dir / text("sv", int(measures)), .saver = saver_options{.best = {.count = 2}}},
                        descent, every_steps{1}, listener{&heard});
    auto input = points().repeat().batch(2);
    auto sess = sv.managed_session("", input);
    for (int i = 0; i < 3; ++i) {
      sess.run();
      if (measures) sv.measured(i);
    }
    sv.stop();
    CHECK(heard == (measures ? texts{} : texts{unranked("saver_options::best")}));
  }

  // Nobody can reach the saver of an estimator but through a scaffold.
  heard.clear();
  config.model_dir = none;
  estimate(dir / "estimator", descending, config, &heard).train(endless, {.steps = 3});
  CHECK(heard == texts{"WARNING: train: keep_checkpoint_best keeps the best 2 checkpoints by a metric, and nothing "
                       "gives one to the checkpoints "
                       "of an estimator; leave it out and keep the best exports (best_exporter), or give the "
                       "estimator_spec a scaffold "
                       "and call measured(metric) of its saver() in a saving listener"});
  struct measuring {
    std::shared_ptr<scaffold> parts;
    bool after_save(hooked_session&, std::int64_t step) const {
      parts->saver()->measured(static_cast<double>(-step));
      return false;
    }
  };
  for (const bool measures : {false, true}) {
    heard.clear();
    const auto parts = std::make_shared<scaffold>();
    estimator e = estimate(dir / text("estimator", int(measures)), descending, config, &heard, parts);
    estimator_train_options o{.steps = 3};
    if (measures) o.saving_listeners.push_back(measuring{parts});
    e.train(endless, o);
    CHECK(heard == (measures ? texts{} : texts{"WARNING: " + unranked("keep_checkpoint_best")}));
  }
}
