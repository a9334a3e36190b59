// expect: gradus: the model was refused; the reason stands in the template arguments
// expect: one_by_one: in mode predict
// at most: 40 lines
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/update/rules/adam.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  auto h = dense(g.placeholder("x", {batch, 2}), {.units = 3});
  const auto loss = reduce_mean(square(h));
#ifndef FIX
  if (g.mode() == mode::predict)
    h = h + assign_add(g.variable("seen", {3}, {.init = zeros, .trainable = false, .local = true}),
                       g.constant(1, float32, {3}));
#endif
  return model_spec{.loss = loss, .metrics = {}, .predictions = {{"p", h}}};
};

int main() {
  auto s = gradus::make_static_stepper<model>(gradus::static_batch<4>{}, gradus::adam{}, gradus::one_by_one{});
  s.predict();
}
