// expect: gradus: the model was refused; the reason stands in the template arguments
// expect: one_by_one: Sum []
// at most: 40 lines
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/update/rules/adam.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  const auto loss = square(matmul(g.placeholder("x", {batch, 2}), g.variable("w", {2, 3})));
#ifdef FIX
  return model_spec{.loss = reduce_mean(loss), .metrics = {}, .predictions = {}};
#else
  return model_spec{.loss = reduce_sum(loss), .metrics = {}, .predictions = {}};
#endif
};

int main() {
  [[maybe_unused]] auto s =
      gradus::make_static_stepper<model>(gradus::static_batch<4>{}, gradus::adam{}, gradus::one_by_one{});
}
