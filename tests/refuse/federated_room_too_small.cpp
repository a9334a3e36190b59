// expect: gradus: the room of a federated_member has trainer.variable_bytes bytes or more
// within: 8 lines
#include <gradus/cluster/federated_member.hpp>
#include <gradus/gradus.hpp>
#include <gradus/run/static_step.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  return model_spec{.loss = reduce_mean(square(dense(g.placeholder("x", {batch, 4}), {.units = 2})))};
};
static auto trainer = gradus::make_static_stepper<model>(gradus::static_batch<1>{}, gradus::adam{});
#ifdef FIX
static std::byte room[trainer.variable_bytes];
#else
static std::byte room[32];
#endif

int main() { gradus::federated_member member(trainer, 0, room); }
