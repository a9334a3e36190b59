// The tasks of a cluster in one process: all run, the first error is thrown, and the end is told.
#include <gradus/cluster/message_network.hpp>
#include <gradus/cluster/task_crew.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "../message.hpp"

using namespace gradus;
using namespace gradus::detail;

namespace {
struct crew_log {
  std::mutex mutex;
  std::vector<std::string> ran, failures;
  int ends = 0;

  task_crew crew(int ps, int workers, std::function<void(const std::string&, int)> task) {
    return {"crew",
            ps,
            workers,
            [this, task](const std::string& job, int index) {
              {
                const std::lock_guard lock(mutex);
                ran.push_back(text(job, " ", index));
              }
              task(job, index);
            },
            [this](const std::exception_ptr& e, const std::string& who) {
              failures.push_back(text(who, ": ", words_of(e)));
            },
            [this] { ++ends; }};
  }
};
struct no_network final : message_network {
  no_network() : message_network({}, {}) {}
  mailbox& inbox(std::uint32_t) override { std::terminate(); }
  void post(const protocol_message&) override {}
  void withdraw(std::uint32_t) override {}
  void end() override {}
  void check(const std::string&) const override {}
  membership_options members() const override { return {}; }
  worker_options patience(worker_options o) const override { return o; }
};
}  // namespace

TEST_CASE("each task runs once, and the last worker's end is told") {
  crew_log l;
  const task_crew crew = l.crew(2, 3, [](const std::string&, int) {});
  crew.run({});
  std::sort(l.ran.begin(), l.ran.end());
  CHECK(l.ran == std::vector<std::string>{"ps 0", "ps 1", "worker 0", "worker 1", "worker 2"});
  CHECK(l.failures.empty());
  CHECK(l.ends == 1);
  CHECK(crew.spec() == cluster_spec{{"ps", {"ps0:0", "ps1:0"}}, {"worker", {"worker0:0", "worker1:0", "worker2:0"}}});
}

TEST_CASE("a task's error is told with its name, ends the cluster, and is thrown") {
  crew_log l;
  const task_crew crew = l.crew(1, 2, [](const std::string& job, int) {
    if (job == "ps") throw std::runtime_error("it broke");
  });
  CHECK_THROWS_WITH_AS(crew.run({}), "it broke", std::runtime_error);
  CHECK(l.failures == std::vector<std::string>{"ps 0: it broke"});
  CHECK(l.ends >= 1);
  CHECK(words_of(std::make_exception_ptr(7)) == "an error that is no std::exception");
  CHECK(message_of(status::invalid_argument, [&] { (void)l.crew(0, 2, {}).spec(); }) ==
        "crew: expected one ps and one worker or more, found 0 and 2");
}

TEST_CASE("the first program is what all serve; another is refused, and after the end nobody waits for one") {
  no_network network;
  offered_program offered{task_system()};
  std::uint32_t served = 0;
  const auto program = [&](const char* rule) {
    shard_program p;
    p.of.rule = rule;
    p.serve = [&](message_network&, std::uint32_t shard) { served = shard; };
    return p;
  };
  {
    auto waits = task_system().start("a ps", "none", [&] { offered.serve(network, 3); });
    offered.offer(program("adam"), "worker 0");
  }
  CHECK(served == 3);
  offered.offer(program("adam"), "worker 1");
  const std::string said = message_of(status::failed_precondition, [&] { offered.offer(program("sgd"), "worker 2"); });
  CHECK(says(said, "worker 0"));
  CHECK(says(said, "worker 2"));
  offered_program ended{task_system()};
  ended.end();
  ended.serve(network, 1);
  CHECK(served == 3);
}
