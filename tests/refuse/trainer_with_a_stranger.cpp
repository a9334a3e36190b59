// expect: gradus: this argument is not a policy
// expect: double
// within: 8 lines
// at most: 40 lines
#include <gradus/gradus.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  auto x = g.placeholder("x", {batch, 4});
  return model_spec{.loss = reduce_mean(square(dense(x, {.units = 3})))};
};

int main() {
#ifdef FIX
  gradus::make_trainer<model>(gradus::adam{});
#else
  gradus::make_trainer<model>(gradus::adam{}, 0.001);
#endif
}
