// expect: gradus: slots<int8> would round the weights of this rule (ftrl, adagrad_da)
// expect: its slots alone; use slots<bfloat16>, or another rule.
// at most: 40 lines
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/update/rules/ftrl.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  const auto x = g.placeholder("x", {gradus::batch, 2});
  return gradus::model_spec{
      .loss = gradus::reduce_mean(gradus::dense(x, {.units = 1})), .metrics = {}, .predictions = {}};
};

int main() {
#ifdef FIX
  constexpr auto type = gradus::bfloat16;
#else
  constexpr auto type = gradus::int8;
#endif
  auto s =
      gradus::make_static_stepper<model>(gradus::static_batch<1>{}, gradus::ftrl{.rate = 0.1}, gradus::slots<type>{});
  (void)s;
}
