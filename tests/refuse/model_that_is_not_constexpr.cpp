// expect: gradus: the compiler cannot run this model function; declare it `constexpr`, a lambda behind its
// within: 8 lines
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
