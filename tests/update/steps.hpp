// A few steps of an update on float64 memory, for tests that compare with numbers worked out by hand.
#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <gradus/cpu/sweeps.hpp>
#include <gradus/run/updater.hpp>
#include <string>
#include <vector>

namespace steps {

using vec = std::vector<double>;

template <class... P>
using updater = gradus::updater<gradus::sweeps<gradus::fast>, P...>;

// The variable "w" after a step for each gradient.
template <class... P>
vec after(vec w, const std::vector<vec>& gradients, const P&... policies) {
  updater<P...> u(policies...);
  u.track("w", w);
  for (const auto& g : gradients) u.apply({{"w", g}});
  return w;
}
// As a matrix [rows, columns].
template <class... P>
vec after_on_matrix(vec w, std::int64_t columns, const std::vector<vec>& gradients, const P&... policies) {
  updater<P...> u(policies...);
  u.track("w", gradus::tensor_view(std::span<double>(w), {static_cast<std::int64_t>(w.size()) / columns, columns}));
  for (const auto& g : gradients) u.apply({{"w", g}});
  return w;
}
inline void near(const vec& got, const vec& want, double tolerance = 1e-12) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("element ", i, ": ", got[i], " for ", want[i]);
    CHECK(std::fabs(got[i] - want[i]) <= tolerance);
  }
}
// f() raises invalid_argument, and says so.
template <class F>
void refused(F f, const char* says) {
  try {
    f();
    FAIL("expected an error that says ", says);
  } catch (const gradus::invalid_argument& e) {
    INFO(e.what());
    CHECK(std::string(e.what()).find(says) != std::string::npos);
  }
}

}  // namespace steps
