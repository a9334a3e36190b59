// expect: gradus: the compiler cannot run this model function; declare it `constexpr`, a lambda behind its
// at most: 20 lines
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/update/rules/adam.hpp>

#ifdef FIX
constexpr
#endif
    gradus::value
    block(gradus::value h) {
  return relu(gradus::dense(h, {.units = 4}));
}

inline constexpr auto model = [](gradus::graph& g) {
  const auto x = g.placeholder("x", {gradus::batch, 2});
  return gradus::model_spec{.loss = gradus::reduce_mean(block(x)), .metrics = {}, .predictions = {}};
};

int main() {
  auto s = gradus::make_static_stepper<model>(gradus::static_batch<1>{}, gradus::adam{});
  (void)s;
}
