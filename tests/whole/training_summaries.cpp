// What a trainer and a supervisor write of a model that shows more than scalars.
#include <gradus/gradus.hpp>
#include <gradus/summary/image.hpp>
#include <gradus/testing/clock.hpp>
#include <gradus/testing/faulty_files.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/supervisor.hpp>

#include <doctest/doctest.h>

#include "../train/run_files.hpp"

using namespace gradus;
using gradus::testing::faulty_files;
using gradus::testing::hand_clock;

namespace {

// Its logarithm is a number while x is above 0; its loss always is.
inline constexpr auto with_logarithm = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 1});
  const auto guess = dense(x, {.units = 1, .name = "line", .kernel_initializer = ones});
  g.summary_histogram("logarithms", log(x));
  g.summary_image("inputs", reshape(x, {batch, 1, 1, 1}));
  g.summary_audio("sound", x, 8000);
  return model_spec{.loss = reduce_mean(square(guess))};
};
const std::vector<float> fine{1, 2, 3, 4, 5, 6}, at_the_fifth{1, 2, 3, 4, -1, 6};
auto one_by_one(const std::vector<float>& x) { return from_spans("x", x, extents{1}).repeat().batch(1); }

struct said_lines {
  using policy_for = kind::log_sink;
  std::vector<std::string>* lines;
  void line(std::string_view s) { lines->emplace_back(s); }
  void step(const progress_report&, bool) {}
};

using steps_seen = std::vector<std::int64_t>;
const char* const shown_tags[] = {"logarithms", "inputs/image/0", "sound/audio/0", "loss"};

}  // namespace

TEST_CASE("a trainer writes what the model shows, with its scalars, in both forms") {
  const auto look = [](auto&& make) {
    const faulty_files files;
    auto trainer = make(gradient_descent{.rate = 0.001}, hand_clock{}, files,
                        run_config{.model_dir = "run", .save_summary_steps = 3});
    trainer.train(one_by_one(fine), {.max_steps = 7});
    const auto log = run_files::read_curves(files, "run");
    for (const char* tag : shown_tags) CHECK_MESSAGE((run_files::steps_of(log, tag) == steps_seen{1, 3, 6}), tag);
  };
  look([](const auto&... policies) { return make_trainer<with_logarithm>(policies...); });
  look([](const auto&... policies) { return make_trainer(with_logarithm, policies...); });
}

TEST_CASE("NaN in a histogram ends a run as TensorFlow's op does; the next goes on from the newest checkpoint") {
  const faulty_files files;
  std::vector<std::string> lines;
  auto trainer = make_trainer(with_logarithm, gradient_descent{.rate = 0.001}, hand_clock{}, files, said_lines{&lines},
                              run_config{.model_dir = "run", .save_summary_steps = 1, .save_checkpoints_steps = 2});
  CHECK_THROWS_WITH_AS(trainer.train(one_by_one(at_the_fifth), {.max_steps = 20}),
                       doctest::Contains("Nan in summary histogram for: logarithms"), invalid_argument);
  CHECK(run_files::newest_checkpoint(files, "run").step == 4);
  CHECK((run_files::steps_of(run_files::read_curves(files, "run"), "loss") == steps_seen{1, 2, 3, 4}));

  trainer.train(one_by_one(fine), {.max_steps = 6});
  CHECK(lines.back() == "restored step 4 from run/model-4.ckpt");
  for (const char* tag : shown_tags)
    CHECK((run_files::steps_of(run_files::read_curves(files, "run"), tag) == steps_seen{1, 2, 3, 4, 5, 6}));
}

TEST_CASE("run_config's summaries: a queue, and how often it writes") {
  const testing::temp_dir dir;
  auto trainer = make_trainer(
      with_logarithm, gradient_descent{.rate = 0.001},
      run_config{.model_dir = dir.path(),
                 .save_summary_steps = 1,
                 .summaries = {.flush_secs = 0, .max_queue = 3, .when_full = full_queue::block, .hostname = "here"}});
  trainer.train(one_by_one(fine), {.max_steps = 50});
  const auto log = run_files::read_curves(posix{}, dir.path());
  for (const char* tag : shown_tags) CHECK(run_files::steps_of(log, tag).size() == 50);
  std::vector<std::string> names;
  REQUIRE(posix{}.list(dir.path(), names) == 0);
  int of_this_host = 0;
  for (const auto& name : names) of_this_host += name.ends_with(".here") ? 1 : 0;
  CHECK(of_this_host == 1);
}

TEST_CASE("a supervisor writes the same; by itself, or where the program says") {
  const testing::temp_dir dir;
  auto data = one_by_one(fine);
  {
    auto sv = make_supervisor(with_logarithm, {.logdir = dir / "own"}, gradient_descent{.rate = 0.001});
    auto sess = sv.managed_session("", data);
    for (int i = 0; i < 3; ++i) sess.run();
  }
  const auto own = run_files::read_curves(posix{}, dir / "own");
  for (const char* tag : shown_tags) CHECK_MESSAGE((run_files::steps_of(own, tag) == steps_seen{1}), tag);
  {
    auto sv =
        make_supervisor(with_logarithm, {.logdir = dir / "said", .summary_op = none}, gradient_descent{.rate = 0.001});
    auto sess = sv.managed_session("", data);
    CHECK(sess.merged_summary().empty());
    for (int i = 0; i < 3; ++i) sess.run();
    sv.summary_computed(sess, sess.merged_summary());
    sv.summary_writer().add_scalar("mine", 1, 7);
  }
  const auto said = run_files::read_curves(posix{}, dir / "said");
  for (const char* tag : shown_tags) CHECK_MESSAGE((run_files::steps_of(said, tag) == steps_seen{3}), tag);
  CHECK((run_files::steps_of(said, "mine") == steps_seen{7}));
}

TEST_CASE("a supervisor without a summary_writer has no event file, and still a graph.pbtxt and checkpoints") {
  const testing::temp_dir dir;
  auto data = one_by_one(fine);
  auto sv =
      make_supervisor(with_logarithm, {.logdir = dir.path(), .summary_writer = none}, gradient_descent{.rate = 0.001});
  {
    auto sess = sv.managed_session("", data);
    sess.run();
    CHECK_THROWS_WITH_AS(sv.summary_writer(),
                         "no event file: it takes a chief, a logdir, a summary_writer and a session",
                         failed_precondition);
  }
  CHECK(run_files::newest_checkpoint(posix{}, dir.path()).step == 1);
  std::vector<std::string> names;
  REQUIRE(posix{}.list(dir.path(), names) == 0);
  CHECK(std::find(names.begin(), names.end(), "graph.pbtxt") != names.end());
  for (const auto& name : names) CHECK(name.find("tfevents") == std::string::npos);
}
