// expect: gradus: this dataset is batched already; one batch(n) is enough
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
  data().batch(2);
#else
  data().batch(2).batch(2);
#endif
}
