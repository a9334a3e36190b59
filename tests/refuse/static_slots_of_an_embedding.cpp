// expect: gradus: slots<bfloat16> and slots<int8> take variables of float32 without constraints
// expect: leave the slots policy out, or the embedding
// at most: 40 lines
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/update/rules/adam.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  const auto rows =
      gradus::embedding(g.placeholder("ids", {gradus::batch, 3}, gradus::int32), {.input_dim = 9, .output_dim = 2});
  return gradus::model_spec{.loss = gradus::reduce_mean(gradus::square(rows)), .metrics = {}, .predictions = {}};
};

int main() {
  using namespace gradus;
#ifdef FIX
  auto s = make_static_stepper<model>(static_batch<1>{}, adam{});
#else
  auto s = make_static_stepper<model>(static_batch<1>{}, adam{}, slots<bfloat16>{});
#endif
  (void)s;
}
