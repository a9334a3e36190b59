// expect: gradus: slots<bfloat16> and slots<int8> would round the copies of the weights
// expect: keeps in a slot (lookahead); leave the slots policy out, or that part.
// at most: 40 lines
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/update/chain.hpp>
#include <gradus/update/lookahead.hpp>
#include <gradus/update/rules/adam.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  const auto x = g.placeholder("x", {gradus::batch, 2});
  return gradus::model_spec{
      .loss = gradus::reduce_mean(gradus::dense(x, {.units = 1})), .metrics = {}, .predictions = {}};
};

int main() {
  using namespace gradus;
#ifdef FIX
  auto s = make_static_stepper<model>(static_batch<1>{}, chain{adam{}, lookahead{}});
#else
  auto s = make_static_stepper<model>(static_batch<1>{}, chain{adam{}, lookahead{}}, slots<int8>{});
#endif
  (void)s;
}
