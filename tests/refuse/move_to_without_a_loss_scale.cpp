// expect: gradus: dynamic_loss_scale moves the factor of the gradients
// expect: move_to(u.global_step(), u.loss_scale())
// at most: 14 lines
#include <gradus/cpu/device.hpp>
#include <gradus/run/stepper.hpp>
#include <gradus/run/updater.hpp>
#include <gradus/update/loss_scale.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

using namespace gradus;

int main() {
  const auto update = composed{gradient_descent{.rate = 0.25}, dynamic_loss_scale{}};
  using model = interpreted_model<cpu<fast>, ops<>, gating::op, false, true, dtype::none, true>;
  const auto build = [](graph& g) {
    const value w = g.variable("w", {}), x = g.placeholder("x", {batch});
    return model_spec{.loss = square(w - reduce_mean(x)), .metrics = {}, .predictions = {}};
  };
  stepper<model, std::remove_const_t<decltype(update)>, cpu<fast>> s(model{build}, update);
  s.allocate();
  updater u{gradient_descent{.rate = 0.25}, dynamic_loss_scale{}};
#ifdef FIX
  s.move_to(u.global_step(), u.loss_scale());
#else
  s.move_to(u.global_step());
#endif
}
