// The model: a function that builds a graph. Captureless, so that the compiler can run it.
#pragma once
#include <gradus/gradus.hpp>
#include <gradus/summary/image.hpp>  // for summary_image

namespace digits {

inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  auto image = g.placeholder("image", {batch, 28 * 28});
  auto label = g.placeholder("label", {batch}, int32);
  auto hidden = relu(dense(image, {.units = 128, .name = "hidden"}));
  auto logits = dense(hidden, {.units = 10, .name = "logits"});
  auto loss = reduce_mean(sparse_softmax_cross_entropy(logits, label));
  g.summary_scalar("loss", loss);
  g.summary_scalar("hidden/zero_fraction", zero_fraction(hidden));
  g.summary_histogram("hidden/activations", hidden);
  g.summary_histogram("logits/weights", g.by_name("logits/kernel"));
  g.summary_image("digits", reshape(image, {batch, 28, 28, 1}));
  return model_spec{
      .loss = loss, .metrics = {{"accuracy", accuracy(logits, label)}}, .predictions = {{"class", argmax(logits)}}};
};

}  // namespace digits
