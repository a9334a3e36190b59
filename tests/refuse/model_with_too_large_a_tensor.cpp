// All pairs of 2^16 places, for each example: more numbers than the extents of a kernel, which are ints, can count.
// expect: gradus: the model was refused; the reason stands in the template arguments
// expect: this_model_was_refused
// expect: {"Mul: the result [batch, "}
// within: 8 lines
// at most: 40 lines
#include <gradus/gradus.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
#ifdef FIX
  constexpr int places = 1 << 4;
#else
  constexpr int places = 1 << 16;
#endif
  auto x = g.placeholder("x", {batch, places, 1});
  auto pairs = x * reshape(x, {batch, 1, places});
  auto y = reduce_mean(pairs, {1});
  return model_spec{.loss = reduce_mean(square(dense(y, {.units = 1})))};
};

int main() { gradus::make_trainer<model>(gradus::adam{}); }
