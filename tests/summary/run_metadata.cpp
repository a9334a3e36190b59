#include <gradus/store/wire.hpp>
#include <gradus/summary/run_metadata.hpp>

#include <doctest/doctest.h>

#include <map>

using namespace gradus;

namespace {
// As run/profile.hpp's, as far as it is read here.
struct profile {
  struct event {
    int call, part, parts, thread;
    double start, end;
  };
  struct line {
    std::string op, name;
  };
  std::vector<event> events() const { return {{1, 0, 2, 0, 0.001, 0.0015}, {1, 1, 2, 1, 0.001, 0.0020004}}; }
  std::vector<line> lines() const { return {{"A", "a"}, {"MatMul", "s/m"}}; }
};
}  // namespace

TEST_CASE("what a profile saw, as RunMetadata") {
  std::vector<std::byte> bytes;
  encode_run_metadata(bytes, to_step_times(profile{}, 1'700'000'000));
  std::string device;
  std::vector<std::map<unsigned, std::int64_t>> numbers;
  std::vector<std::string> names, labels;
  for (wire_reader r(bytes); r.next();) {
    REQUIRE(r.number() == 1);
    for (wire_reader stats = r.message(); stats.next();)
      for (wire_reader dev = stats.message(); dev.next();)
        if (dev.number() == 1) {
          device = dev.string();
        } else {
          numbers.emplace_back();
          for (wire_reader node = dev.message(); node.next();)
            if (node.number() == 1)
              names.emplace_back(node.string());
            else if (node.number() == 8)
              labels.emplace_back(node.string());
            else
              numbers.back()[node.number()] = node.integer();
        }
  }
  CHECK(device == "/job:localhost/replica:0/task:0/device:CPU:0");
  CHECK(names == std::vector<std::string>{"s/m", "s/m"});
  CHECK(labels[0] == "s/m = MatMul()");
  REQUIRE(numbers.size() == 2);
  CHECK(numbers[0] == std::map<unsigned, std::int64_t>{{2, 1'700'000'000'001'000},
                                                       {4, 500},
                                                       {5, 500},
                                                       {9, 1'700'000'000'001'000},
                                                       {13, 1'700'000'000'001'000'000},
                                                       {15, 500'000},
                                                       {16, 500'000},
                                                       {17, 1'700'000'000'001'000'000}});
  CHECK(numbers[1][10] == 1);
  CHECK(numbers[1][15] == 1'000'400);
}

TEST_CASE("the names of calls may be given") {
  const std::vector<std::string> given{"x", "y"};
  CHECK(to_step_times(profile{}).nodes[0].name == "s/m");
  CHECK(to_step_times(profile{}, 0, given).nodes[0].name == "y");
}
