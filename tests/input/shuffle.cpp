#include <gradus/input/shuffle.hpp>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include <gradus/input/dataset.hpp>
#include <gradus/input/elements.hpp>
#include <gradus/input/map.hpp>
#include <gradus/input/range.hpp>

#include "pipelines.hpp"

using namespace pipelines;
using list = std::vector<std::int32_t>;

TEST_CASE("every iteration is a permutation, each another one, and seeds give them again") {
  const auto hundred = iota(100);
  for (const std::int64_t buffer : {1, 2, 7, 99, 100, 1000}) {
    auto d = numbers(hundred).shuffle(buffer, 5).repeat(4);
    const auto all = drain(d);
    REQUIRE(all.size() == 400);
    std::vector<list> rounds;
    for (std::size_t r = 0; r < 4; ++r) {
      list round(all.begin() + static_cast<std::ptrdiff_t>(100 * r),
                 all.begin() + static_cast<std::ptrdiff_t>(100 * (r + 1)));
      rounds.push_back(round);
      for (std::size_t k = 0; k < 100; ++k) CHECK(round[k] < static_cast<int>(k) + buffer);  // nothing comes too early
      std::sort(round.begin(), round.end());
      CHECK(round == hundred);
    }
    for (std::size_t r = 1; r < 4; ++r) CHECK((rounds[r] == rounds[0]) == (buffer == 1));
    auto again = numbers(hundred).shuffle(buffer, 5).repeat(4);
    CHECK(drain(again) == all);
    auto other = numbers(hundred).shuffle(buffer, 6).repeat(4);
    CHECK((drain(other) == all) == (buffer == 1));
    auto fixed = numbers(hundred).shuffle(buffer, 5, false).repeat(2);
    const auto twice = drain(fixed);
    CHECK(list(twice.begin(), twice.begin() + 100) == rounds[0]);
    CHECK(list(twice.begin() + 100, twice.end()) == rounds[0]);
  }
}

// Computed from the description in docs/rooms/input.md by another program.
TEST_CASE("orders do not change between versions: a saved position depends on them") {
  const auto twelve = iota(12);
  auto a = numbers(twelve).shuffle(12, 1);
  auto b = numbers(twelve).shuffle(4, 1).repeat(2);
  CHECK(drain(a) == list{9, 3, 2, 8, 10, 0, 1, 11, 5, 4, 6, 7});
  CHECK(drain(b) == list{3, 1, 0, 4, 5, 6, 8, 10, 11, 2, 9, 7, 0, 3, 4, 2, 1, 5, 6, 7, 8, 11, 9, 10});
}

TEST_CASE("every element is equally likely in every place") {
  constexpr int n = 8, rounds = 20000;
  const auto values = iota(n);
  auto d = numbers(values).shuffle(n, 11).repeat(rounds);
  const auto all = drain(d, n * rounds);
  std::array<std::array<int, n>, n> seen{};
  for (std::size_t k = 0; k < all.size(); ++k) ++seen[k % n][static_cast<std::size_t>(all[k])];
  double chi_square = 0;
  for (const auto& place : seen)
    for (const int count : place) chi_square += (count - rounds / n) * double(count - rounds / n) / (rounds / n);
  // 7 x 7 degrees of freedom: mean 49, standard deviation 9.9. Too even would be as wrong as too uneven.
  CHECK(chi_square > 20);
  CHECK(chi_square < 90);
}

TEST_CASE("all orders of four are equally likely") {
  constexpr int rounds = 24000;
  const auto values = iota(4);
  auto d = numbers(values).shuffle(100, 12).repeat(rounds);
  const auto all = drain(d);
  std::vector<int> seen(256);
  for (std::size_t k = 0; k < all.size(); k += 4)
    ++seen[static_cast<std::size_t>(all[k] + 4 * all[k + 1] + 16 * all[k + 2] + 64 * all[k + 3])];
  double chi_square = 0;
  int orders = 0;
  for (const int count : seen)
    if (count != 0) ++orders, chi_square += (count - 1000) * (count - 1000) / 1000.0;
  CHECK(orders == 24);
  CHECK(chi_square < 52.0);  // 23 degrees of freedom, 99.95%
}

TEST_CASE("a small buffer draws its first element evenly from the buffer") {
  constexpr int rounds = 30000;
  const auto values = iota(50);
  auto d = numbers(values).shuffle(10, 13);
  std::array<int, 10> seen{};
  for (int r = 0; r < rounds; ++r, d.rewind()) ++seen[static_cast<std::size_t>(drain(d, 1)[0])];
  double chi_square = 0;
  for (const int count : seen) chi_square += (count - 3000) * (count - 3000) / 3000.0;
  CHECK(chi_square < 30.0);  // 9 degrees of freedom, 99.95%
}

TEST_CASE("copies of elements, or their numbers: the same orders") {
  for (const int n : {0, 1, 2, 9, 40})
    for (const std::int64_t buffer : {1, 3, 39, 40, 41}) {
      const auto values = iota(n);
      auto by_number = numbers(values).shuffle(buffer, 21).repeat(3);
      auto by_copy = counted(n).shuffle(buffer, 21).repeat(3);
      CHECK(drain(by_number) == drain(by_copy));
    }
}

TEST_CASE("how large a saved position is") {
  const auto values = iota(10000);
  auto by_number = numbers(values).shuffle(10000, 1).repeat();
  drain(by_number, 12345);
  CHECK(position_of(by_number).size() < 128);
  auto by_copy = counted(10000).shuffle(100, 1).repeat();
  drain(by_copy, 12345);
  CHECK(position_of(by_copy).size() < 128 + 100 * 16);
}

TEST_CASE("a buffer of nothing") {
  const auto five = iota(5);
  CHECK(message_of(status::invalid_argument, [&] {
          numbers(five).shuffle(0);
        }).starts_with("shuffle(0): expected a buffer of 1 to 4294967295 elements"));
  CHECK(message_of(status::invalid_argument, [&] { counted(5).shuffle(-1); }).starts_with("shuffle(-1): expected"));
}

TEST_CASE("copies: the position is the smaller of the window and the way there") {
  const auto size_after = [](std::size_t n) {
    auto d = counted(1000).shuffle(100, 5);
    drain(d, n);
    return position_of(d).size();
  };
  CHECK(size_after(0) < 100);
  CHECK(size_after(100) < 100);   // the window was read once more: go there again
  CHECK(size_after(101) > 1600);  // further on it holds its 100 elements of 16 bytes
  const auto few = [] { return counted(1000).shuffle(2, 5); };
  auto d = few();
  drain(d, 1);
  CHECK(position_of(d).size() < 100);
}

TEST_CASE("elements of different sizes") {
  const components spec = {{"i", int32, {any_extent}}};
  std::vector<datum> list;
  for (int i = 0; i < 9; ++i) {
    list.emplace_back(spec);
    list.back().resize(0, {i});
    list.back().set<std::int32_t>(0, i);
  }
  const auto make = [&] { return from_elements(spec, list).repeat(3).shuffle(4, 1); };
  auto whole = make(), first = make();
  std::vector<datum> all;
  for (const datum& e : whole) all.push_back(e);
  REQUIRE(all.size() == 27);
  datum e;
  for (std::size_t k = 0; k < all.size(); ++k) {
    auto other = make();
    restore(other, position_of(first));
    for (std::size_t i = k; i < all.size(); ++i) {
      REQUIRE(other.next(e));
      REQUIRE(e == all[i]);
    }
    REQUIRE(!other.next(e));
    REQUIRE(first.next(e));
  }
}

TEST_CASE("a source that raises at some elements loses none of the others, wherever it is stopped and restored") {
  // Every seventh element is refused after a part of it was written, as by a reader of text.
  const auto made = [] {
    return range_dataset(100).map({{"n", int64, {}}}, [](const datum& from, datum& to) {
      const auto n = from.value<std::int64_t>(0);
      to.set<std::int64_t>(0, n % 7 == 3 ? -1 : n);
      if (n % 7 == 3) raise(status::data_loss, "a bad record");
    });
  };
  for (const std::int64_t buffer : {1, 5, 30, 200}) {
    const auto run = [&](int stop_every) {
      std::optional d(made().shuffle(buffer, 3));
      std::vector<std::int64_t> seen;
      datum e;
      int errors = 0;
      for (int calls = 1;; ++calls) {
        if (calls % stop_every == 0) {
          std::vector<std::byte> at;
          d->save(at);
          d.emplace(made().shuffle(buffer, 3));
          d->load(at);
        }
        try {
          if (!d->next(e)) break;
          seen.push_back(e.value<std::int64_t>(0));
        } catch (const data_loss&) {
          ++errors;
        }
      }
      if (stop_every > 1000) CHECK(errors == 14);
      return seen;
    };
    const auto whole = run(100000);
    auto sorted = whole;
    std::sort(sorted.begin(), sorted.end());
    std::vector<std::int64_t> good;
    for (std::int64_t n = 0; n < 100; ++n)
      if (n % 7 != 3) good.push_back(n);
    CHECK(sorted == good);
    for (const int every : {1, 2, 3, 17}) CHECK(run(every) == whole);
  }
}
