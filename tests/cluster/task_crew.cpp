// The tasks of a cluster in one process: all run, the first error is thrown, and the end is told.
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
              failures.push_back(text(who, ": ", error_text(e)));
            },
            [this] { ++ends; }};
  }
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
  CHECK(error_text(std::make_exception_ptr(7)) == "an error that is no std::exception");
  CHECK(message_of(status::invalid_argument, [&] { (void)l.crew(0, 2, {}).spec(); }) ==
        "crew: expected one ps and one worker or more, found 0 and 2");
}
