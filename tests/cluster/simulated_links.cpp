// What all simulated networks share: actions in virtual time, the faults of a link, and the log.
#include <gradus/cluster/simulated_links.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "../message.hpp"

using namespace gradus;
using namespace gradus::detail;

namespace {
struct links final : simulated_links {
  links(const std::shared_ptr<turn_driver>& driver, const simulated_faults& f, std::vector<std::string>* log)
      : simulated_links({"a", "b", "c"}, driver, 5, f, log) {
    plan_cuts_and_stops();
  }
  using simulated_links::at;
  using simulated_links::close;
  using simulated_links::here;
  using simulated_links::is_cut;
  using simulated_links::plan;
  using simulated_links::send;
  using simulated_links::step_secs;
  using simulated_links::wait_until_up;
  bool run_once(const server_def&, std::uint32_t, const std::function<void(server&)>&) override { return true; }
  bool revive(std::uint32_t) override { return false; }
  void end_of_workers() override {}
  void ended() override { ++ends; }
  const std::string& why() const { return why_; }
  int ends = 0;
};
struct net {
  std::shared_ptr<turn_driver> driver = std::make_shared<turn_driver>(1);
  turn_driver::presence here{*driver, "the test"};
  task_system tasks{driver};
  std::vector<std::string> log;
  links all;
  task_handle carrier = tasks.start("the network", "none", [this] { all.carry(); });

  explicit net(const simulated_faults& f) : all(driver, f, &log) {}
  ~net() { all.stop(); }
  int arrivals(int messages) {
    int n = 0;
    for (int i = 0; i < messages; ++i) all.send(0, 1, "a message", [&] { ++n; });
    tasks.sleep(60);
    return n;
  }
};
}  // namespace

TEST_CASE("what is due is made in the order of its time") {
  net n({});
  std::vector<int> made;
  const nanos now = n.driver->time();
  for (const int k : {3, 1, 2}) n.all.at(now + k * 1000 * one_millisecond, [&made, k] { made.push_back(k); });
  n.tasks.sleep(2.5);
  CHECK(made == std::vector<int>{1, 2});
  n.tasks.sleep(1);
  CHECK(made == std::vector<int>{1, 2, 3});
  CHECK(n.driver->time() - now == 3500 * one_millisecond);
}

TEST_CASE("a message arrives once, or twice, or not at all, and the log says which") {
  {
    net right({});
    CHECK(right.arrivals(10) == 10);
    CHECK(right.all.counts().messages == 10);
    CHECK(says(right.log.at(0), "0.000000000 a message; comes at 0.00"));
  }
  {
    net doubled({.doubled = 1});
    CHECK(doubled.arrivals(10) == 20);
    CHECK(doubled.all.counts().doubled == 10);
    CHECK(says(doubled.log.at(0), " and 0.00"));
  }
  {
    net stream({.late = 0.1, .late_secs = 30, .least_delay = 0, .most_delay = 1});
    std::vector<int> came;
    nanos last = at_once;
    for (int i = 0; i < 40; ++i)
      stream.all.send(
          0, 1, "a message", [&came, i] { came.push_back(i); }, &last);
    stream.tasks.sleep(60);
    CHECK(came.size() == 40);
    // Each descent is behind a late one.
    std::uint64_t descents = 0;
    for (std::size_t i = 1; i < came.size(); ++i) descents += came[i] < came[i - 1];
    CHECK(descents > 0);
    CHECK(descents <= 2 * stream.all.counts().late);
  }
  net lost({.lost = 1});
  CHECK(lost.arrivals(10) == 0);
  CHECK(lost.all.counts().lost == 10);
  CHECK(lost.log.at(9) == "0.000000000 a message; lost");
}

TEST_CASE(
    "a cut parts some nodes from the others for its time, a stopped machine gets no turn, and steps take theirs") {
  net n({.least_step = 2, .most_step = 2, .cuts = 20, .stops = 1, .within = 0, .least_outage = 10, .most_outage = 10});
  n.tasks.sleep(1);
  CHECK(n.all.counts().cuts == 20);
  CHECK(n.all.counts().stops == 1);
  CHECK(n.all.step_secs(0) == 2);
  double ran[3] = {};
  std::vector<task_handle> tasks;
  for (std::uint32_t k = 0; k < 3; ++k)
    tasks.push_back(n.tasks.start("a task", "none", [&, k] {
      n.all.arrive(k);
      CHECK(n.all.here() == k);
      n.tasks.sleep(1);
      ran[k] = n.tasks.elapsed();
    }));
  CHECK(n.all.here() == 3);
  n.tasks.sleep(20);
  CHECK(std::count_if(ran, ran + 3, [&](double t) { return t - ran[0] > 7 || t - ran[1] > 7; }) == 1);
  CHECK_FALSE((n.all.is_cut(0, 1) || n.all.is_cut(1, 2)));
}

TEST_CASE("the first reason ends the cluster, once; who waits for a machine is told") {
  net n({});
  bool was_up = true;
  auto waits = n.tasks.start("a task", "none",
                             [&] { was_up = n.all.wait_until_up(n.driver->time() + 1000 * one_millisecond * 60); });
  n.tasks.sleep(1);
  CHECK(n.all.wait_until_up(n.driver->time() + one_millisecond));
  n.all.fail(std::make_exception_ptr(std::runtime_error("it broke")), "worker 1");
  n.all.close("a second reason");
  waits.join();
  CHECK_FALSE(was_up);
  CHECK(n.all.why() == "worker 1 has failed: it broke");
  CHECK(n.all.ends == 1);
  CHECK(n.log == std::vector<std::string>{"1.001000000 the cluster ends: worker 1 has failed: it broke"});
  std::uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a
  for (const char ch : n.log[0]) hash = (hash ^ static_cast<unsigned char>(ch)) * 0x100000001B3u;
  CHECK(n.all.hash() == hash);
}
