// expect: gradus: this policy is not one that is taken here, because one_by_one and release_gradients say how long
// expect: make_static_stepper takes it
#include <gradus/gradus.hpp>
#include <gradus/run/static_step.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  const auto x = g.placeholder("x", {gradus::batch, 2});
  return gradus::model_spec{
      .loss = gradus::reduce_mean(gradus::dense(x, {.units = 1})), .metrics = {}, .predictions = {}};
};

int main() {
  using namespace gradus;
#ifdef FIX
  auto s = make_static_stepper<model>(adam{}, release_gradients{}, static_batch<4>{});
#else
  auto s = make_trainer<model>(adam{}, release_gradients{});
#endif
  (void)s;
}
