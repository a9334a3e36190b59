// expect: gradus: predictor<model> has no policies; a predictor with policies is made by make_predictor<model>(
// within: 8 lines
// at most: 20 lines
#include <gradus/train/predictor.hpp>

#include <gradus/ops/layer.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  const auto x = g.placeholder("x", {batch, 4});
  return model_spec{.loss = reduce_mean(square(dense(x, {.units = 3})))};
};

int main() {
#ifdef FIX
  const auto p = gradus::make_predictor<model>({.model_dir = "runs/a"}, gradus::portable{});
#else
  const gradus::predictor<model> p({.model_dir = "runs/a"}, gradus::portable{});
#endif
  (void)p;
}
