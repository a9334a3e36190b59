// The golden cases of schedules: each test file replays those of its own functions.
#pragma once
#include <gradus/update/schedule.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "../golden/golden.hpp"

namespace golden {

// Settings of a case, or what the schedule takes when the case is silent.
inline void take(const json& args, const char* name, double& out) {
  if (args.contains(name)) out = args[name].get<double>();
}
inline void take(const json& args, const char* name, std::int64_t& out) {
  if (args.contains(name)) out = args[name].get<std::int64_t>();
}
inline void take(const json& args, const char* name, bool& out) {
  if (args.contains(name)) out = args[name].get<bool>();
}

// rate(step) of every step against the case's numbers: in double to its tolerance, and rounded to float to 2^-24 more.
template <class Rate>
void check_case(const json& c, const Rate& rate) {
  REQUIRE(c["steps"].size() == c["expect"].size());
  for (std::size_t i = 0; i < c["steps"].size(); ++i) {
    const auto step = c["steps"][i].get<std::int64_t>();
    const double want = number(c["expect"][i]), rtol = c["rtol"].get<double>(), atol = c["atol"].get<double>();
    INFO(c["id"].get<std::string>(), " step ", step);
    CHECK(near(rate(step), want, rtol, atol));
    CHECK(near(static_cast<double>(static_cast<float>(rate(step))), want, rtol + 0x1p-24, atol));
  }
}

// Every case of `fn`, made by make(args); returns how many there were.
template <class Make>
int check_cases(const char* fn, Make make) {
  int n = 0;
  for (const auto& c : read("schedules.json"))
    if (c["kind"] == "lr_schedule" && c["fn"] == fn) check_case(c, make(c["args"])), ++n;
  return n;
}

// The same steps, forwards, backwards and again, by two copies: the step alone decides.
template <class S>
void check_pure(const S& schedule) {
  static_assert(gradus::rate_schedule<S> && gradus::schedule_fits<S>::value);
  const S copy = schedule;
  std::vector<double> seen;
  for (std::int64_t s = 0; s < 300; ++s) seen.push_back(schedule(s));
  for (std::int64_t s = 300; s-- > 0;) {
    const double again = copy(s), before = seen[static_cast<std::size_t>(s)];
    CHECK((again == before || (std::isnan(again) && std::isnan(before))));
  }
}

}  // namespace golden
