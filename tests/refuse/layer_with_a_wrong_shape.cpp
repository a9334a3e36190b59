// A layer is refused by its own name.
// expect: gradus: the model was refused
// expect: {"dense \"hidden\": needs units "}
// within: 8 lines
// at most: 40 lines
#include <gradus/gradus.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  auto x = g.placeholder("x", {batch, 4});
#ifdef FIX
  auto hidden = dense(x, {.units = 8, .name = "hidden"});
#else
  auto hidden = dense(x, {.name = "hidden"});
#endif
  return model_spec{.loss = reduce_mean(square(hidden))};
};

int main() { gradus::make_trainer<model>(gradus::adam{}); }
