// expect: gradus: a federated_member exchanges variables of float32; this model has none, or others too
// within: 8 lines
#include <gradus/cluster/federated_member.hpp>
#include <gradus/gradus.hpp>
#include <gradus/run/static_step.hpp>

#ifdef FIX
inline constexpr gradus::dtype trained = gradus::float32;
#else
inline constexpr gradus::dtype trained = gradus::float64;
#endif
inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  return model_spec{.loss = reduce_mean(square(g.variable("w", {4}, {.type = trained})))};
};
static auto trainer = gradus::make_static_stepper<model>(gradus::static_batch<1>{}, gradus::adam{});
static std::byte room[32];

int main() { gradus::federated_member member(trainer, 0, room); }
