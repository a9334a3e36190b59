// expect: gradus: the model was refused
// expect: {"the model has no trainable "}
// expect: {"variables"}
// within: 8 lines
// at most: 40 lines
#include <gradus/gradus.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  auto x = g.placeholder("x", {batch, 4});
#ifdef FIX
  x = dense(x, {.units = 3});
#endif
  return model_spec{.loss = reduce_mean(square(x))};
};

int main() { gradus::make_trainer<model>(gradus::adam{}); }
