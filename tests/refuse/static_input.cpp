// expect: gradus: the model has no placeholder of this name
// within: 8 lines
// at most: 20 lines
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
  auto s = gradus::make_static_stepper<model>(gradus::static_batch<4>{}, gradus::adam{});
#ifdef FIX
  s.input<"x">()[0] = 1;
#else
  s.input<"X">()[0] = 1;
#endif
}
