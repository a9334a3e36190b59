#include <gradus/input/map.hpp>

#include "data.hpp"

using namespace data_tests;

#include <gradus/input/dataset.hpp>

#include <mutex>
#include <set>

namespace {
const auto doubled = [](datum& e) {
  for (auto& v : e.values<std::int64_t>(0)) v *= 2;
};
}  // namespace

TEST_CASE("in place, to other components, of batches") {
  CHECK(all_of(range_dataset(4).map(doubled)) == ints{0, 2, 4, 6});
  auto d = range_dataset(3).map({{"half", float64, {2}}}, [](const datum& from, datum& to) {
    to.values<double>("half")[1] = static_cast<double>(value_of(from)) / 2;
  });
  CHECK(to_text(d.element_spec()) == "half float64 [2]");
  datum e;
  for (int i = 0; i < 3; ++i) REQUIRE(d.next(e));
  CHECK(e.values<double>(0)[1] == 1);
  auto b = range_dataset(5).batch(2).map(doubled);
  static_assert(batched_dataset<decltype(b)>);
  CHECK(b.cardinality() == 3);
  CHECK(lists_of(std::move(b)) == std::vector<ints>{{0, 2}, {4, 6}, {8}});
  CHECK(message_of(
            status::invalid_argument,
            [] { all_of(range_dataset(3).map(scalar, [](const datum&, datum& to) { to.add("more", int32); })); }) ==
        "map's function: expected elements of value int64 [], found 2 components; make what was announced, or announce "
        "what is made");
}

TEST_CASE("by threads of its own, in order") {
  for (const int threads : {1, 2, 5}) {
    std::mutex mutex;
    std::set<std::thread::id> callers;
    const auto d = range_dataset(50).map(
        [&](datum& e) {
          doubled(e);
          const std::lock_guard lock(mutex);
          callers.insert(std::this_thread::get_id());
        },
        {.parallel = threads});
    CHECK(all_of(d) == all_of(range_dataset(0, 100, 2)));
    CHECK(callers.count(std::this_thread::get_id()) == 0);
    CHECK(callers.size() <= static_cast<std::size_t>(threads));
    resumes([&] { return range_dataset(9).map(doubled, {.parallel = threads}).repeat(2).batch(2).map(doubled); });
  }
  // The number of threads is no part of a position.
  auto one = range_dataset(50).map(doubled, {.parallel = 7}), other = range_dataset(50).map(doubled);
  datum e;
  for (int i = 0; i < 5; ++i) one.next(e);
  std::vector<std::byte> at;
  one.save(at);
  other.load(at);
  const auto copy = one;
  CHECK(all_of(std::move(other)) == all_of(range_dataset(10, 100, 2)));
  CHECK(all_of(copy) == all_of(range_dataset(10, 100, 2)));
}

TEST_CASE("an error comes in its turn, and the next element after it") {
  for (const int threads : {0, 3}) {
    auto d = range_dataset(6).map(
        [](datum& e) {
          if (value_of(e) == 2) raise(status::unavailable, "not two");
        },
        {.parallel = threads});
    datum e;
    CHECK((d.next(e) && d.next(e)));
    CHECK(message_of(status::unavailable, [&] { d.next(e); }) == "not two");
    CHECK(all_of(std::move(d)) == ints{3, 4, 5});
  }
}

TEST_CASE("an error of the source comes behind the elements before it, for any number of threads, once or for ever") {
  const auto told = [](auto&& d, int calls) {
    std::string s;
    datum e;
    for (int i = 0; i < calls; ++i) try {
        s += d.next(e) ? text(value_of(e), ' ') : std::string("end ");
      } catch (const error& x) {
        s += text('<', x.what(), "> ");
      }
    return s;
  };
  for (int bad = 0; bad < 9; ++bad) {
    const auto torn = [bad](datum& e) {
      if (value_of(e) == bad) raise(status::data_loss, "torn");
    };
    const auto odd = [bad](datum& e) {  // of map itself
      if (value_of(e) == (bad + 3) % 9) raise(status::invalid_argument, "odd");
      doubled(e);
    };
    for (const bool repeats : {false, true}) {
      const auto source = [&]() -> any_dataset {
        auto d = range_dataset(9).map(torn);
        if (repeats) return d.prefetch(2);
        return d;
      };
      const std::string serial = told(source().map(odd), 12);
      for (const int threads : {1, 2, 4}) {
        CHECK(told(source().map(odd, {.parallel = threads}), 12) == serial);
        CHECK(told(source().map(odd, {.parallel = threads}).map(doubled, {.parallel = 2}), 12) ==
              told(source().map(odd).map(doubled), 12));
      }
      // A rewind forgets the error, and a copy in the midst of it all goes on as the original.
      auto d = source().map(odd, {.parallel = 3});
      datum e;
      for (int i = 0; i < 2; ++i) try {
          d.next(e);
        } catch (const error&) {
        }
      if (!repeats) {
        auto copy = d;
        const std::string expected = told(d, 12);
        CHECK(told(copy, 12) == expected);
      }
      d.rewind();
      CHECK(told(d, 2) == told(source().map(odd), 2));
    }
  }
}

TEST_CASE("a function with state of its own is declared") {
  auto d = range_dataset(3).map(doubled, {.stateful = true}).batch(2);
  std::vector<std::byte> at;
  CHECK(message_of(status::failed_precondition, [&] { d.save(at); })
            .starts_with("the input depends on state outside its position: a function of map; say "
                         "on_external_state(external_state_policy::ignore)"));
  std::string said;
  auto warned = std::move(d).on_external_state(external_state_policy::warn, [&](auto line) { said = line; });
  warned.save(at);
  CHECK(said.find("a function of map") != std::string::npos);
  std::move(warned).on_external_state(external_state_policy::ignore).save(at);
}
