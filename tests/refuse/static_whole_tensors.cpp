// expect: gradus: this rule, or clip, or noise needs a copy of the gradient, which a static stepper has no room for
// at most: 40 lines
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/muon.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  const auto x = g.placeholder("x", {gradus::batch, 2});
  return gradus::model_spec{
      .loss = gradus::reduce_mean(gradus::dense(x, {.units = 1})), .metrics = {}, .predictions = {}};
};

int main() {
#ifdef FIX
  auto s = gradus::make_static_stepper<model>(gradus::static_batch<4>{}, gradus::adam{});
#else
  auto s = gradus::make_static_stepper<model>(gradus::static_batch<4>{}, gradus::muon{});
#endif
  (void)s;
}
