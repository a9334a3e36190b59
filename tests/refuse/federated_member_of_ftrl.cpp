// expect: computes the variables from its slots alone, so the first step would discard the server's model
// within: 8 lines
#include <gradus/cluster/federated_member.hpp>
#include <gradus/gradus.hpp>
#include <gradus/run/static_step.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  return model_spec{.loss = reduce_mean(square(dense(g.placeholder("x", {batch, 4}), {.units = 2})))};
};
#ifdef FIX
inline constexpr auto of_biases = gradus::adagrad{.rate = 0.1};
#else
inline constexpr auto of_biases = gradus::ftrl{.rate = 0.1};
#endif
// A rule of a group alone, too.
static auto trainer = gradus::make_static_stepper<model>(
    gradus::static_batch<1>{}, gradus::multi{gradus::on{gradus::matrices{}, gradus::adam{.rate = 0.1}}, of_biases});
static std::byte room[trainer.variable_bytes];

int main() { gradus::federated_member member(trainer, 0, room); }
