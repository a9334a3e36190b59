#include <gradus/run/device.hpp>

#include <doctest/doctest.h>

#include <gradus/cpu/device.hpp>
#include <gradus/run/updater.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <type_traits>

using namespace gradus;

TEST_CASE("the default device is the cpu with fast arithmetic, and users need not name it") {
  static_assert(std::is_base_of_v<cpu<fast>, default_device>);
  std::vector<float> w{1, 2};
  updater u{gradient_descent{.rate = 0.5}};
  static_assert(std::is_same_v<decltype(u), updater<default_device, gradient_descent>>);
  u.track("w", w);
  u.apply({{"w", std::vector<float>{2, 2}}});
  CHECK(w == std::vector<float>{0, 1});
}
