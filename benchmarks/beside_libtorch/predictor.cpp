// A trained model that answers one example at a time, beside libtorch: an MLP 784-128-10 with softmax, on one thread,
// in one process. Ours is a predictor's seat. libtorch's are its modules, and its functions called directly, both in
// inference mode on a tensor that is ready. Under them stands a loop written by hand for the two products.
//
//   g++ -std=gnu++20 -O3 -march=native -DNDEBUG -DGRADUS_XSIMD -Iinclude benchmarks/beside_libtorch/predictor.cpp \
//     -isystem /usr/include/torch/csrc/api/include -ltorch -ltorch_cpu -lc10 -pthread -o predictor && ./predictor
//     [turns]
//
// (libtorch-dev of Debian; with another installation, its -I and -L.) All take turns of 200 runs; each run is timed by
// itself. Printed are the median and the 99th percentile of all runs in microseconds, the spread of the medians of
// turns, and the ratio of the medians to ours.
#include <gradus/train/predictor.hpp>
#include <gradus/train/trainer.hpp>

#include <gradus/gradus.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "turns.hpp"

namespace {
inline constexpr auto mlp = [](gradus::graph& g) {
  using namespace gradus;
  const auto x = g.placeholder("x", {batch, 784}), label = g.placeholder("label", {batch}, int32);
  const auto logits = dense(relu(dense(x, {.units = 128, .name = "hidden"})), {.units = 10, .name = "out"});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, label)),
                    .metrics = {},
                    .predictions = {{"p", softmax(logits)}}};
};

// Products as a person would write them: a row of weights at a time, so that the compiler makes vectors of columns.
void by_hand(const float* x, const float* w1, const float* b1, const float* w2, const float* b2, float* p) {
  float h[128], y[10];
  for (int j = 0; j < 128; ++j) h[j] = b1[j];
  for (int i = 0; i < 784; ++i)
    for (int j = 0; j < 128; ++j) h[j] += x[i] * w1[128 * i + j];
  for (int j = 0; j < 10; ++j) y[j] = b2[j];
  for (int i = 0; i < 128; ++i)
    for (int j = 0; j < 10; ++j) y[j] += std::max(h[i], 0.f) * w2[10 * i + j];
  float most = y[0], sum = 0;
  for (int j = 1; j < 10; ++j) most = std::max(most, y[j]);
  for (int j = 0; j < 10; ++j) sum += p[j] = std::exp(y[j] - most);
  for (int j = 0; j < 10; ++j) p[j] /= sum;
}
}  // namespace

int main(int argc, char** argv) {
  const int turns = argc > 1 ? std::atoi(argv[1]) : 50;
  at::set_num_threads(1);
  const gradus::testing::temp_dir dir;
  std::vector<float> images(784 * 8);
  std::vector<std::int32_t> labels(8);
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<float>(i * i % 97) / 97.f;
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i);
  auto trainer = gradus::make_trainer<mlp>(gradus::adam{.rate = 1e-3},
                                           gradus::run_config{.model_dir = dir.path(), .save_summary_steps = 0});
  trainer.train(gradus::from_spans("x", std::span<const float>(images), gradus::extents{784}, "label",
                                   std::span<const std::int32_t>(labels), gradus::extents{})
                    .repeat()
                    .batch(8),
                {.max_steps = 20});
  const gradus::predictor<mlp> net({.model_dir = dir.path()});
  auto seat = net.seat();
  std::copy_n(images.begin(), 784, seat.input<float>("x").begin());

  gradus::saver<> files;
  const auto checkpoint = files.read(dir / "model-20.ckpt");
  const auto copied = [&](const char* name, std::vector<std::int64_t> dims) {
    for (const gradus::record& r : checkpoint.result().content.records)
      if (r.name == name) return torch::from_blob(const_cast<std::byte*>(r.bytes.data()), dims).clone();
    std::printf("no %s in the checkpoint\n", name), std::exit(1);
  };
  const auto w1 = copied("hidden/kernel", {784, 128}), b1 = copied("hidden/bias", {128});
  const auto w2 = copied("out/kernel", {128, 10}), b2 = copied("out/bias", {10});
  const c10::InferenceMode inference;
  torch::nn::Sequential module(torch::nn::Linear(784, 128), torch::nn::ReLU(), torch::nn::Linear(128, 10),
                               torch::nn::Softmax(1));
  auto parameters = module->parameters();
  parameters[0].copy_(w1.t()), parameters[1].copy_(b1), parameters[2].copy_(w2.t()), parameters[3].copy_(b2);
  const auto x = torch::from_blob(images.data(), {1, 784}).clone();
  const auto t1 = w1.t().contiguous(), t2 = w2.t().contiguous();
  torch::Tensor by_module, by_function;
  std::vector<float> hand(10);

  std::vector<contender> all{
      {"a predictor's seat", [&](int) { seat.run(); }},
      {"libtorch, modules", [&](int) { by_module = module->forward(x); }},
      {"libtorch, functions",
       [&](int) { by_function = at::softmax(at::linear(at::relu(at::linear(x, t1, b1)), t2, b2), 1); }},
      {"a loop by hand", [&](int) {
         by_hand(x.data_ptr<float>(), w1.data_ptr<float>(), b1.data_ptr<float>(), w2.data_ptr<float>(),
                 b2.data_ptr<float>(), hand.data());
       }}};
  take_turns(all, turns, 220, 20);
  const auto p = seat.prediction<float>("p");
  for (int j = 0; j < 10; ++j) {
    const float others[] = {by_module[0][j].item<float>(), by_function[0][j].item<float>(),
                            hand[static_cast<std::size_t>(j)]};
    for (const float o : others)
      if (std::fabs(o - p[static_cast<std::size_t>(j)]) > 1e-5f) return std::puts("the answers differ"), 1;
  }
  print(all);
}
