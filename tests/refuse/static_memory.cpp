// expect: gradus: the stepper takes more memory than memory_at_most allows
// expect: it takes 112
// expect: allowed are 60000
// expect: with one_by_one
// at most: 40 lines
#include <gradus/run/memory_limit.hpp>
#include <gradus/run/static_step.hpp>

#include "../edge/cnn.hpp"

int main() {
  using namespace gradus;
#ifdef FIX
  static auto s = make_static_stepper<cnn>(static_batch<4>{}, adam{}, memory_at_most<60000>{}, one_by_one{});
#else
  static auto s = make_static_stepper<cnn>(static_batch<4>{}, adam{}, memory_at_most<60000>{});
#endif
  (void)s;
}
