// expect: gradus: the stepper takes more memory than memory_at_most allows
// at most: 40 lines
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/update/rules/adam.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  auto h = dense(g.placeholder("x", {batch, 2}), {.units = 3});
  const auto loss = reduce_mean(square(h));
  if (g.mode() == mode::predict)
    h = h + assign_add(g.variable("seen", {3}, {.init = zeros, .trainable = false, .local = true}),
                       g.constant(1, float32, {3}));
  return model_spec{.loss = loss, .metrics = {}, .predictions = {{"p", h}}};
};

#ifdef FIX
constexpr std::size_t limit = 100'000;
#else
constexpr std::size_t limit = 100;
#endif
int main() {
  auto s =
      gradus::make_static_stepper<model>(gradus::static_batch<4>{}, gradus::adam{}, gradus::memory_at_most<limit>{});
  s.predict();
}
