// expect: was given without the cluster; add gradus::connected{server}.
// at most: 60 lines
#include <gradus/cluster/recovery.hpp>
#include <gradus/gradus.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  auto x = g.placeholder("x", {batch, 4});
  return model_spec{.loss = reduce_mean(square(dense(x, {.units = 3})))};
};

int main() {
#ifdef FIX
  gradus::make_trainer<model>(gradus::adam{});
#else
  gradus::make_trainer<model>(gradus::adam{}, gradus::recovery::log{.directory = "logs"});
#endif
}
