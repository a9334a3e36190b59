// expect: gradus: one_by_one adds up the gradients of all examples
// at most: 40 lines
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/update/rules/adam.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  const auto x = g.placeholder("x", {gradus::batch, 2});
  return gradus::model_spec{
      .loss = gradus::reduce_mean(gradus::dense(x, {.units = 1})), .metrics = {}, .predictions = {}};
};

int main() {
  using namespace gradus;
#ifdef FIX
  auto s = make_static_stepper<model>(static_batch<4>{}, adam{}, one_by_one{});
#else
  auto s = make_static_stepper<model>(static_batch<4>{}, adam{}, one_by_one{}, release_gradients{});
#endif
  (void)s;
}
