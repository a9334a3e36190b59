// expect: gradus: release_gradients updates a variable before the other gradients are there
// expect: the global norm, loss scale or not_finite needs all of them; leave one of the two out.
// at most: 40 lines
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/update/clip.hpp>
#include <gradus/update/rules/adam.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  const auto x = g.placeholder("x", {gradus::batch, 2});
  return gradus::model_spec{
      .loss = gradus::reduce_mean(gradus::dense(x, {.units = 1})), .metrics = {}, .predictions = {}};
};

int main() {
#ifdef FIX
  auto s = gradus::make_static_stepper<model>(gradus::static_batch<1>{}, gradus::adam{}, gradus::release_gradients{});
#else
  auto s = gradus::make_static_stepper<model>(gradus::static_batch<1>{}, gradus::adam{}, gradus::release_gradients{},
                                              gradus::clip_by_global_norm{1.0});
#endif
  (void)s;
}
