// expect: gradus: predict calls its second argument with every batch
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
  gradus::make_trainer<model>(gradus::adam{}).predict(data().batch(2), [](const gradus::predictions&) {});
#else
  gradus::make_trainer<model>(gradus::adam{}).predict(data().batch(2), [](float) {});
#endif
}
