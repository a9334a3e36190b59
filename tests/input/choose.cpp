#include <gradus/input/choose.hpp>

#include <gradus/input/dataset.hpp>

#include <algorithm>

#include "data.hpp"

using namespace data_tests;

TEST_CASE("another dataset says which") {
  const auto three = [] {
    return std::vector<any_dataset>{range_dataset(2), range_dataset(10, 14), range_dataset(20, 21)};
  };
  CHECK(all_of(choose_from_datasets(three(), range_dataset(3).repeat())) == ints{0, 10, 20, 1, 11, 12, 13});
  CHECK(all_of(choose_from_datasets(three(), range_dataset(2))) == ints{0, 10});
  CHECK(message_of(status::invalid_argument, [&] { all_of(choose_from_datasets(three(), range_dataset(2, 9))); }) ==
        "choose_from_datasets: selector index out of range: 3 >= 3");
  CHECK(message_of(status::invalid_argument, [&] {
          choose_from_datasets({}, range_dataset(2));
        }).find("at least one") != std::string::npos);
  resumes([&] { return choose_from_datasets(three(), range_dataset(3).repeat()); });
}

TEST_CASE("at random, by weight") {
  const auto two = [] { return std::vector<any_dataset>{range_dataset(0, 1).repeat(), range_dataset(1, 2).repeat()}; };
  const auto all = all_of(sample_from_datasets(two(), {3, 1}, 5), 1000);
  const auto ones = std::count(all.begin(), all.end(), 1);
  CHECK((ones > 200 && ones < 300));  // 250 +- 3.6 deviations of 13.7
  CHECK(message_of(status::invalid_argument, [&] { sample_from_datasets(two(), {1}, 5); }).find("a weight for each") !=
        std::string::npos);
  CHECK(message_of(status::invalid_argument, [&] {
          sample_from_datasets(two(), {0, 0}, 5);
        }).find("not all 0") != std::string::npos);
  resumes([&] { return sample_from_datasets(two(), {}, 7); });
}

TEST_CASE("a dataset of weight 0 is never drawn, and does not keep the others from ending") {
  auto d = sample_from_datasets({range_dataset(3), range_dataset(10, 20), range_dataset(3, 5)}, {1.0, 0.0, 2.0}, 1);
  auto all = all_of(std::move(d));
  std::sort(all.begin(), all.end());
  CHECK(all == ints{0, 1, 2, 3, 4});
}
