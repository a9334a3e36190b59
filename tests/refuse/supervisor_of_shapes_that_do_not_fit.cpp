// expect: gradus: the model was refused; the reason stands in the template arguments, in pieces
// at most: 24 lines
#include <gradus/gradus.hpp>
#include <gradus/train/supervisor.hpp>

#ifdef FIX
inline constexpr int rows = 8;
#else
inline constexpr int rows = 7;
#endif
inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  auto x = g.placeholder("x", {batch, 8});
  return model_spec{.loss = reduce_mean(square(matmul(x, g.variable("w", {rows, 3}))))};
};

int main() { gradus::make_supervisor<model>({.logdir = "run"}, gradus::adam{}); }
