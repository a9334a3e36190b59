// expect: gradus: the batch size is not known; add gradus::static_batch<N>{} to the policies
// at most: 40 lines
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
  auto s = gradus::make_static_stepper<model>(gradus::adam{}, gradus::static_batch<4>{});
#else
  auto s = gradus::make_static_stepper<model>(gradus::adam{});
#endif
  (void)s;
}
