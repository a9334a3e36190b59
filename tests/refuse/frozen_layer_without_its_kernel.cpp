// expect: gradus: this op has no kernel here. Include the header of its kernel
// at most: 200 lines
#include <gradus/gradus.hpp>
#include <gradus/ops/frozen.hpp>
#ifdef FIX
#include <gradus/cpu/frozen.hpp>
#endif

inline constexpr gradus::frozen_dense_weights<4, 2> weights{};
inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  auto h = frozen_dense<weights>(g.placeholder("x", {batch, 4}));
  return model_spec{.loss = reduce_mean(square(dense(h, {.units = 1})))};
};

int main() { gradus::make_trainer<model>(gradus::adam{}); }
