// costs: 100
// A body that was trained before, in 8 bits, below a head that is trained: as good as the body in float32, the same
// bits compiled and interpreted, alone and divided, whole and one by one, with and without what recompute_marked
// forgets.
#include <gradus/cpu/frozen.hpp>
#include <gradus/gradus.hpp>
#include <gradus/run/static_step.hpp>

#include "../run/models.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

using namespace gradus;

namespace {
// Filled when the float32 model below has been trained: objects of static storage need not be constants.
frozen_conv2d_weights<3, 3, 1, 12> first;
frozen_depthwise_conv2d_weights<3, 3, 12, 2> each;
frozen_conv2d_weights<1, 1, 24, 10> mixed;
frozen_dense_weights<160, 24> wide;

constexpr value float_body(value x, bool trainable) {
  const padding same = padding::same;
  auto h = conv2d(x, {.filters = 12, .padding = same, .name = "first", .activation = relu, .trainable = trainable});
  h = depthwise_conv2d(h, {.strides = 2,
                           .padding = same,
                           .depth_multiplier = 2,
                           .name = "each",
                           .activation = relu,
                           .trainable = trainable});
  h = conv2d(h, {.filters = 10, .kernel_size = 1, .name = "mixed", .activation = tanh, .trainable = trainable});
  return dense(flatten(h), {.units = 24, .name = "wide", .activation = relu, .trainable = trainable});
}
constexpr value frozen_body(value x) {
  auto h = frozen_conv2d<first>(x, {.padding = padding::same, .activation = relu});
  h = frozen_depthwise_conv2d<each>(h, {.strides = 2, .padding = padding::same, .activation = relu});
  h = frozen_conv2d<mixed>(h, {.activation = tanh});
  return frozen_dense<wide>(flatten(h), {.activation = relu});
}
// Frozen: 0 trains all, 1 the head above float32, 2 the head above 8 bits.
template <int Frozen>
constexpr auto classes = [](graph& g) {
  const auto x = g.placeholder("image", {batch, 8, 8, 1}), label = g.placeholder("label", {batch}, int32);
  const auto h = Frozen == 2 ? frozen_body(x) : float_body(x, Frozen == 0);
  const auto logits = dense(dense(h, {.units = 16, .name = "above", .activation = relu}),
                            {.units = Frozen == 0 ? 8 : 5, .name = Frozen == 0 ? "columns" : "groups"});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, label)),
                    .metrics = {},
                    .predictions = {{"p", softmax(logits)}, {"body", h}}};
};

// Which column of an image is bright; or, for the head that is trained above a frozen body, which of five groups has
// it.
struct bars {
  std::vector<float> x;
  std::vector<std::int32_t> y;
  bars(int n, bool groups, std::uint64_t seed) {
    random_stream r{.seed = seed};
    for (int i = 0; i < n; ++i) {
      const int bright = static_cast<int>(r.below(8));
      for (int at = 0; at < 64; ++at) x.push_back(uniform_float(r.word()) - 0.3f + (at % 8 == bright ? 0.7f : 0.0f));
      y.push_back(groups ? bright * 3 % 5 : bright);
    }
  }
  auto batches() const { return from_spans("image", x, extents{8, 8, 1}, "label", y, extents{}).repeat().batch(16); }
};
template <class Stepper>
void show(Stepper& s, const bars& data, std::size_t batch_number) {
  const std::size_t first_one = batch_number * 16 % data.y.size();
  std::copy_n(data.x.begin() + static_cast<std::ptrdiff_t>(64 * first_one), 64 * 16,
              s.template input<"image">().begin());
  std::copy_n(data.y.begin() + static_cast<std::ptrdiff_t>(first_one), 16, s.template input<"label">().begin());
}
template <class Stepper>
void learn(Stepper& s, const bars& data) {
  for (std::size_t i = 0; i < 200; ++i) show(s, data, i), s.step();
}
// The mean cross-entropy of its predictions.
template <class Stepper>
double loss_of(Stepper& s, const bars& data) {
  double sum = 0;
  for (std::size_t i = 0; 16 * i < data.y.size(); ++i) {
    show(s, data, i);
    const auto p = s.template predict<"p">();
    for (std::size_t k = 0; k < 16; ++k)
      sum -= std::log(p[k * p.size() / 16 + static_cast<std::size_t>(data.y[16 * i + k])]);
  }
  return sum / static_cast<double>(data.y.size());
}

auto columns = make_static_stepper<classes<0>>(static_batch<16>{}, adam{.rate = 0.01});
template <name_literal Kernel, name_literal Bias, class Weights>
void take(Weights& to) {
  to = quantize_weights<Weights>(columns.variable<Kernel>(), columns.variable<Bias>());
}
// Trains the body on columns, and takes its weights.
void train_body() {
  if (columns.global_step() != 0) return;
  columns.initialize(1);
  learn(columns, bars(256, false, 4));
  CHECK(loss_of(columns, bars(256, false, 7)) < 0.2);
  take<"first/kernel", "first/bias">(first), take<"mixed/kernel", "mixed/bias">(mixed);
  take<"each/depthwise_kernel", "each/bias">(each), take<"wide/kernel", "wide/bias">(wide);
}
template <class... Policies>
std::vector<std::byte> trained(Policies... policies) {
  auto t = make_trainer<classes<2>>(adam{.rate = 0.01}, policies...);
  t.train(bars(64, true, 5).batches(), {.steps = 12});
  std::vector<std::byte> all;
  auto& v = t.steps().variables();
  for (std::size_t i = 0; i < v.size(); ++i)
    all.insert(all.end(), v.view(i).data, v.view(i).data + v.view(i).size_bytes());
  return all;
}
// Below the head nothing has a gradient or slots, in float32 as in 8 bits.
template <int F>
using head = decltype(make_static_stepper<classes<F>>(static_batch<16>{}, adam{.rate = 0.01}));
static_assert(head<1>::memory_parts.gradients == head<2>::memory_parts.gradients);
static_assert(head<1>::memory_parts.slots == head<2>::memory_parts.slots);
}  // namespace

TEST_CASE("a head above a body in 8 bits learns what it learns above float32") {
  train_body();
  const bars data(256, true, 5), others(512, true, 6);
  static auto exact = make_static_stepper<classes<1>>(static_batch<16>{}, adam{.rate = 0.01});
  static auto coarse = make_static_stepper<classes<2>>(static_batch<16>{}, adam{.rate = 0.01});
  exact.initialize(2), coarse.initialize(2);
  const auto same = [&]<name_literal... Name>() {
    (std::copy_n(columns.variable<Name>().begin(), columns.variable<Name>().size(), exact.variable<Name>().begin()),
     ...);
  };
  same.operator()<"first/kernel", "first/bias", "each/depthwise_kernel", "each/bias", "mixed/kernel", "mixed/bias",
                  "wide/kernel", "wide/bias">();
  show(exact, data, 0), show(coarse, data, 0);
  const auto h = exact.predict<"body">(), q = coarse.predict<"body">();
  double squares = 0, errors = 0;
  for (std::size_t i = 0; i < h.size(); ++i) squares += h[i] * h[i], errors += (h[i] - q[i]) * (h[i] - q[i]);
  CHECK(errors < 0.02 * 0.02 * squares);
  learn(exact, data), learn(coarse, data);
  const double wanted = loss_of(exact, others), got = loss_of(coarse, others);
  CAPTURE(wanted);
  CHECK(wanted < 0.3);
  CHECK(got < 1.02 * wanted);
}

TEST_CASE("frozen layers: compiled and interpreted, any batch, the same bits") {
  train_body();
  const auto update = composed{adam{.rate = 0.01}};
  using own = frozen_ops<first, each, mixed, wide>;
  for (const std::int64_t batch_size : {1, 3, 8}) {
    CAPTURE(batch_size);
    CHECK(run_test::train(compiled_model<classes<2>, cpu<fast>, gating::op, false, true>{}, batch_size, update,
                          serial{}) ==
          run_test::train(interpreted_model<cpu<fast>, own, gating::op, false, true>{classes<2>}, batch_size, update,
                          serial{}));
  }
}

TEST_CASE("frozen layers: threads and what is forgotten change no bit; microbatches see the same body") {
  train_body();
  const auto plain = trained();
  CHECK(trained(threads{3}) == plain);
  CHECK(trained(recompute_marked{}) == plain);
  CHECK(trained(microbatch{4}) == trained(microbatch{4}, threads{2}));
}
