// expect: gradus: two policies of one kind were given; keep one
// expect: momentum
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
  gradus::make_trainer<model>(gradus::adam{}, gradus::momentum{.rate = 0.1});
#endif
}
