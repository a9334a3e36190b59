// expect: gradus: no rule was given; add one, such as gradus::adam{}, to the policies.
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
  gradus::make_trainer<model>(gradus::adam{}, gradus::clip_by_global_norm{1.0});
#else
  gradus::make_trainer<model>(gradus::clip_by_global_norm{1.0});
#endif
}
