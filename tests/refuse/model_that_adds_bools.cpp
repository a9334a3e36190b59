// A sum of bools is refused where it is built; it was computed in numbers that bools are not.
// expect: gradus: the model was refused; the reason stands in the template arguments
// expect: this_model_was_refused
// expect: {"AssignAdd: takes numbers, "}
// expect: {"got bool; use cast "}
// within: 8 lines
// at most: 40 lines
#include <gradus/gradus.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  auto y = dense(g.placeholder("x", {batch, 4}), {.units = 2});
#ifdef FIX
  auto seen = g.variable("seen", {2}, {.init = zeros, .trainable = false});
  g.add_to(collection::update_ops, assign_add(seen, g.constant(1, float32, {2})));
#else
  auto seen = g.variable("seen", {2}, {.init = zeros, .trainable = false, .type = boolean});
  g.add_to(collection::update_ops, assign_add(seen, g.constant(1, boolean, {2})));
#endif
  return model_spec{.loss = reduce_mean(square(y))};
};

int main() { gradus::make_trainer<model>(gradus::adam{}); }
