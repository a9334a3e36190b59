// expect: a trainer takes gradus::connected{server} as its connect policy
// at most: 60 lines
#include <gradus/gradus.hpp>
#include <gradus/session/master.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  auto x = g.placeholder("x", {batch, 4});
  return model_spec{.loss = reduce_mean(square(dense(x, {.units = 3})))};
};

int main() {
#ifdef FIX
  gradus::make_trainer<model>(gradus::adam{});
#else
  gradus::make_trainer<model>(gradus::adam{}, gradus::in_process{});
#endif
}
