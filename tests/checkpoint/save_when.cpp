#include "gradus/checkpoint/save_when.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

using namespace gradus;

namespace {
// The steps 1..last that are due, one second each, every due one saved.
template <class Decision>
std::vector<std::int64_t> due_steps(Decision d, std::int64_t last) {
  std::vector<std::int64_t> out;
  save_moment now;
  for (now.step = 1; now.step <= last; ++now.step) {
    now.elapsed = static_cast<double>(now.step);
    if (!d.due(now)) continue;
    out.push_back(now.step);
    now.saved_step = now.step, now.saved_elapsed = now.elapsed;
  }
  return out;
}
using steps = std::vector<std::int64_t>;
}  // namespace

TEST_CASE("save_when: every so many steps are multiples of the step's number; 0 is never") {
  CHECK(due_steps(every_steps{3}, 10) == steps{3, 6, 9});
  CHECK(due_steps(every_steps{0}, 10).empty());
}

TEST_CASE("save_when: every so many seconds count from the last save") {
  CHECK(due_steps(every_seconds{4}, 10) == steps{4, 8});
  CHECK(due_steps(every_seconds{0}, 10).empty());
  every_seconds e{4};
  CHECK(!e.due({.step = 9, .saved_step = 7, .elapsed = 9, .saved_elapsed = 7}));
}

TEST_CASE("save_when: a better metric than any before; none, and what is not finite, are not better") {
  when_better higher;
  const auto with = [](std::optional<double> metric) { return save_moment{.step = 1, .metric = metric}; };
  CHECK(!higher.due(with(std::nullopt)));
  CHECK(!higher.due(with(std::numeric_limits<double>::quiet_NaN())));
  CHECK(!higher.due(with(std::numeric_limits<double>::infinity())));
  CHECK(higher.due(with(-1)));
  CHECK(!higher.due(with(-1)));
  CHECK(!higher.due(with(-2)));
  CHECK(higher.due(with(0.5)));
  when_better lower{.higher_is_better = false};
  CHECK(lower.due(with(3)));
  CHECK(!lower.due(with(4)));
  CHECK(lower.due(with(2)));
}

TEST_CASE("save_when: any_of asks each of them every time, and stops when one does") {
  CHECK(due_steps(any_of{every_steps{5}, every_seconds{3}}, 11) == steps{3, 5, 8, 10});
  // A decision that counts must see every step, also where another one has said yes already.
  struct counts {
    using policy_for = kind::save_when;
    int* asked;
    bool due(const save_moment&) { return ++*asked == 3; }
    bool stop() const { return *asked >= 4; }
  };
  int asked = 0;
  any_of d{every_steps{1}, counts{&asked}};
  for (int i = 0; i < 3; ++i) CHECK(d.due({.step = 1}));
  CHECK(asked == 3);
  CHECK(!d.stop());
  CHECK(d.due({.step = 1}));
  CHECK(d.stop());
}
