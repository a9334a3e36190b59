// expect: gradus: slots are stored as float32, or with slots<bfloat16>{} or slots<int8>{} as one of these.
// at most: 12 lines
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/update/rules/adam.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  const auto x = g.placeholder("x", {gradus::batch, 2});
  return gradus::model_spec{
      .loss = gradus::reduce_mean(gradus::dense(x, {.units = 1})), .metrics = {}, .predictions = {}};
};

int main() {
#ifdef FIX
  constexpr auto type = gradus::bfloat16;
#else
  constexpr auto type = gradus::float16;
#endif
  auto s = gradus::make_static_stepper<model>(gradus::static_batch<1>{}, gradus::adam{}, gradus::slots<type>{});
  (void)s;
}
