// expect: gradus: the stepper takes more memory than memory_at_most allows
// expect: allowed are 50000
// expect: with one_by_one and
// expect: slots<int8> together 45
// at most: 40 lines
#include <gradus/run/memory_limit.hpp>
#include <gradus/run/static_step.hpp>

#include "../edge/cnn.hpp"

int main() {
  using namespace gradus;
#ifdef FIX
  static auto s =
      make_static_stepper<cnn>(static_batch<4>{}, adam{}, memory_at_most<50000>{}, one_by_one{}, slots<int8>{});
#else
  static auto s = make_static_stepper<cnn>(static_batch<4>{}, adam{}, memory_at_most<50000>{});
#endif
  (void)s;
}
