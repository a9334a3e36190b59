// [batch, 1] - [batch] broadcasts to [batch, batch]: refused by name, where NumPy would train on all pairs.
// expect: gradus: the model was refused; the reason stands in the template arguments
// expect: this_model_was_refused
// expect: {"Sub: the result would be "}
// within: 8 lines
// at most: 40 lines
#include <gradus/gradus.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  auto x = g.placeholder("x", {batch, 4});
#ifdef FIX
  auto y = g.placeholder("y", {batch, 1});
#else
  auto y = g.placeholder("y", {batch});
#endif
  return model_spec{.loss = reduce_mean(square(dense(x, {.units = 1}) - y))};
};

int main() { gradus::make_trainer<model>(gradus::adam{}); }
