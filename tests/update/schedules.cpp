// without sanitizers: arithmetic
// Every schedule of the list: the step alone decides its rate, and a number that is none shows where an update is made
// of it, or at the step whose rate it spoils. Nothing has to be written here for a new one.
#include <gradus/update/schedules.hpp>

#include <doctest/doctest.h>

#include <gradus/update/composed.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <limits>
#include <string>
#include <type_traits>

#include "schedule_cases.hpp"

using namespace gradus;

namespace {

// An aggregate's members, one after the other: f(member).
struct anything {
  template <class T>
  operator T() const;
};
template <class S, std::size_t... I>
consteval bool takes(std::index_sequence<I...>) {
  return requires { S{(void(I), anything{})...}; };
}
template <class S, std::size_t N = 0>
consteval std::size_t count() {
  if constexpr (takes<S>(std::make_index_sequence<N + 1>{}))
    return count<S, N + 1>();
  else
    return N;
}
template <class S, class F>
void each_member(S& s, F f) {
  constexpr std::size_t n = count<S>();
  static_assert(n >= 1 && n <= 8, "a schedule with more members needs one line more here");
  const auto all = [&](auto&... members) { (f(members), ...); };
  if constexpr (n == 1) {
    auto& [a] = s;
    all(a);
  } else if constexpr (n == 2) {
    auto& [a, b] = s;
    all(a, b);
  } else if constexpr (n == 3) {
    auto& [a, b, c] = s;
    all(a, b, c);
  } else if constexpr (n == 4) {
    auto& [a, b, c, d] = s;
    all(a, b, c, d);
  } else if constexpr (n == 5) {
    auto& [a, b, c, d, e] = s;
    all(a, b, c, d, e);
  } else if constexpr (n == 6) {
    auto& [a, b, c, d, e, g] = s;
    all(a, b, c, d, e, g);
  } else if constexpr (n == 7) {
    auto& [a, b, c, d, e, g, h] = s;
    all(a, b, c, d, e, g, h);
  } else {
    auto& [a, b, c, d, e, g, h, i] = s;
    all(a, b, c, d, e, g, h, i);
  }
}
// What an update of this schedule is refused with: when it is made, or at one of its first steps.
template <class S>
std::string refusal(const S& schedule) {
  try {
    composed u{gradient_descent{}, schedule};
    for (std::int64_t step = 0; step < 60; ++step) (void)u.template prepare<float>(step);
  } catch (const invalid_argument& e) {
    return e.what();
  }
  return "";
}
template <class T>
constexpr bool counts_steps = std::is_same_v<T, std::int64_t>;

// One that is taken, of which every setting has an effect: counts of steps that were left out are 4, 8, 12; if it still
// is refused, so many steps are a double.
template <class S>
S usable() {
  S s{};
  std::int64_t steps = 0;
  each_member(s, [&](auto& x) {
    if constexpr (counts_steps<std::remove_reference_t<decltype(x)>>)
      if (x == 0 || x == 1) x = steps += 4;
  });
  for (const double missing : {1.0, 0.0})  // the default of one that would be over at step 1, or that has to be set
    if (refusal(s) != "")
      each_member(s, [&](auto& x) {
        if constexpr (std::is_same_v<std::remove_reference_t<decltype(x)>, double>)
          if (x == missing) x = 9;
      });
  return s;
}

}  // namespace

TEST_CASE("the step alone decides every schedule's rate") {
  std::size_t seen = 0;
  all_schedules::for_each([&]<class S>(std::type_identity<S>) {
    if constexpr (std::is_same_v<S, piecewise_constant>)  // it has lists
      golden::check_pure(S{.boundaries = {50, 99}, .values = {0.3, 0.2, 0.1}});
    else
      golden::check_pure(usable<S>());
    ++seen;
  });
  CHECK(seen == all_schedules::size);
}
TEST_CASE("every number of every schedule is refused if it is none") {
  all_schedules::for_each([]<class S>(std::type_identity<S>) {
    const std::string which = __PRETTY_FUNCTION__;
    INFO(which);
    if constexpr (!std::is_same_v<S, piecewise_constant>) {
      const S good = usable<S>();
      CHECK(refusal(good) == "");
      std::size_t at = 0, numbers = 0;
      S bad = good;
      each_member(bad, [&](auto& x) {
        INFO("member ", at);
        const auto kept = x;
        using member = std::remove_cvref_t<decltype(x)>;
        if constexpr (counts_steps<member>) {
          x = -1;
          CHECK(refusal(bad).find(", found -1") != std::string::npos);
          ++numbers;
        } else if constexpr (std::is_same_v<member, double>) {
          x = std::numeric_limits<double>::quiet_NaN();
          CHECK(refusal(bad) != "");
          ++numbers;
        }
        x = kept;
        ++at;
      });
      CHECK(numbers > 0);
    }
  });
}
