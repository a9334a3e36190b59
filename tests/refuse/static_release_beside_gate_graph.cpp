// expect: and gate_graph waits for all of them
// expect: waits for all of them; leave one of the two out.
// at most: 40 lines
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/run/gradient_life.hpp>
#include <gradus/run/static_step.hpp>
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
                                              gradus::gate_graph{});
#endif
  (void)s;
}
