// A model that shows more than scalars: its graph's histograms, images and clips, after a real training step.
#include <doctest/doctest.h>

#include <gradus/ops/layer.hpp>
#include <gradus/run/profile.hpp>
#include <gradus/summary/image.hpp>
#include <gradus/summary/outputs.hpp>
#include <gradus/summary/run_metadata.hpp>
#include <gradus/train/composition.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

using namespace gradus;

namespace {
inline constexpr auto model = [](graph& g) {
  const auto w = g.variable("w", {2}, {.init = constant_initializer(3)});
  const auto loss = reduce_sum(square(w));
  g.summary_histogram("weights", w);
  g.summary_histogram("squares", square(w));
  g.summary_image("gray", g.constant({0, 1, 2, 4}, {1, 2, 2, 1}));
  g.summary_audio("sound", g.constant({0.5, -1}, {1, 2}), 8000);
  g.summary_scalar("loss", loss);
  return model_spec{.loss = loss};
};
using composition = detail::composition<detail::by_program, gradient_descent>;
}  // namespace

TEST_CASE("histograms, images and audio of a training step") {
  composition::stepper_type steps{detail::by_program{model}.make<composition::model_type>(),
                                  detail::compose_update(gradient_descent{.rate = 0.5})};
  steps.allocate();
  steps.initialize(0);
  steps.bound<mode::train>(1);
  steps.train_step();  // w: 3 - 0.5 * 2 * 3 = 0
  const auto values = summarize_outputs(steps);
  REQUIRE(values.size() == 4);
  CHECK(values[0].tag == "weights");
  CHECK(decode_histogram(values[0].bytes).num == 2);
  CHECK(values[1].tag == "squares");
  CHECK(decode_histogram(values[1].bytes).sum == 18);  // of before the step
  const std::vector<float> pixels{0, 1, 2, 4}, sound{0.5f, -1};
  CHECK(values[2] == image_summary("gray", pixels, {1, 2, 2, 1})[0]);
  CHECK(values[3] == audio_summary("sound", sound, {1, 2, 1}, 8000)[0]);

  // The times of one step's calls: each ends after it began, on the one thread.
  step_profile p(steps);
  steps.train_step(p);
  const auto times = to_step_times(p);
  CHECK(times.nodes.size() == p.events().size());
  REQUIRE(!times.nodes.empty());
  for (const auto& n : times.nodes) {
    CHECK(!n.name.empty());
    CHECK(!n.op.empty());
    CHECK(n.end >= n.start);
    CHECK(n.thread == 0);
  }
}
