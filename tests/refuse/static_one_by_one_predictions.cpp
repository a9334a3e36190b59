// expect: gradus: the model was refused; the reason stands in the template arguments
// expect: predict, Sub [batch, 3] is
// at most: 40 lines
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/update/rules/adam.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  const auto h = dense(g.placeholder("x", {batch, 2}), {.units = 3});
#ifdef FIX
  const auto shown = h - reduce_mean(h, {1}, true);
#else
  const auto shown = g.mode() == mode::predict ? h - reduce_mean(h, {0}, true) : h;
#endif
  return model_spec{.loss = reduce_mean(square(h)), .metrics = {}, .predictions = {{"p", shown}}};
};

int main() {
  auto s = gradus::make_static_stepper<model>(gradus::static_batch<4>{}, gradus::adam{}, gradus::one_by_one{});
  s.predict();
}
