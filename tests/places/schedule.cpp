// A template: tests/places/places.py adds it.
#include <gradus/update/schedules/halved_rate.hpp>

#include <doctest/doctest.h>

TEST_CASE("halved_rate halves") {
  constexpr gradus::halved_rate s{.initial = 0.5, .half_life = 4};
  static_assert(s(0) == 0.5 && s(4) == 0.25 && s(8) == 0.125);
}
