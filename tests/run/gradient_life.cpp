// one thread: nothing here runs at the same time
#include <gradus/run/gradient_life.hpp>
#include <gradus/update/clip.hpp>
#include <gradus/update/float_constants.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/lamb.hpp>
#include <gradus/update/rules/momentum.hpp>

#include "static_compare.hpp"

using namespace static_test;

namespace {
template <auto Build, class... Policies>
inline constexpr std::size_t memory_of =
    decltype(make_static_stepper<Build>(std::declval<Policies>()...))::memory_bytes;
// Bytes of the 8x8 model's trained values, each tensor on a line of its own.
constexpr std::size_t line = default_device::alignment;
constexpr std::size_t rounded(std::size_t floats) { return (floats * 4 + line - 1) / line * line; }
constexpr std::size_t trained =
    rounded(9 * 4) + rounded(4) + rounded(64 * 6) + rounded(6) + rounded(6 * 3) + rounded(3);
}  // namespace

// Released gradients cost what is alive at the worst moment: here nothing, since activations are larger.
static_assert(memory_of<images, static_batch<4>, adam> - memory_of<images, static_batch<4>, adam, release_gradients> ==
              trained);
// One by one, seven more examples cost their inputs and their predictions, and no activations.
static_assert(memory_of<images, static_batch<8>, adam, one_by_one> <
              memory_of<images, static_batch<1>, adam> + 7 * (rounded(64) + rounded(3) + rounded(3)) + 3 * line);
static_assert(memory_of<images, static_batch<8>, adam> > 4 * memory_of<images, static_batch<8>, adam, one_by_one> / 3);

TEST_CASE("released gradients: the same bits") {
  SUBCASE("adam, a schedule, an average") {
    const exponential_decay rate{.initial = 0.01, .decay_steps = 10, .decay_rate = 0.5};
    auto s = make_static_stepper<images>(static_batch<4>{}, adam{}, rate, exponential_moving_average{.decay = 0.9},
                                         release_gradients{});
    same_bits<images, fast>(s, 12, microbatch{1}, adam{}, rate, exponential_moving_average{.decay = 0.9});
  }
  SUBCASE("a variable that is read twice waits for both readers; portable, gate_none") {
    auto s = make_static_stepper<noisy>(static_batch<3>{}, momentum{.rate = 0.1}, release_gradients{}, portable{},
                                        gate_none{});
    same_bits<noisy, portable>(s, 12, microbatch{1}, momentum{.rate = 0.1});
  }
  SUBCASE("norms of each tensor") {
    auto s = make_static_stepper<images>(static_batch<2>{}, lamb{.rate = 0.01}, release_gradients{});
    same_bits<images, fast>(s, 6, microbatch{1}, lamb{.rate = 0.01});
  }
  SUBCASE("gradients that are only added up") {
    auto s = make_static_stepper<layers>(static_batch<2>{}, adam{.rate = 0.01}, accumulate{3}, release_gradients{});
    same_bits<layers, fast>(s, 7, microbatch{1}, adam{.rate = 0.01}, accumulate{3});
  }
}

TEST_CASE("one by one: the bits of a microbatch in order with a part for each example") {
  const adam rule{.rate = 0.01};
  SUBCASE("a power of two") {
    auto s = make_static_stepper<images>(static_batch<4>{}, rule, one_by_one{});
    same_bits<images, fast>(s, 10, microbatch{4, in_order}, rule);
  }
  SUBCASE("no power of two, random numbers, portable") {
    auto s = make_static_stepper<noisy>(static_batch<5>{}, rule, one_by_one{}, portable{});
    same_bits<noisy, portable>(s, 10, microbatch{5, in_order}, rule);
  }
  SUBCASE("without doubles, whose means are of the same bits") {
    const auto floats = float_constants{rule};
    auto a = make_static_stepper<noisy>(static_batch<5>{}, floats, one_by_one{}, portable{});
    same_bits<noisy, portable>(a, 10, microbatch{5, in_order}, floats);
    auto b = make_static_stepper<images>(static_batch<4>{}, floats, one_by_one{});
    same_bits<images, fast>(b, 10, microbatch{4, in_order}, floats);
  }
  SUBCASE("one example") {
    auto s = make_static_stepper<noisy>(static_batch<1>{}, rule, one_by_one{});
    same_bits<noisy, fast>(s, 5, microbatch{1}, rule);
  }
  SUBCASE("the global norm is that of the means; an average beside it") {
    auto s = make_static_stepper<images>(static_batch<3>{}, rule, clip_by_global_norm{0.05}, one_by_one{},
                                         exponential_moving_average{.decay = 0.9});
    same_bits<images, fast>(s, 10, microbatch{3, in_order}, rule, clip_by_global_norm{0.05},
                            exponential_moving_average{.decay = 0.9});
  }
  SUBCASE("rules that measure tensors, sums over steps") {
    auto a = make_static_stepper<images>(static_batch<3>{}, lamb{.rate = 0.01}, one_by_one{});
    same_bits<images, fast>(a, 5, microbatch{3, in_order}, lamb{.rate = 0.01});
    auto b = make_static_stepper<layers>(static_batch<3>{}, rule, accumulate{2}, one_by_one{});
    same_bits<layers, fast>(b, 5, microbatch{3, in_order}, rule, accumulate{2});
  }
}

TEST_CASE("one by one: where each gradient is a chain over the examples, the bits of the undivided batch") {
  const adam rule{.rate = 0.01};
  auto s = make_static_stepper<layers>(static_batch<4>{}, rule, one_by_one{}, portable{});
  auto whole = make_static_stepper<layers>(static_batch<4>{}, rule, portable{});
  s.initialize(5), whole.initialize(5);
  random_stream stream{.seed = 3};
  for (int i = 0; i < 10; ++i) {
    draw(s.input<"x">(), stream), draw(s.input<"y">(), stream);
    std::ranges::copy(s.input<"x">(), whole.input<"x">().begin());
    std::ranges::copy(s.input<"y">(), whole.input<"y">().begin());
    s.step(), whole.step();
    REQUIRE(remember(s) == remember(whole));
    CHECK(s.loss() == doctest::Approx(whole.loss()).epsilon(1e-6));
  }
}

TEST_CASE("one by one: metrics are means, predictions are of all examples") {
  auto s = make_static_stepper<images>(static_batch<3>{}, adam{}, one_by_one{});
  auto whole = make_static_stepper<images>(static_batch<3>{}, adam{});
  static_assert(std::is_same_v<decltype(s.input<"x">()), std::span<float, 192>>);
  static_assert(std::is_same_v<decltype(s.prediction<"out">()), std::span<const float, 9>>);
  s.initialize(5), whole.initialize(5);
  random_stream stream{.seed = 3};
  draw(s.input<"x">(), stream), draw(s.input<"y">(), stream);
  std::ranges::copy(s.input<"x">(), whole.input<"x">().begin());
  std::ranges::copy(s.input<"y">(), whole.input<"y">().begin());
  const auto a = s.predict<"out">();
  const auto b = whole.predict<"out">();
  for (std::size_t i = 0; i < 9; ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-6));
  CHECK(s.prediction<"bias">()[1] == whole.prediction<"bias">()[1]);
  s.step(), whole.step();
  CHECK(s.metric<"error">() == doctest::Approx(whole.metric<"error">()).epsilon(1e-6));
}
