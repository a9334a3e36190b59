#include <gradus/cluster/cluster_def.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace gradus;

namespace {

std::vector<std::byte> bytes_of(std::string_view s) {
  const auto* p = reinterpret_cast<const std::byte*>(s.data());
  return {p, p + s.size()};
}
using tasks = cluster_spec::tasks;
using list = std::vector<std::string>;

// Written and read in both forms, it is what it was.
cluster_spec there_and_back(const cluster_spec& c) {
  const cluster_def def = c.as_cluster_def();
  CHECK(cluster_def::from_proto(def.to_proto()) == def);
  CHECK(cluster_def::from_pbtxt(def.to_pbtxt()) == def);
  return cluster_spec(cluster_def::from_proto(def.to_proto()));
}
template <class Error, class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "(nothing was refused)";
}

}  // namespace

TEST_CASE("P1 ClusterDef: one task, two, two jobs, sparse indices") {
  const cluster_spec one{{"local", {"localhost:2222"}}};
  const std::string text_of_one =
      "job {\n  name: \"local\"\n  tasks {\n    key: 0\n    value: \"localhost:2222\"\n  }\n}\n";
  CHECK(one.as_cluster_def().to_pbtxt() == text_of_one);
  CHECK(cluster_spec(cluster_def::from_pbtxt(text_of_one)) == one);
  // Field 1 of ClusterDef (27 bytes): field 1 of JobDef, "local"; field 2, an entry of 18 bytes: key 0, the address.
  const std::string wire_of_one =
      std::string("\x0a\x1b\x0a\x05") + "local" + std::string("\x12\x12\x08\x00\x12\x0e", 6) + "localhost:2222";
  CHECK(one.as_cluster_def().to_proto() == bytes_of(wire_of_one));
  CHECK(there_and_back(one) == one);

  const cluster_spec two{{"local", {"localhost:2222", "localhost:2223"}}};
  CHECK(there_and_back(two) == two);
  const cluster_spec jobs{{"local", {"localhost:2222"}}, {"remote", {"h:1", "h:2", "h:3"}}};
  CHECK(there_and_back(jobs) == jobs);
  const cluster_def sorted = cluster_spec{{"worker", {"h:1"}}, {"ps", {"h:2"}}}.as_cluster_def();
  CHECK((sorted.job.size() == 2 && sorted.job[0].name == "ps" && sorted.job[1].name == "worker"));
  const cluster_spec sparse{{"local", {{0, "a:1"}, {7, "b:2"}, {200, "c:3"}}}};
  CHECK(there_and_back(sparse) == sparse);
  CHECK(cluster_spec(cluster_def::from_pbtxt("job { name: 'local' tasks { key: 7 value: 'b:2' } "
                                             "tasks { value: 'a:1' } tasks: { key: 200, value: 'c:3' } }")) == sparse);
  // An entry without its fields is task 0 at no address, as in protobuf; no cluster has that.
  CHECK(cluster_def::from_proto(bytes_of(std::string("\x0a\x05\x0a\x01\x61\x12\x00", 7))) ==
        cluster_def{.job = {{"a", {{0, ""}}}}});
}

TEST_CASE("P1 equality and inequality, by names and by addresses") {
  const cluster_spec a{{"job1", {"host1:1", "host2:2"}}, {"job2", {"host1:1", "host2:2"}}};
  CHECK(a == cluster_spec{{"job2", {"host1:1", "host2:2"}}, {"job1", {"host1:1", "host2:2"}}});
  CHECK(a == cluster_spec{{"job1", {{1, "host2:2"}, {0, "host1:1"}}}, {"job2", {"host1:1", "host2:2"}}});
  CHECK(a == cluster_spec(a.as_cluster_def()));
  CHECK(a == cluster_spec(a.as_dict()));
  CHECK_FALSE(a == cluster_spec{{"job1", {"host1:1", "host2:2"}}, {"job3", {"host1:1", "host2:2"}}});
  CHECK_FALSE(a == cluster_spec{{"job1", {"host1:1", "host2:3"}}, {"job2", {"host1:1", "host2:2"}}});
  CHECK_FALSE(a == cluster_spec{{"job1", {"host1:1", "host2:2"}}});
  CHECK_FALSE(a == cluster_spec{{"job1", {"host2:2", "host1:1"}}, {"job2", {"host1:1", "host2:2"}}});
  // The definition sorts jobs by their names, so those of equal clusters are equal.
  CHECK(a.as_cluster_def() ==
        cluster_spec{{"job2", {"host1:1", "host2:2"}}, {"job1", {"host1:1", "host2:2"}}}.as_cluster_def());
}

TEST_CASE("P2 as_dict: a dense job is a list, a sparse one a map, one without tasks an empty map") {
  const cluster_spec c{{"ps", {"ps0:2222", "ps1:2222"}}, {"worker", {{1, "w1:2222"}, {3, "w3:2222"}}}, {"none", {}}};
  const cluster_spec::dict d = c.as_dict();
  CHECK(d.size() == 3);
  CHECK(std::get<list>(d.at("ps")) == list{"ps0:2222", "ps1:2222"});
  CHECK(std::get<tasks>(d.at("worker")) == tasks{{1, "w1:2222"}, {3, "w3:2222"}});
  CHECK(std::get<tasks>(d.at("none")).empty());
  CHECK(std::get<list>(cluster_spec{{"a", {{0, "x:1"}, {1, "y:1"}}}}.as_dict().at("a")) == list{"x:1", "y:1"});
  CHECK(cluster_spec(d) == c);
}

TEST_CASE("ServerDef: bytes and text, with a session's settings") {
  const server_def def{.cluster = {{"worker", {"w0:1", "w1:1"}}},
                       .job_name = "worker",
                       .task_index = 1,
                       .protocol = "grpc",
                       .default_session_config = {.allow_soft_placement = true,
                                                  .device_filters = {"/job:ps", "/job:worker/task:1"},
                                                  .isolate_session_state = true}};
  CHECK(server_def_from_proto(to_proto(def)) == def);
  CHECK(server_def_from_pbtxt(to_pbtxt(def)) == def);
  CHECK(
      to_pbtxt(def) ==
      "cluster {\n  job {\n    name: \"worker\"\n    tasks {\n      key: 0\n      value: \"w0:1\"\n    }\n    tasks {\n"
      "      key: 1\n      value: \"w1:1\"\n    }\n  }\n}\njob_name: \"worker\"\ntask_index: 1\n"
      "default_session_config {\n  device_filters: \"/job:ps\"\n  device_filters: \"/job:worker/task:1\"\n"
      "  allow_soft_placement: true\n  isolate_session_state: true\n}\nprotocol: \"grpc\"\n");
  // cluster { job { name: "a" tasks { key: 0 value: "b" } } } job_name: "a" task_index: 1
  // default_session_config { device_filters: "c" allow_soft_placement: true isolate_session_state: true } protocol: "d"
  const std::string wire_of_it(
      "\x0a\x0c\x0a\x0a\x0a\x01"
      "a\x12\x05\x08\x00\x12\x01"
      "b\x12\x01"
      "a\x18\x01\x22\x07\x22\x01"
      "c\x38\x01\x78\x01\x2a\x01"
      "d",
      31);
  const server_def small{
      .cluster = {{"a", {"b"}}},
      .job_name = "a",
      .task_index = 1,
      .protocol = "d",
      .default_session_config = {.allow_soft_placement = true, .device_filters = {"c"}, .isolate_session_state = true}};
  CHECK(to_proto(small) == bytes_of(wire_of_it));
  CHECK(server_def_from_proto(bytes_of(wire_of_it)) == small);
  CHECK(server_def_from_proto({}).task_index == 0);
  CHECK(server_def_from_pbtxt("").task_index == 0);
  CHECK(server_def_from_pbtxt("port: 5 job_name: \"x\" cluster_device_filters { jobs { name: 'y' } }").job_name == "x");
}

TEST_CASE("ClusterDef and ServerDef from outside") {
  CHECK(refusal<data_loss>([] { cluster_def::from_proto(bytes_of("\x0a\xff")); }) != "(nothing was refused)");
  CHECK(refusal<data_loss>([] { cluster_def::from_pbtxt("job { name: \"a\" "); }) != "(nothing was refused)");
  CHECK(refusal<data_loss>([] { cluster_def::from_pbtxt("job: 5"); }).find("expected a message") != std::string::npos);
  CHECK(refusal<invalid_argument>([] {
          cluster_def::from_pbtxt("job { tasks { key: 1048576 value: 'a' } }");
        }).find("from 0 to 1048575, got 1048576") != std::string::npos);
  CHECK(refusal<invalid_argument>([] {
          cluster_def::from_pbtxt("job { tasks { key: -1 value: 'a' } }");
        }).find("got -1") != std::string::npos);
  CHECK(refusal<invalid_argument>([] { server_def_from_pbtxt("task_index: 1099511627776"); }).find("from 0 to") !=
        std::string::npos);
  CHECK(refusal<invalid_argument>([] {
          cluster_spec(cluster_def{.job = {{"a", {{0, ""}}}}});
        }).find("has no address for task 0") != std::string::npos);
  CHECK(refusal<invalid_argument>([] {
          cluster_spec(cluster_def{.job = {{"a", {}}, {"a", {}}}});
        }).find("is given twice") != std::string::npos);
  CHECK(refusal<invalid_argument>([] {
          cluster_spec(cluster_def{.job = {{"", {}}}});
        }).find("has no name") != std::string::npos);
}
