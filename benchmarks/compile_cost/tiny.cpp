// An MLP 8-16-1: the least that a program with a model costs.
#include "program.hpp"

constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  const auto x = g.placeholder("x", {batch, 8}), y = g.placeholder("y", {batch, 1});
  const auto h = tanh(dense(x, {.units = 16, .name = "hidden"}));
  return model_spec{
      .loss = reduce_mean(square(dense(h, {.units = 1, .name = "out"}) - y)), .metrics = {}, .predictions = {}};
};
int main() { return train<model>(); }
