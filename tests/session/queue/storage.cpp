#include <gradus/session/queue/storage.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

using namespace gradus;
using namespace gradus::detail;

namespace {
using order = std::vector<std::int64_t>;

void put(queue_storage& s, const order& keys) {
  s.reserve(s.size() + static_cast<std::int64_t>(keys.size()));
  for (std::int64_t key : keys) {
    auto* e = new queue_element;
    e->key = key;
    s.put(e);
  }
}
order take(queue_storage& s, std::int64_t n) {
  order keys;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::unique_ptr<queue_element> e(s.take());
    keys.push_back(e->key);
  }
  return keys;
}
order sorted(order keys) {
  std::sort(keys.begin(), keys.end());
  return keys;
}
}  // namespace

TEST_CASE("fifo_storage: in the order of insertion; what comes back comes back to the front") {
  fifo_storage s;
  put(s, {5, 3, 9, 1});
  CHECK(s.available(false) == 4);
  element_chain taken;
  for (int i = 0; i < 3; ++i) taken.push_back(s.take());
  put(s, {7});
  s.put_back(taken);
  CHECK(taken.empty());
  CHECK(take(s, 5) == order{5, 3, 9, 1, 7});
}

TEST_CASE("priority_storage: ascending, equal keys as they came, also after some came back") {
  priority_storage s;
  CHECK_FALSE(s.gathers());
  order keys;
  for (std::int64_t i = 0; i < 60; ++i) keys.push_back(i * 7 % 5 - 2);
  put(s, keys);
  element_chain taken;
  for (int i = 0; i < 20; ++i) taken.push_back(s.take());
  s.put_back(taken);
  put(s, {0});
  CHECK(s.size() == 61);
  std::pair<std::int64_t, std::uint64_t> last{-3, 0};
  for (int i = 0; i < 61; ++i) {
    const std::unique_ptr<queue_element> e(s.take());
    const std::pair<std::int64_t, std::uint64_t> here{e->key, e->number};
    CHECK(last < here);
    last = here;
  }
  CHECK(last.first == 2);
}

TEST_CASE("shuffle_storage: so many stay while it is open") {
  shuffle_storage s(3, 1, 2);
  for (std::int64_t n = 0; n < 6; ++n) {
    CHECK(s.available(false) == std::max<std::int64_t>(n - 3, 0));
    CHECK(s.available(true) == n);
    put(s, {n});
  }
  CHECK(sorted(take(s, 6)) == order{0, 1, 2, 3, 4, 5});
}

TEST_CASE("shuffle_storage: each element is as likely as another, wherever it stands") {
  std::map<order, int> seen;
  shuffle_storage s(0, 7, 0);
  constexpr int rounds = 24000;
  for (int i = 0; i < rounds; ++i) {
    put(s, {0, 1, 2, 3});
    ++seen[take(s, 4)];
  }
  CHECK(seen.size() == 24);
  double chi2 = 0;
  for (const auto& [o, n] : seen) chi2 += (n - 1000.0) * (n - 1000.0) / 1000.0;
  CHECK(chi2 < 49.7);  // 23 degrees of freedom: above this once in a thousand
}

TEST_CASE("shuffle_storage: equal seeds agree, others differ, both 0 are drawn") {
  const auto run = [](std::uint64_t seed, std::uint64_t seed2) {
    shuffle_storage s(0, seed, seed2);
    order all(100);
    for (std::size_t i = 0; i < 100; ++i) all[i] = static_cast<std::int64_t>(i);
    put(s, all);
    const order out = take(s, 100);
    CHECK(sorted(out) == all);
    return out;
  };
  CHECK(run(1, 2) == run(1, 2));
  CHECK(run(1, 2) != run(2, 1));
  CHECK(run(1, 2) != run(1, 3));
  CHECK(run(0, 5) == run(0, 5));
  CHECK(run(0, 0) != run(0, 0));
}

TEST_CASE("storage: each kind has its own") {
  const auto gathers = [](queue_kind k) {
    queue_spec s = make_queue_spec(k, 9, {int64}, {.shapes = {{}}});
    return make_storage(s)->gathers();
  };
  CHECK(gathers(queue_kind::fifo));
  CHECK(gathers(queue_kind::padding_fifo));
  CHECK(gathers(queue_kind::random_shuffle));
  CHECK_FALSE(gathers(queue_kind::priority));
}
