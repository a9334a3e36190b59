#include <gradus/train/step_times.hpp>

#include <doctest/doctest.h>

#include <gradus/ops/layer.hpp>
#include <gradus/train/composition.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

using namespace gradus;

namespace {
inline constexpr auto layers = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 3});
  const auto y = relu(dense(x, {.units = 2, .name = "hidden"}));
  return model_spec{.loss = reduce_mean(square(dense(y, {.units = 1, .name = "out"})))};
};
}  // namespace

TEST_CASE("step_times_of: what ran has the names of the graph that is shown") {
  using source = detail::by_compiler<layers>;
  using composition = detail::composition<source, gradient_descent>;
  composition::stepper_type steps{source{}.make<composition::model_type>(),
                                  detail::compose_update(gradient_descent{.rate = 0.1})};
  steps.allocate();
  steps.initialize(0);
  steps.bound<mode::train>(4);
  step_profile p(steps);
  steps.train_step(p);
  std::string shown;
  steps.model().show<mode::train>([&](const graph_parts& parts, const char* names) {
    for (const auto& n : describe(parts, names)) shown += n.name + ' ';
  });
  std::string last;
  const step_times times = step_times_of(p, steps);
  REQUIRE(times.nodes.size() == p.events().size());
  for (const auto& n : times.nodes) {
    CHECK_MESSAGE((' ' + shown).find(' ' + n.name + ' ') != std::string::npos, n.name, " in ", shown);
    last = n.name;
  }
  CHECK(times.nodes[0].name == "Relu");  // with the product and the sum before it
  CHECK(last.starts_with("train/update_"));
}
