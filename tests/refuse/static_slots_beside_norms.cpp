// expect: gradus: slots<bfloat16> and slots<int8> take rules on numbers
// at most: 40 lines
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/lamb.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  const auto x = g.placeholder("x", {gradus::batch, 2});
  return gradus::model_spec{
      .loss = gradus::reduce_mean(gradus::dense(x, {.units = 1})), .metrics = {}, .predictions = {}};
};

int main() {
#ifdef FIX
  const gradus::adam rule{};
#else
  const gradus::lamb rule{.rate = 0.01};
#endif
  auto s = gradus::make_static_stepper<model>(gradus::static_batch<1>{}, rule, gradus::slots<gradus::bfloat16>{});
  (void)s;
}
