#include <gradus/input/zip.hpp>

#include "data.hpp"

using namespace data_tests;

#include <gradus/input/dataset.hpp>
#include <gradus/input/map.hpp>

#include <algorithm>

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

TEST_CASE("behind an error of one or more datasets the elements are side by side again") {
  const auto numbers = [](const char* name, ints bad) {
    return range_dataset(0, 6, 1, name).map([=](datum& e) {
      for (const auto b : bad)
        if (value_of(e) == b) raise(status::data_loss, text(name, b));
    });
  };
  for (const ints& a : {ints{}, ints{0}, ints{2, 3}})
    for (const ints& b : {ints{1}, ints{2}, ints{3, 5}})
      for (const ints& c : {ints{}, ints{2, 4}}) {
        any_dataset d = zip_datasets(numbers("a", a), numbers("b", b), numbers("c", c).take(5));
        datum e;
        for (std::int64_t i = 0; i < 5; ++i) {
          const auto fails = [&](const ints& list) { return std::find(list.begin(), list.end(), i) != list.end(); };
          const char* const first = fails(a) ? "a" : fails(b) ? "b" : fails(c) ? "c" : nullptr;
          if (first != nullptr) {
            CHECK(message_of(status::data_loss, [&] { d.next(e); }) == text(first, i));
            continue;
          }
          REQUIRE(d.next(e));
          for (std::size_t k = 0; k < 3; ++k) CHECK(e.value<std::int64_t>(k) == i);
        }
      }
  // Behind it the end comes, and a position goes on there.
  any_dataset d = zip_datasets(numbers("a", {2}), range_dataset(0, 3, 1, "other"));
  datum e;
  CHECK((d.next(e) && d.next(e)));
  CHECK_THROWS_AS(d.next(e), data_loss);
  std::vector<std::byte> at;
  d.save(at);
  any_dataset other = zip_datasets(numbers("a", {2}), range_dataset(0, 3, 1, "other"));
  other.load(at);
  CHECK_FALSE(other.next(e));
  CHECK_FALSE(d.next(e));
}

TEST_CASE("behind its end no dataset is read on") {
  const auto make = [] {
    return zip_datasets(range_dataset(4).shuffle(4, 1).repeat(), range_dataset(0, 7, 1, "other"));
  };
  any_dataset once = make(), often = make();
  datum e;
  for (int i = 0; i < 7; ++i) once.next(e), often.next(e);
  for (int i = 0; i < 5; ++i) CHECK(!often.next(e));
  once.rewind(), often.rewind();
  CHECK(all_of(std::move(once)) == all_of(std::move(often)));
  // A zip whose position begins with that of another one, which has ended: the last batch is a part.
  const auto other = [](const char* name) { return range_dataset(0, 9, 1, name); };
  resumes([&] {
    return zip_datasets(zip_datasets(other("a"), range_dataset(0, 5, 1, "b")).batch(2), other("c").take(5).batch(2));
  });
}

TEST_CASE("a position of version 0.5.0, which does not say whether zip has ended, goes on") {
  const auto make = [] {
    return zip_datasets(zip_datasets(range_dataset(9), range_dataset(0, 9, 1, "b")),
                        random_dataset(1ull << 63, "c").take(6));
  };
  any_dataset d = make();
  datum e;
  for (int i = 0; i < 2; ++i) d.next(e);
  std::vector<std::byte> at;
  d.save(at);
  // It is behind the definition; the two zips' numbers are the first two.
  const auto definition = std::to_integer<std::ptrdiff_t>(at[0]);
  at.erase(at.begin() + 8 + definition, at.begin() + 8 + definition + 16);
  any_dataset old = make();
  old.load(at);
  CHECK(all_of(std::move(old)) == all_of(std::move(d)));
  // The first number of a random source is its seed, whatever that is.
  const auto random_first = [] {
    return zip_datasets(random_dataset(1ull << 63).take(6), range_dataset(0, 9, 1, "b"));
  };
  resumes(random_first);
}
