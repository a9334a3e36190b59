#include <gradus/ops/layer.hpp>
#include <gradus/pass/recompute.hpp>
#include <gradus/run/static_door.hpp>
#include <gradus/update/clip.hpp>
#include <gradus/update/rules/adam.hpp>

#include <doctest/doctest.h>

using namespace gradus;

namespace {
constexpr auto model = [](graph& g) {
  return model_spec{.loss = reduce_mean(square(dense(g.placeholder("x", {batch, 2}), {.units = 1}))),
                    .metrics = {},
                    .predictions = {}};
};
}  // namespace

// What is refused, and in which words: tests/refuse/static_*.cpp.
static_assert(detail::static_policies_fit<static_batch<4>, adam>::value);
static_assert(detail::static_policies_fit<clip_by_global_norm, adam, static_batch<4>, recompute_marked>::value);
static_assert(detail::static_update_fits<static_batch<4>, adam, clip_by_global_norm>::value);
static_assert(detail::static_model_fits<model, static_batch<4>, adam>::value);

TEST_CASE("policies in any order say what a model is compiled for") {
  constexpr build_options o = detail::static_options<mode::train, recompute_marked, static_batch<4>,
                                                     clip_by_global_norm, gradus::adam, gate_graph>;
  CHECK(o.recompute == recompute_marked::segments);
  CHECK(o.gate == gating::graph);
  CHECK(o.needs_norm);
  CHECK(o.reuse);
}
