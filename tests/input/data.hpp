// What the tests of stages share that work datum by datum.
#pragma once
#include <gradus/input/any_dataset.hpp>
#include <gradus/input/range.hpp>

#include <doctest/doctest.h>

#include <vector>

#include "../message.hpp"

namespace data_tests {

using namespace gradus;
using ints = std::vector<std::int64_t>;

inline std::int64_t value_of(const datum& e) { return e.value<std::int64_t>(0); }
inline const components scalar = {{"value", int64, {}}}, vectors = {{"value", int64, {any_extent}}};

// The int64 values of what comes, in a row.
inline ints all_of(any_dataset d, std::size_t most = 1000) {
  ints out;
  datum e;
  for (; most > 0 && d.next(e); --most)
    for (const auto v : e.values<std::int64_t>(0)) out.push_back(v);
  return out;
}
// Element by element, or batch by batch.
inline std::vector<ints> lists_of(any_dataset d) {
  std::vector<ints> out;
  datum e;
  while (d.next(e)) {
    const auto v = e.values<std::int64_t>(0);
    out.emplace_back(v.begin(), v.end());
  }
  return out;
}

// Interrupted after k elements, for every k and the end, saved and restored in a pipeline that `make` makes anew, the
// stream goes on; also in one that was elsewhere, and after a rewind.
inline void resumes(const std::function<any_dataset()>& make, std::size_t most = 40) {
  any_dataset whole = make();
  std::vector<datum> all;
  for (datum e; all.size() < most && whole.next(e);) all.push_back(e);
  const auto rest_is = [&](any_dataset& d, std::size_t k) {
    datum e;
    for (; k < all.size(); ++k) {
      REQUIRE(d.next(e));
      REQUIRE(e == all[k]);
    }
    if (all.size() < most) REQUIRE(!d.next(e));
  };
  for (std::size_t k = 0; k <= all.size(); ++k) {
    CAPTURE(k);
    any_dataset first = make(), second = make();
    datum e;
    for (std::size_t i = 0; i < k; ++i) first.next(e);
    if (k == all.size() && k < most) first.next(e);  // the end was seen
    std::vector<std::byte> at;
    first.save(at);
    for (std::size_t i = 0; i < k % 5; ++i) second.next(e);
    second.load(at);
    rest_is(second, k);
    rest_is(first, k);
    first.rewind(), second.rewind();
    for (int i = 0; i < 3; ++i) {
      datum a, b;
      REQUIRE(first.next(a) == second.next(b));
      REQUIRE(a == b);
    }
  }
}

}  // namespace data_tests
