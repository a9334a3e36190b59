#include <gradus/input/as_batches.hpp>

#include <gradus/input/dataset.hpp>
#include <gradus/input/window.hpp>

#include "data.hpp"

using namespace data_tests;

TEST_CASE("windows as what a trainer consumes") {
  auto d = range_dataset(7).window(3).as_batches(3);
  static_assert(batched_dataset<decltype(d)>);
  static_assert(std::is_same_v<decltype(d), elements_as_batches> && std::is_same_v<decltype(d), regarded_batches>);
  CHECK(to_text(d.element_spec()) == "value int64 []");
  std::int64_t values[3];
  const tensor_view view(std::span<std::int64_t>(values), {3});
  CHECK(d.next({&view, 1}) == 3);
  CHECK(d.next({&view, 1}) == 3);
  CHECK(values[2] == 5);
  CHECK(d.next({&view, 1}) == 1);
  CHECK(d.next({&view, 1}) == 0);
  auto few = range_dataset(7).window(3).as_batches(2);
  CHECK(message_of(status::invalid_argument, [&] { few.next({&view, 1}); }) == "as_batches(2): found a batch of 3");
  CHECK(message_of(status::invalid_argument, [] { range_dataset(7).as_batches(2); }).find("a scalar") !=
        std::string::npos);
  resumes([] { return range_dataset(7).window(3, 1).as_batches(3); });
}
