#include <gradus/input/group_by_window.hpp>

#include <gradus/input/dataset.hpp>

#include "data.hpp"

using namespace data_tests;

namespace {
const auto parity = [](const datum& e) { return value_of(e) % 2; };
grouped_dataset pairs(std::int64_t n, std::function<std::int64_t(std::int64_t)> size) {
  return range_dataset(n).group_by_window(
      vectors, parity, [](std::int64_t, any_dataset window) { return std::move(window).batch(10); }, std::move(size));
}
}  // namespace

TEST_CASE("windows of a key, full ones first, then what is left by key") {
  CHECK(lists_of(pairs(10, [](auto) { return 3; })) == std::vector<ints>{{0, 2, 4}, {1, 3, 5}, {6, 8}, {7, 9}});
  CHECK(lists_of(pairs(7, [](std::int64_t key) { return key == 0 ? 1 : 2; })) ==
        std::vector<ints>{{0}, {2}, {1, 3}, {4}, {6}, {5}});
  CHECK(message_of(status::invalid_argument, [] { lists_of(pairs(3, [](auto) { return 0; })); }) ==
        "group_by_window: window size must be greater than zero, but got 0 for key 0");
  // What reduce makes may be more than one element, or none.
  CHECK(all_of(range_dataset(6).group_by_window(
            scalar, parity, [](std::int64_t key, any_dataset w) { return std::move(w).repeat(key * 2); },
            [](auto) { return 2; })) == ints{1, 3, 1, 3, 5, 5});
}

TEST_CASE("positions") {
  resumes([] { return pairs(11, [](auto) { return 3; }); });
  resumes([] {
    return range_dataset(11).group_by_window(
        scalar, parity, [](std::int64_t, any_dataset w) { return std::move(w).shuffle(4, 1); }, [](auto) { return 4; });
  });
}
