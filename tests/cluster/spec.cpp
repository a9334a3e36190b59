#include <gradus/cluster/spec.hpp>

#include <doctest/doctest.h>

using namespace gradus;

namespace {
using names = std::vector<std::string>;
using numbers = std::vector<int>;
}  // namespace

TEST_CASE("cluster_spec: dense jobs") {
  const cluster_spec c{{"worker", {"w0:2222", "w1:2222", "w2:2222"}}, {"ps", {"p0:2222", "p1:2222"}}};
  CHECK(c.jobs() == names{"worker", "ps"});  // in the order of their mention
  CHECK(c.num_tasks("worker") == 3);
  CHECK(c.task_indices("ps") == numbers{0, 1});
  CHECK(c.task_address("worker", 2) == "w2:2222");
  CHECK(c.is_dense("worker"));
  CHECK(c.has("ps"));
  CHECK_FALSE(c.has("chief"));
  CHECK(bool(c));
  CHECK_FALSE(bool(cluster_spec{}));
  CHECK(c.job("ps") == cluster_spec::tasks{{0, "p0:2222"}, {1, "p1:2222"}});
}

TEST_CASE("cluster_spec: sparse jobs, and jobs without tasks") {
  const cluster_spec c{{"worker", {{1, "a:1"}}}, {"ps", {{7, "b:1"}, {3, "c:1"}}}, {"idle", {}}};
  CHECK(c.num_tasks("worker") == 1);
  CHECK(c.task_indices("worker") == numbers{1});
  CHECK_FALSE(c.is_dense("worker"));
  CHECK(c.task_indices("ps") == numbers{3, 7});
  CHECK(c.task_address("ps", 3) == "c:1");
  CHECK(c.num_tasks("idle") == 0);
  CHECK(c.is_dense("idle"));
}

TEST_CASE("cluster_spec: one job with one or two tasks is not mistaken for something else") {
  const cluster_spec one{{"local", {"localhost:0"}}}, two{{"ps", {"p0:1", "p1:1"}}};
  CHECK(one.num_tasks("local") == 1);
  CHECK(two.task_address("ps", 1) == "p1:1");
}

TEST_CASE("cluster_spec: equal however written; from a vector too") {
  const cluster_spec dense{{"worker", {"a:1", "b:1"}}, {"ps", {"c:1"}}};
  const cluster_spec sparse{{"ps", {{0, "c:1"}}}, {"worker", {{1, "b:1"}, {0, "a:1"}}}};
  CHECK(dense == sparse);
  CHECK(sparse.is_dense("worker"));
  CHECK(dense == cluster_spec(std::vector<job_tasks>{{"ps", {"c:1"}}, {"worker", {"a:1", "b:1"}}}));
  CHECK_FALSE(dense == cluster_spec{{"worker", {"a:1", "b:1"}}});
  CHECK_FALSE(dense == cluster_spec{{"worker", {"a:1", "x:1"}}, {"ps", {"c:1"}}});
  CHECK_FALSE(dense == cluster_spec{{"worker", {"a:1", "b:1"}}, {"p", {"c:1"}}});
}

TEST_CASE("cluster_spec: refusals") {
  const cluster_spec c{{"worker", {{1, "a:1"}}}, {"idle", {}}};
  CHECK_THROWS_WITH_AS(c.num_tasks("ps"), "the cluster has no job \"ps\"; it has worker, idle", not_found);
  CHECK_THROWS_WITH_AS(cluster_spec{}.task_indices("ps"), "the cluster has no job \"ps\"; it has none", not_found);
  CHECK_THROWS_WITH_AS(c.task_address("worker", 0), "the cluster's job \"worker\" has no task 0; it has 1", not_found);
  CHECK_THROWS_AS(c.task_address("idle", 0), not_found);
  CHECK_THROWS_WITH_AS((cluster_spec{{"ps", {"a:1"}}, {"ps", {"b:1"}}}), "cluster: the job \"ps\" is given twice",
                       invalid_argument);
  CHECK_THROWS_WITH_AS((cluster_spec{{"ps", {{1, "a:1"}, {1, "b:1"}}}}), "cluster: the job \"ps\" has task 1 twice",
                       invalid_argument);
  CHECK_THROWS_WITH_AS((cluster_spec{{"ps", {"a:1", ""}}}), "cluster: the job \"ps\" has no address for task 1",
                       invalid_argument);
  CHECK_THROWS_WITH_AS((cluster_spec{{"ps", {task_address("a:1"), task_address(1, "b:1")}}}),
                       doctest::Contains("give all or none"), invalid_argument);
  CHECK_THROWS_AS(task_address(-1, "a:1"), invalid_argument);
  for (const char* name : {"", "1ps", "p s", "ps/task:0", "_ps"}) {
    CAPTURE(name);
    CHECK_THROWS_WITH_AS((cluster_spec{{name, {"a:1"}}}), doctest::Contains("has no name that a device can carry"),
                         invalid_argument);
  }
}

TEST_CASE("server_def: what is left out is filled in where that takes no guess") {
  const cluster_spec one_task{{"ps", {{5, "p5:1"}}}, {"worker", {"w0:1", "w1:1"}}};
  CHECK(resolve({.cluster = {{"ps", {{5, "p5:1"}}}}}).task_index == 5);  // the only one, whatever its number
  CHECK(resolve({.cluster = {{"ps", {{5, "p5:1"}}}}}).job_name == "ps");
  CHECK(resolve({.cluster = one_task, .job_name = "ps"}).task_index == 5);
  CHECK(resolve({.cluster = one_task, .job_name = "worker", .task_index = 1}).task_index == 1);

  CHECK_THROWS_WITH_AS(resolve({}), doctest::Contains("found none"), invalid_argument);
  CHECK_THROWS_WITH_AS(resolve({.cluster = one_task}),
                       "the cluster has 2 jobs; say by job_name which this server is of", invalid_argument);
  CHECK_THROWS_WITH_AS(resolve({.cluster = one_task, .job_name = "worker"}),
                       "the job \"worker\" has 2 tasks; say by task_index which this server is", invalid_argument);
  CHECK_THROWS_AS(resolve({.cluster = one_task, .job_name = "chief"}), not_found);
  CHECK_THROWS_AS(resolve({.cluster = one_task, .job_name = "ps", .task_index = 0}), not_found);
}

TEST_CASE("cluster_spec: from maps") {
  const std::map<std::string, std::vector<std::string>> dense{{"ps", {"a:1", "b:1"}}, {"worker", {"c:1"}}};
  CHECK(cluster_spec(dense) == cluster_spec{{"ps", {"a:1", "b:1"}}, {"worker", {"c:1"}}});
  const std::map<std::string, cluster_spec::tasks> sparse{{"ps", {{0, "a:1"}, {1, "b:1"}}}, {"worker", {{5, "c:1"}}}};
  CHECK(cluster_spec(sparse) == cluster_spec{{"ps", {"a:1", "b:1"}}, {"worker", {{5, "c:1"}}}});
  const cluster_spec::dict mixed{{"ps", std::vector<std::string>{"a:1"}}, {"worker", cluster_spec::tasks{{1, "c:1"}}}};
  CHECK(cluster_spec(mixed) == cluster_spec{{"ps", {"a:1"}}, {"worker", {{1, "c:1"}}}});
  CHECK(cluster_spec(std::map<std::string, std::vector<std::string>>{}) == cluster_spec{});
  CHECK_THROWS_AS((cluster_spec(std::map<std::string, cluster_spec::tasks>{{"ps", {{-1, "a:1"}}}})), invalid_argument);
}

TEST_CASE("cluster_spec: a sparse job {1: a} has one task, index 1, and a list with a hole") {
  const cluster_spec c{{"worker", {{1, "a:1"}}}, {"dense", {"b:1", "c:1"}}, {"idle", {}}};
  CHECK(c.num_tasks("worker") == 1);
  CHECK(c.task_indices("worker") == numbers{1});
  const auto holes = c.job_tasks("worker");
  REQUIRE(holes.size() == 2);
  CHECK(!holes[0].has_value());
  CHECK((holes[1].has_value() && holes[1].value() == "a:1"));
  CHECK(c.job_tasks("dense").size() == 2);
  CHECK(c.job_tasks("dense")[0].value() == "b:1");
  CHECK(c.job_tasks("idle").empty());
  CHECK_THROWS_AS(c.job_tasks("unknown"), not_found);
  CHECK_THROWS_AS(task_address(max_task_index + 1, "a:1"), invalid_argument);
}
