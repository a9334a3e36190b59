// expect: gradus: the tasks of a cluster pass no value to a schedule that observes one (reduce_on_plateau); train in
// one
#include <gradus/cluster/connected.hpp>
#include <gradus/gradus.hpp>
#include <gradus/update/schedules/cosine.hpp>
#include <gradus/update/schedules/plateau.hpp>

#ifdef FIX
using schedule = gradus::cosine_decay;
#else
using schedule = gradus::reduce_on_plateau;
#endif
inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  return model_spec{.loss = reduce_mean(square(g.variable("w", {4})))};
};

void train(gradus::server& here) {
  auto trainer = gradus::make_trainer<model>(gradus::connected{here}, gradus::adam{}, schedule{.initial = 0.01});
}
