// expect: gradus: the model was refused
// expect: {"the model has no loss: "}
// expect: {"return model_spec{.loss = "}
// within: 8 lines
// at most: 40 lines
#include <gradus/gradus.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  auto x = g.placeholder("x", {batch, 4});
  auto y = dense(x, {.units = 3});
#ifdef FIX
  return model_spec{.loss = reduce_mean(square(y)), .predictions = {{"y", y}}};
#else
  return model_spec{.predictions = {{"y", y}}};
#endif
};

int main() { gradus::make_trainer<model>(gradus::adam{}); }
