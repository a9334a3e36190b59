#include <gradus/input/zip.hpp>

#include "data.hpp"

using namespace data_tests;

#include <gradus/input/dataset.hpp>

TEST_CASE("side by side, as long as the shortest") {
  auto d = zip_datasets(range_dataset(5), range_dataset(10, 13, 1, "other"));
  CHECK(to_text(d.element_spec()) == "value int64 [], other int64 []");
  CHECK(d.cardinality() == 3);
  ints seen;
  for (const datum& e : d) seen.push_back(e.value<std::int64_t>("value") * 100 + e.value<std::int64_t>("other"));
  CHECK(seen == ints{10, 111, 212});
  CHECK(message_of(status::invalid_argument, [] {
          zip_datasets(range_dataset(5), range_dataset(5));
        }).starts_with("zip_datasets: two components are called \"value\""));
  auto b = zip_datasets(range_dataset(5).batch(2), range_dataset(0, 5, 1, "other").batch(2));
  static_assert(batched_dataset<decltype(b)>);
  std::int64_t x[2], y[2];
  const tensor_view views[] = {{std::span<std::int64_t>(x), {2}}, {std::span<std::int64_t>(y), {2}}};
  CHECK(b.next(views) == 2);
  CHECK(b.next(views) == 2);
  CHECK((x[1] == 3 && y[1] == 3));
  CHECK(b.next(views) == 1);
  CHECK(b.next(views) == 0);
  resumes([] { return zip_datasets(range_dataset(9).shuffle(3, 1), range_dataset(0, 4, 1, "other").repeat()); });
}
