// The refusal of a model names the op, the shapes and the variables; compilers print it in pieces of 28 characters.
// expect: gradus: the model was refused; the reason stands in the template arguments
// expect: this_model_was_refused
// expect: {"MatMul: inner extents "}
// expect: {"differ: 4 and 5 (x[batch, "}
// expect: {"4], weights[5, 3])"}
// within: 8 lines
// at most: 40 lines
#include <gradus/gradus.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  auto x = g.placeholder("x", {batch, 4});
#ifdef FIX
  auto w = g.variable("weights", {4, 3});
#else
  auto w = g.variable("weights", {5, 3});
#endif
  return model_spec{.loss = reduce_mean(square(matmul(x, w)))};
};

int main() { gradus::make_trainer<model>(gradus::adam{}); }
