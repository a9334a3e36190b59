// expect: because slots<bfloat16> and slots<int8> say how a static stepper stores the slots of its rule
// expect: because one_by_one and release_gradients say how long a static stepper keeps its gradients
// expect: For one_by_one, make_trainer has microbatch{n, in_order}.
// expect: because static_batch<N> fixes the batch size of a static stepper
// expect: because memory_at_most<N> limits the memory of a static stepper
#include <gradus/gradus.hpp>
#include <gradus/run/static_step.hpp>

inline constexpr auto model = [](gradus::graph& g) {
  const auto x = g.placeholder("x", {gradus::batch, 2});
  return gradus::model_spec{
      .loss = gradus::reduce_mean(gradus::dense(x, {.units = 1})), .metrics = {}, .predictions = {}};
};

int main() {
  using namespace gradus;
#ifdef FIX
  auto s =
      make_static_stepper<model>(adam{}, slots<bfloat16>{}, one_by_one{}, static_batch<4>{}, memory_at_most<4096>{});
#else
  auto s = make_trainer<model>(adam{}, slots<bfloat16>{}, one_by_one{}, static_batch<4>{}, memory_at_most<4096>{});
#endif
  (void)s;
}
