// A char-GPT (4 layers of 4 heads, width 128, 64 positions, 128 letters) that generates a letter at a time, beside
// libtorch, on one thread, in one process: a predictor's seat with the keys and values of the letters before
// (ops/cached_attention.hpp); the same in libtorch, in inference mode, its caches tensors that a step writes into; and
// a predictor's pass over all 64 positions, which a program without a cache makes for each letter.
//
//   g++ -std=gnu++20 -O3 -march=native -DNDEBUG -DGRADUS_XSIMD -Iinclude benchmarks/beside_libtorch/generate.cpp \
//     -isystem /usr/include/torch/csrc/api/include -ltorch -ltorch_cpu -lc10 -pthread -o generate && ./generate [turns]
//
// All take turns, a sequence of 64 letters each; each letter is timed by itself. Printed are the median and the 99th
// percentile of all letters in microseconds, the spread of the medians of turns, and the ratio of the medians to ours.
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
constexpr int positions = 64, width = 128, letters = 128, layers = 4, heads = 4;

template <bool Cached>
inline constexpr auto char_gpt = [](gradus::graph& g) {
  using namespace gradus;
  const bool one = Cached && g.mode() == mode::predict;
  const auto ids = g.placeholder("ids", {one ? 1 : batch, one ? 1 : positions}, int32);
  const auto position = one ? g.placeholder("position", {}, int32) : value{};
  const auto table = g.variable("position_table", {positions, width}, {.init = random_normal(0, 0.02f)});
  auto x = embedding(ids, {.input_dim = letters, .output_dim = width, .name = "letter"}) +
           (one ? gather(table, position) : table);
  for (int i = 0; i < layers; ++i) {
    const auto block = g.name_scope("block");
    x = x + multi_head_attention(layer_norm(x), {.heads = heads, .position = position, .time = positions});
    x = x + dense(gelu(dense(layer_norm(x), {.units = 4 * width, .name = "up"})), {.units = width, .name = "down"});
  }
  const auto logits = dense(layer_norm(x), {.units = letters, .name = "logits"});
  if (g.mode() == mode::predict)
    return model_spec{.loss = reduce_mean(logits), .metrics = {}, .predictions = {{"next", softmax(logits)}}};
  const auto next = g.placeholder("next", {batch, positions}, int32);
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, next)), .metrics = {}, .predictions = {}};
};

// The same model of libtorch's functions, with the checkpoint's values.
struct in_libtorch {
  torch::Tensor letter, table, last_weight, last_bias, last_gamma, last_beta;
  struct layer {
    torch::Tensor gamma1, beta1, qkv, qkv_bias, out, out_bias, gamma2, beta2, up, up_bias, down, down_bias;
    torch::Tensor keys = torch::zeros({heads, positions, width / heads}), values = torch::zeros_like(keys);
  };
  std::vector<layer> all;

  torch::Tensor operator()(std::int64_t id, std::int64_t p) {
    constexpr double epsilon = 1e-5;
    auto x = letter[id] + table[p];
    for (layer& l : all) {
      const auto packed = at::linear(at::layer_norm(x, {width}, l.gamma1, l.beta1, epsilon), l.qkv, l.qkv_bias)
                              .view({3, heads, width / heads});
      l.keys.select(1, p).copy_(packed[1]), l.values.select(1, p).copy_(packed[2]);
      const auto scores = at::matmul(l.keys.narrow(1, 0, p + 1), packed[0].unsqueeze(2)).squeeze(2);
      const auto weights = at::softmax(scores / std::sqrt(double(width) / heads), 1);
      const auto mixed = at::matmul(weights.unsqueeze(1), l.values.narrow(1, 0, p + 1)).reshape({width});
      x = x + at::linear(mixed, l.out, l.out_bias);
      const auto up =
          at::gelu(at::linear(at::layer_norm(x, {width}, l.gamma2, l.beta2, epsilon), l.up, l.up_bias), "tanh");
      x = x + at::linear(up, l.down, l.down_bias);
    }
    return at::softmax(at::linear(at::layer_norm(x, {width}, last_gamma, last_beta, epsilon), last_weight, last_bias),
                       0);
  }
};
}  // namespace

int main(int argc, char** argv) {
  const int turns = argc > 1 ? std::atoi(argv[1]) : 50;
  at::set_num_threads(1);
  const gradus::testing::temp_dir dir;
  std::vector<std::int32_t> ids(positions * 8), next(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<std::int32_t>(i * i % letters), next[i] = static_cast<std::int32_t>(i * 7 % letters);
  auto trainer = gradus::make_trainer<char_gpt<true>>(
      gradus::adam{.rate = 1e-3}, gradus::run_config{.model_dir = dir.path(), .save_summary_steps = 0});
  trainer.train(gradus::from_spans("ids", ids, gradus::extents{positions}, "next", next, gradus::extents{positions})
                    .repeat()
                    .batch(8),
                {.max_steps = 5});
  const gradus::predictor<char_gpt<true>> net({.model_dir = dir.path()});
  const gradus::predictor<char_gpt<false>> whole({.model_dir = dir.path()});
  auto seat = net.seat();
  auto pass = whole.seat();
  std::copy_n(ids.begin(), positions, pass.input<std::int32_t>("ids").begin());
  const auto seat_id = seat.input<std::int32_t>("ids"), seat_position = seat.input<std::int32_t>("position");

  gradus::saver<> files;
  const auto checkpoint = files.read(dir / "model-5.ckpt");
  const auto copied = [&](const std::string& name) {
    for (const gradus::record& r : checkpoint.result().content.records)
      if (r.name == name) {
        std::vector<std::int64_t> dims;
        for (int k = 0; k < r.dims.rank; ++k) dims.push_back(r.dims[k]);
        return torch::from_blob(const_cast<std::byte*>(r.bytes.data()), dims).clone();
      }
    std::printf("no %s in the checkpoint; it has\n", name.c_str());
    for (const gradus::record& r : checkpoint.result().content.records)
      std::printf("  %s\n", std::string(r.name).c_str());
    std::exit(1);
  };
  const auto turned = [&](const std::string& name) { return copied(name).t().contiguous(); };
  const c10::InferenceMode inference;
  in_libtorch torch_model{copied("letter/embeddings"),
                          copied("position_table"),
                          turned("logits/kernel"),
                          copied("logits/bias"),
                          copied("layer_norm/gamma"),
                          copied("layer_norm/beta"),
                          {}};
  for (int i = 0; i < layers; ++i) {
    const std::string b = i == 0 ? "block/" : "block_" + std::to_string(i) + "/";
    torch_model.all.push_back(
        {copied(b + "layer_norm/gamma"), copied(b + "layer_norm/beta"), turned(b + "multi_head_attention/qkv/kernel"),
         copied(b + "multi_head_attention/qkv/bias"), turned(b + "multi_head_attention/projection/kernel"),
         copied(b + "multi_head_attention/projection/bias"), copied(b + "layer_norm_1/gamma"),
         copied(b + "layer_norm_1/beta"), turned(b + "up/kernel"), copied(b + "up/bias"), turned(b + "down/kernel"),
         copied(b + "down/bias")});
  }
  torch::Tensor by_torch;
  std::vector<contender> all{
      {"a seat with its cache",
       [&](int p) {
         seat_id[0] = ids[static_cast<std::size_t>(p)], seat_position[0] = p;
         seat.run();
       }},
      {"libtorch with caches", [&](int p) { by_torch = torch_model(ids[static_cast<std::size_t>(p)], p); }},
      {"a pass over all 64", [&](int) { pass.run(); }}};
  take_turns(all, turns, positions);
  const auto ours = seat.prediction<float>("next"), every = pass.prediction<float>("next");
  for (int j = 0; j < letters; ++j) {
    const auto at = static_cast<std::size_t>(j);
    if (ours[at] != every[(positions - 1) * letters + at]) return std::puts("the cache changes the answer"), 1;
    if (std::fabs(ours[at] - by_torch[j].item<float>()) > 1e-4f) return std::puts("the answers differ"), 1;
  }
  print(all);
}
