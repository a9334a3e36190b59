#include <gradus/input/window.hpp>

#include <gradus/input/dataset.hpp>

#include "data.hpp"

using namespace data_tests;

namespace {
std::vector<ints> windows(std::int64_t size, std::int64_t shift, std::int64_t stride, bool drop) {
  return lists_of(range_dataset(7).window(size, shift, stride, drop));
}
}  // namespace

// The examples of tf.data.Dataset.window's documentation, and what its kernel does at the end.
TEST_CASE("size, shift, stride, the end") {
  CHECK(windows(2, 0, 1, false) == std::vector<ints>{{0, 1}, {2, 3}, {4, 5}, {6}});
  CHECK(windows(2, 0, 1, true) == std::vector<ints>{{0, 1}, {2, 3}, {4, 5}});
  CHECK(windows(3, 2, 1, true) == std::vector<ints>{{0, 1, 2}, {2, 3, 4}, {4, 5, 6}});
  CHECK(windows(3, 2, 1, false) == std::vector<ints>{{0, 1, 2}, {2, 3, 4}, {4, 5, 6}, {6}});
  CHECK(windows(3, 1, 2, true) == std::vector<ints>{{0, 2, 4}, {1, 3, 5}, {2, 4, 6}});
  CHECK(windows(3, 1, 2, false) == std::vector<ints>{{0, 2, 4}, {1, 3, 5}, {2, 4, 6}, {3, 5}, {4, 6}, {5}, {6}});
  CHECK(windows(2, 5, 1, false) == std::vector<ints>{{0, 1}, {5, 6}});
  CHECK(windows(9, 4, 1, false) == std::vector<ints>{{0, 1, 2, 3, 4, 5, 6}, {4, 5, 6}});
  for (const std::int64_t size : {1, 2, 3, 9})
    for (const std::int64_t shift : {1, 2, 5})
      for (const std::int64_t stride : {1, 2})
        for (const bool drop : {false, true})
          CHECK(range_dataset(7).window(size, shift, stride, drop).cardinality() ==
                static_cast<std::int64_t>(windows(size, shift, stride, drop).size()));
}

TEST_CASE("specs and refusals") {
  CHECK(to_text(range_dataset(7).window(2, 1, 1, true).element_spec()) == "value int64 [2]");
  CHECK(to_text(range_dataset(7).window(2).element_spec()) == "value int64 [-1]");
  for (const auto& call :
       {std::function([] { range_dataset(7).window(0); }), std::function([] { range_dataset(7).window(2, -1); }),
        std::function([] { range_dataset(7).window(2, 1, 0); })})
    CHECK(message_of(status::invalid_argument, call).find("greater than zero") != std::string::npos);
  CHECK(message_of(status::invalid_argument, [] { range_dataset(7).window(2).window(2); }).find("differ in size") !=
        std::string::npos);
}

TEST_CASE("positions") {
  resumes([] { return range_dataset(11).window(3, 1, 2); });
  resumes([] { return range_dataset(11).window(2, 4).repeat(2); });
}
