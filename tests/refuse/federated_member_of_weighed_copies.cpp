// expect: begins anew with each model of a federated_member, and an average beside it would
// within: 8 lines
#include <gradus/cluster/federated_member.hpp>
#include <gradus/gradus.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/update/average.hpp>
#include <gradus/update/rules/schedule_free.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  return model_spec{.loss = reduce_mean(square(dense(g.placeholder("x", {batch, 4}), {.units = 2})))};
};
#ifdef FIX
static auto trainer =
    gradus::make_static_stepper<model>(gradus::static_batch<1>{}, gradus::schedule_free_adamw{.rate = 0.1});
#else
static auto trainer =
    gradus::make_static_stepper<model>(gradus::static_batch<1>{}, gradus::schedule_free_adamw{.rate = 0.1},
                                       gradus::exponential_moving_average{.decay = 0.9});
#endif
static std::byte room[trainer.variable_bytes];

int main() { gradus::federated_member member(trainer, 0, room); }
