#include <gradus/base/tasks.hpp>

#include <doctest/doctest.h>

static_assert(gradus::clock<gradus::tasks>);
static_assert(!std::is_copy_constructible_v<gradus::task>);

TEST_CASE("a task calls its body and is waited for when it is destroyed or replaced") {
  const gradus::tasks run;
  int first = 0, second = 0;
  {
    auto task = run.start("a test", "do without", [&] { first = 1; });
    CHECK(task.joinable());
    task = run.start("a test", "do without", [&] { second = 1; });
    CHECK(first == 1);
  }
  CHECK(second == 1);
  CHECK(!gradus::task().joinable());
}
