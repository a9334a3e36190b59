// costs: 30
// A profile tells where a step's time goes: every call once a step, times from the clock it is given, a table to read.
#include "models.hpp"

#include <gradus/run/profile.hpp>

#include <doctest/doctest.h>

using namespace run_test;

namespace {
// Goes on by a millisecond at every look.
struct ticking {
  static inline std::atomic<int> looks{0};
  static double now() { return 1e-3 * looks++; }
};
using plain = decltype(composed{adam{}});
template <bool Reuse>
using interpreted = interpreted_model<cpu<fast>, ops<>, gating::op, false, Reuse>;
}  // namespace

TEST_CASE("one thread: every call, in order, by the clock") {
  using stepping = stepper<interpreted<true>, plain, cpu<fast>>;
  stepping s(interpreted<true>{mlp}, plain{adam{}});
  s.allocate();
  s.initialize(1);
  fill<stepping, mode::train>(s, 5, 1);
  const runnable& r = s.graph<mode::train>();
  ticking::looks = 0;
  basic_profile<ticking> p(s);
  for (int i = 0; i < 3; ++i) s.train_step(p);
  CHECK(s.global_step() == 3);
  CHECK(p.steps() == 3);
  const auto events = p.events();
  const auto calls = static_cast<std::size_t>(r.program.call_count);
  REQUIRE(events.size() == 3 * calls);
  for (std::size_t i = 0; i < events.size(); ++i) {
    CHECK(events[i].call == static_cast<int>(i % calls));
    CHECK(events[i].thread == 0);
    CHECK(events[i].start == doctest::Approx(1e-3 * static_cast<double>(2 * i + 1)));
    CHECK(events[i].end == doctest::Approx(1e-3 * static_cast<double>(2 * i + 2)));
  }
  const auto lines = p.lines();
  REQUIRE(lines.size() == calls);
  bool update = false, product = false;
  for (const auto& l : lines) {
    CHECK(l.seconds == doctest::Approx(1e-3));
    update = update || (l.op == "Apply" && l.name == "hidden/kernel");
    product = product || l.flops == 2.0 * 5 * 13 * 16;
  }
  CHECK(update);
  CHECK(product);
  const std::string table = p.table(3);
  CHECK(table.find("GFLOP/s") != std::string::npos);
  CHECK(table.find(text("in all ", calls, "000.00 us a step, ", calls, " calls, 3 steps")) != std::string::npos);
  CHECK(table.find(text("and ", calls - 3, " more")) != std::string::npos);
}

TEST_CASE("threads: every part, on its thread, and the same bits") {
  using stepping = stepper<interpreted<false>, plain, cpu<fast>, threads>;
  const threads all{.count = 3, .division = {.part_ns = 0, .worth = 1e9}};
  stepping s(interpreted<false>{mlp}, plain{adam{}}, all), other(interpreted<false>{mlp}, plain{adam{}}, all);
  for (stepping* one : {&s, &other}) {
    one->allocate();
    one->initialize(1);
    fill<stepping, mode::train>(*one, 5, 1);
  }
  step_profile p(s);
  for (int i = 0; i < 3; ++i) s.train_step(p), other.train_step();
  for (std::size_t i = 0; i < s.variables().size(); ++i) {
    const auto a = s.variables().view(i).bytes(), b = other.variables().view(i).bytes();
    CHECK(std::equal(a.begin(), a.end(), b.begin(), b.end()));
  }
  std::size_t tasks = 0;
  for (const auto& list : s.executor().last()->lists) tasks += list.size();
  const auto events = p.events();
  CHECK(events.size() == 3 * tasks);
  int seen[3] = {};
  for (const auto& e : events) {
    CHECK(e.end >= e.start);
    ++seen[e.thread];
  }
  for (int n : seen) CHECK(n > 0);
  CHECK(p.table().find("x3") != std::string::npos);
}

TEST_CASE("a profile without a step is empty") {
  using stepping = stepper<interpreted<true>, plain, cpu<fast>>;
  stepping s(interpreted<true>{mlp}, plain{adam{}});
  s.allocate();
  s.bound<mode::train>(2);
  const step_profile p(s);
  CHECK(p.events().empty());
  CHECK(p.table().find("in all 0.00 us a step") != std::string::npos);
}
