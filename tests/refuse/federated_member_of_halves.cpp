// expect: gradus: a federated_member exchanges variables of float32
// within: 8 lines
#include <gradus/cluster/federated_member.hpp>
#include <gradus/gradus.hpp>
#include <gradus/run/static_step.hpp>

#ifdef FIX
inline constexpr gradus::dtype kept = gradus::float32;
#else
inline constexpr gradus::dtype kept = gradus::bfloat16;
#endif
// A number that is not trained and that checkpoints hold.
inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  const auto offset = g.variable("offset", {4}, {.init = constant_initializer(0), .trainable = false, .type = kept});
  return model_spec{.loss = reduce_mean(square(g.variable("w", {4}) - cast(offset, float32)))};
};
static auto trainer = gradus::make_static_stepper<model>(gradus::static_batch<1>{}, gradus::adam{});
static std::byte room[32];

int main() { gradus::federated_member member(trainer, 0, room); }
