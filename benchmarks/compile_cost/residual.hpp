// A residual MLP of equal blocks: how the cost grows with the number of nodes alone.
#pragma once
#include "program.hpp"

template <int Blocks>
constexpr auto residual = [](gradus::graph& g) {
  using namespace gradus;
  const auto x = g.placeholder("x", {batch, 32}), y = g.placeholder("y", {batch, 1});
  auto h = dense(x, {.units = 32, .name = "in"});
  for (int i = 0; i < Blocks; ++i) {
    const auto block = g.name_scope("block");
    h = h + dense(relu(dense(h, {.units = 32, .name = "a"})), {.units = 32, .name = "b"});
  }
  return model_spec{
      .loss = reduce_mean(square(dense(h, {.units = 1, .name = "out"}) - y)), .metrics = {}, .predictions = {}};
};

// Nodes of the training graph, inputs, variables, gradients and updates among them, before fusion joins some.
template <int Blocks>
inline constexpr int graph_nodes =
    gradus::detail::stage<residual<Blocks>, gradus::build_options{}, 4>::value.size.nodes;
