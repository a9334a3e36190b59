// The model: a function that builds a graph. Captureless, so that the compiler can run it.
#pragma once
#include <gradus/gradus.hpp>

namespace digits {

inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  auto image = g.placeholder("image", {batch, 28 * 28});
  auto label = g.placeholder("label", {batch}, int32);
  auto hidden = relu(dense(image, {.units = 128, .name = "hidden"}));
  auto logits = dense(hidden, {.units = 10, .name = "logits"});
  auto loss = reduce_mean(sparse_softmax_cross_entropy(logits, label));
  g.summary_scalar("loss", loss);
  return model_spec{
      .loss = loss, .metrics = {{"accuracy", accuracy(logits, label)}}, .predictions = {{"class", argmax(logits)}}};
};

}  // namespace digits
