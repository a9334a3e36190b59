// Who the tasks of a cluster are, and whom a task talks to.
#include <gradus/cluster/task_hello.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "../message.hpp"

using namespace gradus;
using namespace gradus::detail;

namespace {
const cluster_spec all{{"worker", {"w0:1", "w1:1"}}, {"ps", {"p0:1"}}, {"chief", {"c:1"}}};
cluster_nodes nodes_of(const std::string& job, int index) {
  return cluster_nodes({.cluster = all, .job_name = job, .task_index = index});
}
}  // namespace

TEST_CASE("parameter servers are first, then the chief, then workers") {
  const cluster_nodes n = nodes_of("worker", 0);
  CHECK(n.names == std::vector<std::string>{"ps 0", "chief 0", "worker 0", "worker 1"});
  CHECK(n.me == 2);
  CHECK(n.shards == 1);
  CHECK(n.workers == 3);
  CHECK(n.addresses[n.me] == "w0:1");
  CHECK(n.all == "ps 0 at p0:1, chief 0 at c:1, worker 0 at w0:1, worker 1 at w1:1");
  CHECK(says(message_of(status::not_found, [] { nodes_of("evaluator", 0); }), "the task evaluator 0 is no node"));
}

TEST_CASE("a hello comes back as it was; anything else is refused") {
  const task_hello h{
      .node = 2, .boot = 9, .task = "worker 0", .cluster = "c", .program = "p", .recipe = {std::byte{1}}};
  const task_hello same = read_hello(hello_frame(h));
  CHECK(same.node == 2);
  CHECK(same.boot == 9);
  CHECK(same.task == "worker 0");
  CHECK(same.version == GRADUS_VERSION);
  CHECK(same.recipe == h.recipe);
  auto bad = hello_frame(h);
  bad.back() ^= std::byte{1};
  CHECK_THROWS_AS(read_hello(bad), data_loss);
  CHECK(draw_boot() != draw_boot());
}

TEST_CASE("whom a task talks to: of its version, cluster and names, with a certificate that fits") {
  const cluster_nodes here = nodes_of("ps", 0);
  const task_hello good{.node = 2, .boot = 9, .task = "worker 0", .cluster = here.all};
  check_hello(good, {}, here);
  check_hello(good, {.address = {}, .role = "worker"}, here);
  check_hello(good, {.address = {}, .role = "chief"}, here);
  const auto refused = [&](status kind, const char* words, auto change, const std::string& role = "") {
    task_hello h = good;
    change(h);
    CHECK(says(message_of(kind, [&] { check_hello(h, {.address = {}, .role = role}, here); }), words));
  };
  const auto precondition = status::failed_precondition;
  refused(precondition, "that of worker 0 is 0.0.1", [](auto& h) { h.version = "0.0.1"; });
  refused(precondition, "give all tasks the same TF_CONFIG", [](auto& h) { h.cluster = "another"; });
  refused(precondition, "is none that could", [](auto& h) { h.node = 3; });
  refused(precondition, "is none that could", [](auto& h) { h.node = 99; });
  refused(precondition, "is none that could", [](auto& h) { h.node = 0, h.task = "ps 0"; });
  refused(
      status::permission_denied, "expected \"worker\"", [](auto&) {}, "ps");
  refused(
      status::permission_denied, "expected \"chief\"", [](auto& h) { h.node = 1, h.task = "chief 0"; }, "worker");
}

TEST_CASE("a task says who it is and what it brings; who is dialled answers as itself") {
  const cluster_nodes here = nodes_of("ps", 0), other = nodes_of("worker", 1);
  const task_hello mine = read_hello(own_hello(other, 9, {.program = "p"}));
  CHECK((mine.node == 3 && mine.boot == 9 && mine.task == "worker 1" && mine.cluster == other.all));
  CHECK(mine.program == "p");
  check_hello(mine, {}, here);
  const std::vector<std::byte> answer = own_hello(here, 7);
  CHECK(read_welcome(answer, 0, other).boot == 7);
  CHECK(message_of(status::failed_precondition, [&] { read_welcome(answer, 1, other); }) ==
        "at c:1 answers ps 0; expected chief 0");
  task_hello h = read_hello(answer);
  h.cluster = "another";
  CHECK(message_of(status::failed_precondition, [&] { read_welcome(hello_frame(h), 0, other); }) ==
        "at p0:1 answers ps 0 of another cluster; expected ps 0 of " + other.all);
}
