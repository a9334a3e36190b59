#include <gradus/train/supervised_session.hpp>

#include <array>
#include <cmath>

#include "../session/turned_clock.hpp"
#include "supervised.hpp"

using namespace supervised;

TEST_CASE("a step by hand, on arrays of the program's; what does not fit is refused and changes nothing") {
  auto sv = make_supervisor<line>({}, descent);
  auto sess = sv.managed_session();
  CHECK(std::isnan(sess.loss()));
  CHECK(sess.summary().empty());
  sess.run({{"x", std::array{1.0f, 3.0f}}, {"y", std::array{2.0f, 4.0f}}});
  CHECK(sess.loss() == 1);                                       // mean of (1 - 2)^2, (3 - 4)^2
  CHECK(weight(sess) == doctest::Approx(1.04));                  // dL/dw = mean of 2 (-1) 1, 2 (-1) 3 = -4
  sess.run({{"x", std::array{1.0f}}, {"y", std::array{2.0f}}});  // another batch size
  const float w = weight(sess);

  const std::array one{1.0f};
  const std::array two{1.0f, 2.0f};
  const std::array<double, 1> wide{1};
  CHECK_THROWS_WITH_AS(sess.run({{"x", one}}), "placeholder \"y\" is needed and was not fed: give {\"y\", data}",
                       invalid_argument);
  CHECK_THROWS_WITH_AS(sess.run({{"x", one}, {"y", one}, {"z", one}}),
                       "feed \"z\": the model has no placeholder of this name; it has \"x\", \"y\"", not_found);
  CHECK_THROWS_WITH_AS(sess.run({{"x", one}, {"y", one}, {"x", one}}), "feed \"x\" is given twice; give it once",
                       invalid_argument);
  CHECK_THROWS_WITH_AS(sess.run({{"x", one}, {"y", two}}),
                       "feed \"y\" holds 2 examples, another feed 1; feed as many of each", invalid_argument);
  CHECK_THROWS_WITH_AS(sess.run({{"x", one}, {"y", wide}}),
                       "feed \"y\": expected float32, got float64; feed float32 values", invalid_argument);
  CHECK_THROWS_WITH_AS(sess.run({{"x", std::span<const float>()}, {"y", std::span<const float>()}}),
                       "the feeds hold no examples: \"x\" is empty; feed one or more", invalid_argument);
  CHECK(weight(sess) == w);
  CHECK(sess.global_step() == 2);
  CHECK_FALSE(sv.should_stop());
  CHECK_THROWS_AS(sess.save(), failed_precondition);
  CHECK_THROWS_WITH_AS(sv.summary_computed(sess, sess.summary()), doctest::Contains("no event file"),
                       failed_precondition);
}

TEST_CASE("the first error of any thread comes out where the scope ends, and nothing is saved then") {
  const turned_clock clock;
  const testing::temp_dir dir;
  const points data;
  auto input = data.batches(-1);
  auto sv = make_supervisor<line>({.logdir = dir / "run"}, descent, clock);
  const auto session = [&](auto body) {
    auto sess = sv.managed_session("", input);
    body(sess);
  };
  // Of a looper, which stops the loop of the main thread.
  CHECK_THROWS_WITH_AS(session([&](auto& sess) {
                         sess.run();
                         sv.loop(1, [] { raise(status::resource_exhausted, "no memory for that"); });
                         sv.wait_for_stop();
                       }),
                       "no memory for that", resource_exhausted);
  CHECK(newest_step(dir / "run") == 0);
  CHECK(session_log_of(dir / "run") == log_of_sessions{"START 0", "CHECKPOINT 0", "STOP 1"});

  // Of the body: in the supervisor's hands, or passing through.
  CHECK_THROWS_WITH_AS(session([&](auto& sess) {
                         sv.stop_on_exception([&] {
                           sess.run();
                           raise(status::aborted, "restarted");
                         });
                         CHECK(sv.should_stop());
                       }),
                       "restarted", aborted);
  CHECK_THROWS_WITH_AS(session([&](auto& sess) {
                         sess.run();
                         sv.loop(1, [&] { sv.wait_for_stop(); });
                         raise(status::internal, "passing through");
                       }),
                       "passing through", internal);
  CHECK(newest_step(dir / "run") == 0);

  // The end of input is an end, also of a looper's.
  CHECK_NOTHROW(session([&](auto& sess) {
    sess.run();
    sv.stop_on_exception([] { raise(status::out_of_range, "no more"); });
    CHECK(sv.should_stop());
  }));
  CHECK(newest_step(dir / "run") == 1);

  // Told once: by stop(), and not again by the scope.
  CHECK_NOTHROW(session([&](auto& sess) {
    sv.request_stop(unavailable("gone"));
    CHECK_THROWS_AS(sv.stop(), unavailable);
    sv.stop();
    CHECK_THROWS_WITH_AS(sess.run(), doctest::Contains("the supervisor has stopped"), failed_precondition);
  }));
}
