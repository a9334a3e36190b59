// expect: gradus: a trainer takes batches, and this dataset gives one element at a time
// expect: end the pipeline with `.batch(n)`.
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
  gradus::make_trainer<model>(gradus::adam{}).train(data().batch(2), {.steps = 1});
#else
  gradus::make_trainer<model>(gradus::adam{}).train(data(), {.steps = 1});
#endif
}
