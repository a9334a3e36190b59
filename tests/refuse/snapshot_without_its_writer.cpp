// expect: gradus: what writes a snapshot beside training is missing
#include <gradus/gradus.hpp>

#ifdef FIX
#include <gradus/checkpoint/background.hpp>
#else
#include <gradus/checkpoint/staging.hpp>
#endif

using namespace gradus;

inline constexpr auto net = [](graph& g) {
  const value x = g.placeholder("x", {batch, 2});
  return model_spec{.loss = reduce_mean(square(dense(x, {.units = 1})))};
};

int main() { make_trainer<net>(adam{}, copy_snapshot{}); }
