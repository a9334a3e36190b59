// costs: 300
// What is read ahead changes nothing: pipelines put together at random around a cache, with a prefetch of any depth
// behind it, or a map with any number of threads, give what they give without it, however far it has come whenever the
// consumer asks, leaves a round in its middle, or goes back to a saved position.
#include <gradus/input/combinators.hpp>
#include <gradus/testing/hand_tasks.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <cstdlib>

using namespace gradus;

namespace {

using ints = std::vector<std::int64_t>;
const components scalar = {{"value", int64, {}}};
std::int64_t value_of(const datum& e) { return e.value<std::int64_t>(0); }

// How a pipeline is read: with a thread that reads `ahead` elements ahead (0: with none), or by a map with so many
// threads. A slow consumer lets the threads come as far as they can before each call.
struct reading {
  std::int64_t ahead = 0;
  bool slow = false;
  int threads = 0;
};

// The pipeline of a seed, whose caches lie in `directory`, or in memory where that is empty.
any_dataset pipeline(std::uint64_t seed, const reading& how, const std::string& directory,
                     const testing::hand_tasks& hand) {
  random_stream roll{.seed = seed};
  const auto below = [&](std::uint32_t n) { return static_cast<std::int64_t>(roll.below(n)); };
  int files = 0;
  const auto kept = [&](any_dataset d) -> any_dataset {
    if (directory.empty()) return std::move(d).cache();
    return std::move(d).cache(join_path(directory, text("cache", files++)));
  };
  const auto read_ahead = [&](any_dataset d) -> any_dataset {
    if (how.threads != 0)
      return std::move(d).map([](datum&) {}, {.parallel = how.threads, .driver = hand.tasks().driver()});
    if (how.ahead == 0) return d;
    return std::move(d).prefetch(how.ahead, hand.tasks());
  };
  const auto size = 1 + below(7);
  any_dataset d = [&]() -> any_dataset {
    switch (roll.below(7)) {
    case 0: return range_dataset(size).shuffle(size, seed);
    case 1: return range_dataset(4).shuffle(4, seed).repeat().take(size);  // the next round depends on the place
    case 2: return range_dataset(3).shuffle(3, seed).repeat(2).filter([](const datum& e) { return value_of(e) != 1; });
    case 3: return counter_dataset().take(size).shuffle(3, seed);
    case 4:
      return zip_datasets(range_dataset(3).shuffle(3, seed).repeat(), range_dataset(0, size, 1, "other"))
          .map(scalar, [](const datum& e, datum& to) { to.set(0, value_of(e) + 10 * e.value<std::int64_t>("other")); });
    case 5: return range_dataset(size).shuffle(2, seed).concatenate(range_dataset(3).shuffle(3, seed).repeat().take(4));
    default:
      return range_dataset(size).shuffle(size, seed).map([](datum& e) { e.set(0, value_of(e) + 1); }, {.parallel = 2});
    }
  }();
  d = kept(std::move(d));
  switch (roll.below(10)) {
  case 0: d = std::move(d).take(below(6)); break;
  case 1: d = std::move(d).map([](datum& e) { e.set(0, value_of(e) * 7); }); break;
  case 2: d = std::move(d).repeat(2); break;
  case 3: d = kept(std::move(d)); break;
  case 4: d = std::move(d).shuffle(3, 5); break;
  case 5: d = std::move(d).skip(1); break;
  case 6: d = kept(read_ahead(std::move(d)).take(below(9))); break;
  case 7: d = read_ahead(std::move(d)); break;
  default: break;
  }
  d = read_ahead(std::move(d));
  switch (roll.below(3)) {
  case 0: return std::move(d).take(below(6)).repeat(3);
  case 1: return std::move(d).repeat(3);
  default: return d;
  }
}

// What a consumer sees that reads, rewinds, saves, goes back and begins again in a new pipeline, as the seed says.
ints seen(std::uint64_t seed, const reading& how, const std::string& directory) {
  const testing::hand_tasks hand;
  if (!directory.empty()) make_directories(posix{}, directory);
  any_dataset d = pipeline(seed, how, directory, hand);
  random_stream roll{.seed = ~seed};
  std::vector<std::byte> at;
  ints out;
  datum e;
  for (int act = 0; act < 50; ++act) {
    if (how.slow) hand.settle();
    switch (roll.below(14)) {
    case 0: d.rewind(), out.push_back(-2); break;
    case 1: at.clear(), d.save(at); break;
    case 2:
      if (!at.empty()) d.load(at), out.push_back(-3);
      break;
    case 3:
      if (at.empty()) break;
      d = range_dataset(0);  // which ends the old one
      d = pipeline(seed, how, directory, hand);
      d.load(at), out.push_back(-4);
      break;
    default: out.push_back(d.next(e) ? value_of(e) : -1);
    }
  }
  return out;
}

}  // namespace

TEST_CASE("at any depth, fast or slow, in memory or in a file, the stream is that of no one who reads ahead") {
  const testing::temp_dir scratch;
  const std::uint64_t pipelines = std::getenv("GRADUS_LONG") != nullptr ? 3000 : 150;
  for (std::uint64_t seed = 0; seed < pipelines; ++seed) {
    CAPTURE(seed);
    const ints plain = seen(seed, {}, "");
    REQUIRE(seen(seed, {}, scratch / text("plain", seed)) == plain);
    for (const std::int64_t ahead : {std::int64_t{1}, std::int64_t{2}, std::int64_t{8}})
      for (const bool slow : {false, true}) {
        CAPTURE(ahead);
        CAPTURE(slow);
        REQUIRE(seen(seed, {ahead, slow}, "") == plain);
        REQUIRE(seen(seed, {ahead, slow}, scratch / text(slow ? "slow" : "fast", ahead, '-', seed)) == plain);
      }
    for (const int threads : {1, 2, 5}) {
      CAPTURE(threads);
      REQUIRE(seen(seed, {.threads = threads}, "") == plain);
      REQUIRE(seen(seed, {.threads = threads}, scratch / text("map", threads, '-', seed)) == plain);
    }
  }
}

TEST_CASE("where positions are large, and so noted with few elements, the end counts as seen") {
  // What unique has seen makes them large; the cache keeps its order only behind a whole round.
  const auto rounds = [](any_dataset d) {
    ints out;
    for (int round = 0; round < 3; ++round, d.rewind())
      for (const datum& e : d) out.push_back(value_of(e));
    return out;
  };
  const auto make = [] { return range_dataset(300).shuffle(300, 1).cache().unique(); };
  const ints plain = rounds(make());
  CHECK(ints(plain.begin(), plain.begin() + 300) == ints(plain.begin() + 300, plain.begin() + 600));
  for (const std::int64_t ahead : {1, 8, 400}) CHECK(rounds(make().prefetch(ahead)) == plain);
  for (const int threads : {1, 2, 9}) CHECK(rounds(make().map([](datum&) {}, {.parallel = threads})) == plain);
}
