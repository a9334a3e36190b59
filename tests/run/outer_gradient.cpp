// Which gradients are added to their sum as they are computed, and that their memory is spared. That the bits are those
// of a microbatch is in tests/run/gradient_life.cpp.
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/run/outer_gradient.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

#include <doctest/doctest.h>

using namespace gradus;

namespace {
constexpr auto dense_layer = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 304});
  return model_spec{.loss = reduce_mean(square(dense(x, {.units = 4, .name = "d"}))), .metrics = {}, .predictions = {}};
};
// The kernel's gradient has a second part.
constexpr auto decayed = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 304});
  const auto w = g.variable("w", {304, 4});
  return model_spec{
      .loss = reduce_mean(square(matmul(x, w))) + 0.1 * reduce_mean(square(w)), .metrics = {}, .predictions = {}};
};
// Five rows of each example go through the layer.
constexpr auto rows = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 5, 304});
  const auto w = g.variable("w", {304, 4});
  return model_spec{.loss = reduce_mean(square(matmul(x, w))), .metrics = {}, .predictions = {}};
};
template <auto Build>
using train = detail::placed_graph<
    frozen_model<Build, detail::static_options<mode::train, gradient_descent, one_by_one, static_batch<4>>>>;
template <auto Build>
consteval int outer() {
  int n = 0;
  for (const bool is : detail::outer_gradient_slots<train<Build>>()) n += is;
  return n;
}
template <auto Build, class... Policies>
inline constexpr std::size_t memory_of =
    decltype(make_static_stepper<Build>(std::declval<Policies>()...))::memory_bytes;
}  // namespace

static_assert(outer<dense_layer>() == 1);  // of the kernel, not of the bias
static_assert(outer<decayed>() == 0);
static_assert(outer<rows>() == 0);

// Weights, their sum, the inputs, and not another array of 304 x 4.
static_assert(memory_of<dense_layer, static_batch<4>, gradient_descent, one_by_one> <
              (2 * 304 * 4 + 4 * 304 + 304) * 4);
static_assert(memory_of<decayed, static_batch<4>, gradient_descent, one_by_one> > (3 * 304 * 4 + 4 * 304) * 4);

TEST_CASE("an outer product, written and then added: each number is rounded as a product, and then as a sum") {
  const auto check = [](auto device, std::int64_t m, std::int64_t n) {
    std::vector<float> x(static_cast<std::size_t>(m)), y(static_cast<std::size_t>(n)), sum(x.size() * y.size(), 77),
        expected(sum.size());
    for (int k = 0; k < 3; ++k) {
      for (std::size_t i = 0; i < x.size(); ++i)
        x[i] = static_cast<float>(i * 7 % 11) / 7.0f - 0.3f * static_cast<float>(k);
      for (std::size_t j = 0; j < y.size(); ++j) y[j] = 1.1f - static_cast<float>(j * 5 % 13) / 3.0f;
      for (std::size_t i = 0; i < x.size(); ++i)
        for (std::size_t j = 0; j < y.size(); ++j) {
          const volatile float product = x[i] * y[j];
          float& e = expected[i * y.size() + j];
          e = k == 0 ? product : e + product;
        }
      decltype(device)::add_outer(sum.data(), x.data(), m, y.data(), n, k == 0);
      CHECK(sum == expected);
    }
  };
  for (const std::int64_t n : {1, 3, 4, 16, 17, 40}) check(cpu<fast>{}, 5, n), check(cpu<portable>{}, 7, n);
}
