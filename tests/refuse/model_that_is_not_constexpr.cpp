// expect-g++: call to non-'constexpr' function 'gradus::model_spec model(gradus::graph&)'
// expect-clang: non-constexpr function 'model' cannot be used in a constant expression
#include <gradus/gradus.hpp>

#ifdef FIX
constexpr
#endif
    gradus::model_spec
    model(gradus::graph& g) {
  using namespace gradus;
  auto x = g.placeholder("x", {batch, 4});
  return {.loss = reduce_mean(square(dense(x, {.units = 3})))};
}

int main() { gradus::make_trainer<model>(gradus::adam{}); }
