// expect: gradus: this dataset is const, but reading moves it on
// within: 8 lines
// at most: 40 lines
#include <gradus/gradus.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  auto x = g.placeholder("x", {batch, 4});
  return model_spec{.loss = reduce_mean(square(dense(x, {.units = 3})))};
};

auto data() {
  static const float x[4] = {};
  return gradus::from_spans("x", x, gradus::extents{4});
}

int main() {
#ifdef FIX
  auto d = data().batch(2);
  gradus::make_trainer<model>(gradus::adam{}).train(d, {.steps = 1});
#else
  const auto d = data().batch(2);
  gradus::make_trainer<model>(gradus::adam{}).train(d, {.steps = 1});
#endif
}
