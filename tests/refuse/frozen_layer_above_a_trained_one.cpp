// expect: FrozenMatMul with
// at most: 24 lines
#include <gradus/cpu/frozen.hpp>
#include <gradus/gradus.hpp>

inline constexpr gradus::frozen_dense_weights<4, 2> weights{};
inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  auto x = g.placeholder("x", {batch, 4});
#ifdef FIX
  auto h = dense(x, {.units = 4, .trainable = false});
#else
  auto h = dense(x, {.units = 4});
#endif
  return model_spec{.loss = reduce_mean(square(dense(frozen_dense<weights>(h), {.units = 1})))};
};

int main() { gradus::make_trainer<model>(gradus::adam{}); }
