// expect: gradus: the model was refused
// expect: {"the loss must be a scalar, "}
// expect: {"got [batch]; reduce_mean it"}
// within: 8 lines
// at most: 40 lines
#include <gradus/gradus.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  auto x = g.placeholder("x", {batch, 4});
  auto label = g.placeholder("label", {batch}, int32);
  auto loss = sparse_softmax_cross_entropy(dense(x, {.units = 3}), label);
#ifdef FIX
  loss = reduce_mean(loss);
#endif
  return model_spec{.loss = loss};
};

int main() { gradus::make_trainer<model>(gradus::adam{}); }
