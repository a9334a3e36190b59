// costs: 100
// A block of MobileNet (Howard et al. 2017): a convolution, a depthwise one, and one of 1 x 1 that mixes channels. It
// learns; and it ends with the same bits compiled and interpreted, alone and divided, whole and one by one, in one run
// and in two.
#include <gradus/gradus.hpp>
#include <gradus/testing/temp_dir.hpp>

#include "../run/models.hpp"
#include "../run/static_compare.hpp"

#include <doctest/doctest.h>

using namespace gradus;
using static_test::remember;

namespace {
constexpr value separable_block(value x) {
  auto h = relu(conv2d(x, {.filters = 20, .padding = padding::same, .name = "first"}));
  h = depthwise_conv2d(h, {.strides = 2, .padding = padding::same, .name = "each", .activation = relu});
  h = conv2d(h, {.filters = 9, .kernel_size = 1, .name = "mixed", .activation = relu});
  return depthwise_conv2d(h, {.kernel_size = {3, 2}, .depth_multiplier = 2, .name = "twice"});
}
constexpr auto classes = [](graph& g) {
  const auto image = g.placeholder("image", {batch, 8, 8, 3});
  const auto label = g.placeholder("label", {batch}, int32);
  const auto logits = dense(flatten(separable_block(image)), {.units = 5, .name = "logits"});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, label)),
                    .metrics = {},
                    .predictions = {{"p", softmax(logits)}}};
};
constexpr auto numbers = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 8, 8, 1}), y = g.placeholder("y", {batch, 3});
  const auto out = dense(flatten(separable_block(x)), {.units = 3, .name = "out"});
  return model_spec{.loss = reduce_mean(squared_difference(out, y)), .metrics = {}, .predictions = {{"out", out}}};
};

// Which column of an image is bright.
struct bars {
  std::vector<float> x;
  std::vector<std::int32_t> y;
  explicit bars(int n) {
    random_stream r{.seed = 9};
    for (int i = 0; i < n; ++i) {
      const int bright = static_cast<int>(r.below(5));
      for (int at = 0; at < 192; ++at)
        x.push_back(uniform_float(r.word()) * 0.5f + (at / 3 % 8 == bright ? 1.0f : 0.0f));
      y.push_back(bright);
    }
  }
  auto batches() const { return from_spans("image", x, extents{8, 8, 3}, "label", y, extents{}).repeat().batch(16); }
};
template <class Trainer>
std::vector<std::byte> state_of(Trainer& t) {
  std::vector<std::byte> all;
  auto& v = t.steps().variables();
  for (std::size_t i = 0; i < v.size(); ++i)
    all.insert(all.end(), v.view(i).data, v.view(i).data + v.view(i).size_bytes());
  return all;
}
}  // namespace

TEST_CASE("separable images: compiled and interpreted, the same bits") {
  const auto update = composed{adam{.rate = 0.01}};
  for (const std::int64_t batch_size : {1, 3, 8}) {
    CAPTURE(batch_size);
    CHECK(
        run_test::train(compiled_model<classes, cpu<fast>, gating::op, false, true>{}, batch_size, update, serial{}) ==
        run_test::train(interpreted_model<cpu<fast>, ops<>, gating::op, false, true>{classes}, batch_size, update,
                        serial{}));
  }
}

TEST_CASE("separable images are learned; threads, parts and recomputing change no bit") {
  const bars data(64);
  const auto go = [&](auto... policies) {
    auto t = make_trainer<classes>(adam{.rate = 0.01}, policies...);
    t.train(data.batches(), {.steps = 12});
    return state_of(t);
  };
  const auto plain = go();
  CHECK(go(threads{2}) == plain);
  CHECK(go(threads{3}) == plain);
  CHECK(go(recompute<2>{}) == plain);
  CHECK(go(microbatch{4}) == go(microbatch{4}, threads{2}));
  CHECK(go(portable{}) == go(portable{}, threads{2}));
  CHECK(go(mixed_precision<bfloat16>{}) != plain);
  CHECK(go(mixed_precision<bfloat16>{}) == go(mixed_precision<bfloat16>{}, threads{2}));

  auto t = make_trainer<classes>(adam{.rate = 0.01});
  t.train(data.batches(), {.steps = 1});
  const auto before = t.evaluate(data.batches(), {.steps = 4});
  t.train(data.batches(), {.steps = 120});
  const auto after = t.evaluate(data.batches(), {.steps = 4});
  CHECK(before["loss"] > 1);
  CHECK(after["loss"] < 0.2);
}

TEST_CASE("separable images: a run that stops goes on from its checkpoint") {
  const testing::temp_dir dir;
  const bars data(64);
  const auto run = [&](const char* name, std::int64_t steps) {
    auto t = make_trainer<classes>(adam{.rate = 0.01},
                                   run_config{.model_dir = dir.path() + "/" + name, .save_summary_steps = 0});
    t.train(data.batches(), {.max_steps = steps});
    return state_of(t);
  };
  const auto undisturbed = run("a", 9);
  CHECK(run("b", 4) != undisturbed);
  CHECK(run("b", 9) == undisturbed);
}

TEST_CASE("separable images: static steppers, whole and one by one; a chain over the examples is one of the batch") {
  const adam rule{.rate = 0.01};
  {
    auto s = make_static_stepper<numbers>(static_batch<3>{}, rule);
    static_test::same_bits<numbers, fast>(s, 6, microbatch{1}, rule);
  }
  {
    auto s = make_static_stepper<numbers>(static_batch<3>{}, rule, one_by_one{}, portable{});
    static_test::same_bits<numbers, portable>(s, 6, microbatch{3, in_order}, rule);
  }
}
