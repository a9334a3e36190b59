// expect: gradus: slots<bfloat16> and slots<int8> take rules on numbers
// expect: no clip by a norm in a chain
// expect: give clip_by_global_norm beside the rule (adam{}, clip_by_global_norm{1}), not in a chain
// at most: 40 lines
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/update/chain.hpp>
#include <gradus/update/clip.hpp>
#include <gradus/update/rules/adam.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  const auto x = g.placeholder("x", {gradus::batch, 2});
  return gradus::model_spec{
      .loss = gradus::reduce_mean(gradus::dense(x, {.units = 1})), .metrics = {}, .predictions = {}};
};

int main() {
  using namespace gradus;
#ifdef FIX
  auto s = make_static_stepper<model>(static_batch<1>{}, adam{}, clip_by_global_norm{1}, slots<int8>{});
#else
  auto s = make_static_stepper<model>(static_batch<1>{}, chain{clip_by_global_norm{1}, adam{}}, slots<int8>{});
#endif
  (void)s;
}
