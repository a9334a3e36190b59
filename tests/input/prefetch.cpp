// sanitized in every run: its thread reads beside ours
#include <gradus/input/prefetch.hpp>

#include <gradus/input/elements.hpp>

#include "pipelines.hpp"

using namespace pipelines;

TEST_CASE("the same stream, read ahead") {
  const auto hundred = iota(100);
  for (const std::int64_t places : {1, 2, 7, 1000}) {
    auto plain = numbers(hundred).shuffle(30, 3).repeat(3).batch(7);
    auto ahead = numbers(hundred).shuffle(30, 3).repeat(3).batch(7).prefetch(places);
    CHECK(ahead.batch_size() == 7);
    CHECK(drain_batches(ahead) == drain_batches(plain));
    CHECK(drain_batches(ahead).empty());  // the end stays the end
    auto one_by_one = numbers(hundred).prefetch(places);
    CHECK(drain(one_by_one) == hundred);
  }
}

TEST_CASE("what is saved is where the consumer is") {
  const auto hundred = iota(100);
  // Positions of two numbers, noted with every place; and of copies in a buffer of 8 KB, noted with few.
  const auto small = [&] { return numbers(hundred).shuffle(50, 3).repeat(6).batch(2).prefetch(5); };
  const auto large = [&] { return numbers(hundred).repeat(6).shuffle(512, 3).batch(1).prefetch(5); };
  const auto check = [](const auto& make) {
    auto whole = make();
    const auto all = drain_batches(whole);
    for (const std::size_t k : {std::size_t{0}, std::size_t{1}, std::size_t{6}, std::size_t{255}, std::size_t{256},
                                std::size_t{257}, all.size() - 1, all.size()}) {
      if (k > all.size()) continue;
      auto first = make();
      const auto head = drain_batches(first, k);
      const auto at = position_of(first);
      CHECK(at == position_of(first));
      auto second = make();
      drain_batches(second, 3);
      restore(second, at);
      auto joined = head;
      for (auto& b : drain_batches(second)) joined.push_back(b);
      CHECK(joined == all);
      joined = head;
      for (auto& b : drain_batches(first)) joined.push_back(b);  // saving did not disturb
      CHECK(joined == all);
    }
  };
  check(small);
  check(large);
}

TEST_CASE("between two noted positions what was taken since is saved, and passed over when the thread stops") {
  // Once shuffle has drawn more than its buffer holds, its position is the buffer itself: 8 KB, which are noted with
  // every 256th element only.
  const auto make = [] { return counted(2600).shuffle(2000, 3).prefetch(3); };
  auto whole = make();
  const auto all = drain(whole);
  for (const std::size_t k : {2000u, 2001u, 2002u, 2003u, 2050u, 2256u, 2257u, 2258u, 2259u, 2600u}) {
    CAPTURE(k);
    auto first = make();
    drain(first, k);
    const auto at = position_of(first);
    const std::vector<std::int32_t> rest(all.begin() + static_cast<std::ptrdiff_t>(k), all.end());
    auto second = make();
    drain(second, 5);
    restore(second, at);
    const auto next = std::min<std::size_t>(50, rest.size());
    const auto end = rest.begin() + static_cast<std::ptrdiff_t>(next);
    CHECK(drain(second, next) == std::vector<std::int32_t>(rest.begin(), end));
    // A copy of the position that is saved while the thread stands is worth as much.
    restore(second, at);
    const auto standing = position_of(second);
    auto third = make();
    restore(third, standing);
    CHECK(drain(third) == rest);
  }
}

TEST_CASE("the position is that of the same pipeline that did not read ahead so far") {
  const auto hundred = iota(100);
  auto one = numbers(hundred).shuffle(50, 3).repeat().batch(4).prefetch(1);
  auto nine = numbers(hundred).shuffle(50, 3).repeat().batch(4).prefetch(9);
  CHECK(drain_batches(one, 30) == drain_batches(nine, 30));
  CHECK(position_of(one) == position_of(nine));
  restore(one, position_of(nine));
  CHECK(drain_batches(one, 30) == drain_batches(nine, 30));
}

TEST_CASE("an error comes in its turn, and stays") {
  auto d = counted(100, 5).prefetch(3);
  CHECK(drain(d, 5) == iota(5));
  CHECK(message_of(status::unavailable, [&] { drain(d); }) == "element 5 is not to be had");
  CHECK(message_of(status::unavailable, [&] { drain(d); }) == "element 5 is not to be had");
  const auto at = position_of(d);
  d.rewind();
  CHECK(drain(d, 3) == iota(3));
  restore(d, at);
  CHECK(message_of(status::unavailable, [&] { drain(d); }) == "element 5 is not to be had");
}

TEST_CASE("rewind goes on from where the consumer is, not the thread") {
  const auto ten = iota(10);
  auto ahead = numbers(ten).shuffle(10, 3).batch(3).prefetch(8);
  auto plain = numbers(ten).shuffle(10, 3).batch(3);
  for (const std::size_t n : {0u, 1u, 9u, 2u}) {
    CHECK(drain_batches(ahead, n) == drain_batches(plain, n));
    ahead.rewind();
    plain.rewind();
  }
  CHECK(drain_batches(ahead) == drain_batches(plain));
}

TEST_CASE("rewind goes on from where the consumer is, also between two noted positions") {
  // The position of shuffle's first iteration is large at the end of take, so that none is noted until well into the
  // second.
  const auto make = [] { return counted(10000).shuffle(2000, 3).take(2100).repeat(); };
  auto ahead = make().prefetch(3);
  auto plain = make();
  for (const std::size_t n : {2150u, 20u, 2110u, 7u}) {
    CAPTURE(n);
    CHECK(drain(ahead, n) == drain(plain, n));
    ahead.rewind();
    plain.rewind();
  }
  CHECK(drain(ahead, 20) == drain(plain, 20));
}

TEST_CASE("it may be moved while it runs") {
  auto a = counted(1000).prefetch(4);
  CHECK(drain(a, 3) == iota(3));
  auto b = std::move(a);
  CHECK(drain(b, 1) == std::vector<std::int32_t>{3});
  auto c = std::move(b).take(2);
  CHECK(drain(c) == std::vector<std::int32_t>{4, 5});
  auto d = counted(10).prefetch(2);
  drain(d, 1);
  d = counted(20).prefetch(3);
  CHECK(drain(d) == iota(20));
}

TEST_CASE("it ends when it is destroyed: unused, waiting for room, at the end, after an error") {
  for (int i = 0; i < 50; ++i) {
    auto unused = counted(10).repeat().prefetch(2);
    auto waiting = counted(10).repeat().prefetch(2);
    drain(waiting, static_cast<std::size_t>(i % 5));
    auto ended = counted(3).prefetch(2);
    drain(ended);
    auto failed = counted(10, 1).prefetch(2);
    message_of(status::unavailable, [&] { drain(failed); });
  }
}

TEST_CASE("two in a row") {
  auto d = counted(50).shuffle(10, 1).prefetch(3).repeat(2).batch(4).prefetch(2);
  auto plain = counted(50).shuffle(10, 1).repeat(2).batch(4);
  const auto all = drain_batches(plain);
  const auto head = drain_batches(d, 9);
  const auto at = position_of(d);
  auto other = counted(50).shuffle(10, 1).prefetch(3).repeat(2).batch(4).prefetch(2);
  restore(other, at);
  auto joined = head;
  for (auto& b : drain_batches(other)) joined.push_back(b);
  CHECK(joined == all);
}

TEST_CASE("room for nothing") {
  CHECK(message_of(status::invalid_argument, [] { counted(5).prefetch(0); }) ==
        "prefetch(0): expected room for at least one");
}

TEST_CASE("elements of different sizes, and batches as data") {
  const components spec = {{"i", int32, {any_extent}}};
  std::vector<datum> list;
  for (int i = 0; i < 9; ++i) {
    list.emplace_back(spec);
    list.back().resize(0, {i});
  }
  auto d = from_elements(spec, list).prefetch(3);
  CHECK(d.cardinality() == 9);
  datum e;
  for (int i = 0; i < 4; ++i) REQUIRE(d.next(e));
  CHECK(e[0].dims == extents{3});
  auto other = from_elements(spec, list).prefetch(3);
  restore(other, position_of(d));
  REQUIRE(other.next(e));
  CHECK(e[0].dims == extents{4});
  std::int32_t value = 0;
  const tensor_view one(std::span<std::int32_t>(&value, 1), {});
  CHECK(message_of(status::invalid_argument, [&] { d.next({&one, 1}); }).find("differ in size") != std::string::npos);
  auto b = counted(5).batch(3).prefetch(2);
  REQUIRE(b.next(e));
  CHECK(e[0].dims == extents{3});
  REQUIRE(b.next(e));
  CHECK(e[0].dims == extents{2});
  CHECK(!b.next(e));
}
