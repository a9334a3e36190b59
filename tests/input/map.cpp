#include <gradus/input/map.hpp>

#include "data.hpp"

using namespace data_tests;

#include <gradus/input/combinators.hpp>

#include <mutex>
#include <set>

namespace {
const auto doubled = [](datum& e) {
  for (auto& v : e.values<std::int64_t>(0)) v *= 2;
};
// What this number of calls give, errors too.
std::string told(auto&& d, int calls) {
  std::string s;
  datum e;
  for (int i = 0; i < calls; ++i) try {
      s += d.next(e) ? text(value_of(e), ' ') : std::string("end ");
    } catch (const error& x) {
      s += text('<', x.what(), "> ");
    }
  return s;
}
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

TEST_CASE("a position, a copy and a rewind are those without threads, wherever the source is") {
  const auto torn = [](int bad) {
    return [bad](datum& e) {
      if (value_of(e) == bad) raise(status::data_loss, "torn");
    };
  };
  // Sources whose next iteration depends on how far this one was read; that of `bad` 9 has no error.
  using source = std::function<any_dataset()>;
  std::vector<source> sources{[] { return range_dataset(4).shuffle(4, 1).repeat().take(9); },
                              [] { return range_dataset(9).shuffle(9, 1).cache(); },
                              [] { return range_dataset(5).shuffle(5, 1).repeat(2).prefetch(2); },
                              // Its position is large, so it is noted with few elements.
                              [] { return range_dataset(1200).shuffle(1200, 1).unique().shuffle(100, 1).repeat(); }};
  for (int bad = 0; bad < 9; ++bad)
    sources.push_back([=] { return range_dataset(9).map(torn(bad)).concatenate(range_dataset(9).shuffle(9, 1)); });
  for (const auto& make : sources)
    for (const int calls : {0, 1, 2, 5, 8, 9, 10, 600}) {
      CAPTURE(calls);
      auto serial = make().map(doubled);
      const std::string before = told(serial, calls);
      std::vector<std::byte> at;
      serial.save(at);
      for (const int threads : {1, 2, 5}) {
        CAPTURE(threads);
        auto d = make().map(doubled, {.parallel = threads});
        CHECK(told(d, calls) == before);
        std::vector<std::byte> mine;
        d.save(mine);
        if (at.size() < 4096) CHECK(mine == at);
        for (const int others : {0, 3}) {
          auto other = make().map(doubled, {.parallel = others}), rewound = make().map(doubled, {.parallel = others});
          other.load(at), rewound.load(mine);
          CHECK(told(other, 12) == [&] {
            auto same = make().map(doubled);
            same.load(mine);
            return told(same, 12);
          }());
          told(rewound, 1), rewound.rewind();
          auto same = make().map(doubled);
          same.load(at), told(same, 1), same.rewind();
          CHECK(told(rewound, 12) == told(same, 12));
        }
        auto same = make().map(doubled);
        same.load(at);
        const std::string rest = told(same, 3);
        same.rewind();
        const std::string next = told(same, 12);
        if (&make != &sources[2]) {  // a dataset with a prefetch cannot be copied
          auto copy = d;
          CHECK(told(copy, 3) == rest);
          copy.rewind();
          CHECK(told(copy, 12) == next);
        }
        CHECK(told(d, 3) == rest);
        d.rewind();
        CHECK(told(d, 12) == next);
      }
    }
}

TEST_CASE("a position of version 0.5.0, which holds the elements in flight, goes on") {
  auto d = range_dataset(9).map(doubled, {.parallel = 3});
  datum e;
  std::vector<std::byte> at, source;
  CHECK(told(d, 4) == "0 2 4 6 ");
  d.save(at);
  // Behind the definition: three elements, each a rank and a value, and then the position of the source.
  const auto definition = std::to_integer<std::size_t>(at[0]);
  at.resize(8 + definition);
  position_writer to(at);
  to.number(3);
  for (const std::int64_t v : {4, 5, 6}) to.number(0), to.number(v);
  to.number(7);
  for (const int threads : {0, 1, 3}) {
    auto old = range_dataset(9).map(doubled, {.parallel = threads});
    old.load(at);
    CHECK(told(old, 1) == "8 ");
    auto copy = old;
    std::vector<std::byte> again;
    old.save(again);
    CHECK(told(old, 5) == "10 12 14 16 end ");
    CHECK(told(copy, 5) == "10 12 14 16 end ");
    old.load(again);
    CHECK(told(old, 5) == "10 12 14 16 end ");
    old.rewind();
    CHECK(told(old, 2) == "0 2 ");
  }
}

TEST_CASE("a position that is noted with few batches is refused by batches of another size") {
  const auto make = [](std::int64_t n) {
    return range_dataset(1200).shuffle(1200, 1).unique().shuffle(100, 1).batch(n).map(doubled, {.parallel = 2});
  };
  auto four = make(4), same = make(4), other = make(8);
  datum e;
  for (int i = 0; i < 200; ++i) four.next(e);
  std::vector<std::byte> at;
  four.save(at);
  same.load(at);
  datum f;
  CHECK((four.next(e) && same.next(f) && e == f));
  CHECK(message_of(status::data_loss, [&] { other.load(at); }).find("has batches of 4 elements") != std::string::npos);
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
