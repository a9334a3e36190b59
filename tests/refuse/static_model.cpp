// expect: gradus: the model was refused; the reason stands in the template arguments
// expect: this_model_was_refused
// at most: 40 lines
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/update/rules/adam.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  const auto x = g.placeholder("x", {batch, 2});
#ifdef FIX
  const auto w = g.variable("w", {2, 3});
#else
  const auto w = g.variable("w", {3, 2});
#endif
  return model_spec{.loss = reduce_mean(square(matmul(x, w))), .metrics = {}, .predictions = {}};
};

int main() { [[maybe_unused]] auto s = gradus::make_static_stepper<model>(gradus::static_batch<4>{}, gradus::adam{}); }
