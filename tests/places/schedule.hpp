// Half-life: a rate that is halved every so many steps. A template: tests/places/places.py adds it.
#pragma once
#include "../schedule.hpp"

namespace gradus::inline GRADUS_BUILD {

// Value: initial / 2^(s / half_life)
// Settings: `initial, half_life`
struct halved_rate {
  using policy_for = kind::schedule;
  double initial = 0.001;
  std::int64_t half_life = 1000;

  constexpr void check() const { detail::check_bound("halved_rate", "half_life", static_cast<double>(half_life)); }
  constexpr double operator()(std::int64_t global_step) const {
    return initial * portable_math::pow(0.5, static_cast<double>(global_step) / static_cast<double>(half_life));
  }
};

}  // namespace gradus
