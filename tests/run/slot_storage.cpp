// one thread: nothing here runs at the same time
// compiled with: -O2
#include <gradus/run/slot_storage.hpp>
#include <gradus/update/clip.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/momentum.hpp>

#include "../../examples/digits/draw.hpp"
#include "static_compare.hpp"

#include <cmath>
#include <limits>

using namespace static_test;

namespace {
using half_slots = gradus::slots<bfloat16>;
template <auto Build, class... Policies>
inline constexpr std::size_t memory_of =
    decltype(make_static_stepper<Build>(std::declval<Policies>()...))::memory_bytes;
constexpr std::size_t line = default_device::alignment;
constexpr std::size_t rounded(std::size_t floats) { return (floats * 4 + line - 1) / line * line; }
constexpr std::size_t trained =
    rounded(9 * 4) + rounded(4) + rounded(64 * 6) + rounded(6) + rounded(6 * 3) + rounded(3) + rounded(2);
}  // namespace

// Two slots of Adam in the memory of one; averages stay as they are.
static_assert(memory_of<images, static_batch<2>, adam> - memory_of<images, static_batch<2>, adam, half_slots> ==
              trained);
static_assert(memory_of<images, static_batch<2>, adam, exponential_moving_average> -
                  memory_of<images, static_batch<2>, adam, half_slots, exponential_moving_average> ==
              trained);

TEST_CASE("a number is rounded to its neighbours by chance, in proportion; what is exact or not finite stays") {
  for (const float x : {1.0f, -0x1.02p3f, 0.0f, -0.0f, std::numeric_limits<float>::infinity(), 0x1p-133f})
    for (const std::uint32_t r : {0u, 1u, 0xffffu, 0xffffffffu})
      CHECK(detail::bfloat_value(detail::bfloat_bits_at_random(x, r)) == x);
  for (const std::uint32_t r : {0u, 0xffffu}) {
    CHECK(std::isnan(
        detail::bfloat_value(detail::bfloat_bits_at_random(std::bit_cast<float>(std::uint32_t{0x7fffffffu}), r))));
    CHECK(std::isnan(
        detail::bfloat_value(detail::bfloat_bits_at_random(std::bit_cast<float>(std::uint32_t{0xff800001u}), r))));
  }
  for (const float x : {1.001f, -3.14159f, 1e-20f, 123456.0f}) {
    double sum = 0;
    for (std::uint32_t r = 0; r < 65536; ++r)
      sum += static_cast<double>(detail::bfloat_value(detail::bfloat_bits_at_random(x, r | 0xabcd0000u)));
    CHECK(sum / 65536 == static_cast<double>(x));  // every power of two is exact here
  }
}

TEST_CASE("element i of step t takes half a word of the Philox stream t") {
  const philox words(77);
  std::vector<float> x(150);
  random_stream draws{.seed = 4};
  for (float& v : x) v = uniform_float(draws.word()) - 0.5f;
  std::vector<std::uint16_t> whole(150), pieces(150);
  detail::store_at_random(whole.data(), x.data(), 0, 150, 77, 9);
  detail::store_at_random(pieces.data(), x.data(), 0, 64, 77, 9);
  detail::store_at_random(pieces.data() + 64, x.data() + 64, 64, 86, 77, 9);
  CHECK(whole == pieces);
  for (std::size_t i = 0; i < 150; ++i) {
    const std::uint32_t word = words.word(9, i / 2), random = i % 2 == 0 ? word & 0xffffu : word >> 16;
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x[i]);
    CHECK(whole[i] == static_cast<std::uint16_t>((bits >> 16) + ((bits & 0xffffu) + random >= 65536 ? 1 : 0)));
  }
}

namespace {
// The same steps with float slots on the heap, which are rounded here after every step.
template <auto Build, class Arithmetic, class Static, class... Update>
void same_as_rounded(Static& s, std::uint64_t seed, int steps, Update... policies) {
  using update = composed<Update...>;
  using model = compiled_model<Build, cpu<Arithmetic>, gating::op, update::needs_norm, true>;
  stepper<model, update, cpu<Arithmetic>> h(model{}, update(policies...));
  h.allocate();
  h.initialize(5), s.initialize(5);
  random_stream stream{.seed = 3};
  for (int i = 0; i < steps; ++i) {
    CAPTURE(i);
    step_both(s, h, stream);
    state_list list;
    s.remembers(list);
    std::size_t slots = 0;
    for (std::size_t v = 0; v < h.variables().size(); ++v) {
      const variable_info& info = h.variables().info(v);
      if (!info.trainable) continue;
      for (std::size_t k = 0; k < update::slot_count; ++k) {
        float* const f = reinterpret_cast<float*>(h.variables().mirror(k, v));
        std::vector<std::uint16_t> stored(info.size());
        detail::store_at_random(stored.data(), f, 0, stored.size(), (seed ^ stream_of(info.name)) + k,
                                static_cast<std::uint64_t>(i));
        for (std::size_t n = 0; n < stored.size(); ++n) f[n] = detail::bfloat_value(stored[n]);
        const std::string name = checkpoint_name(info.name, h.optimizer().mirrors()[k]);
        for (const auto& e : list.entries())
          if (e.name == name) {
            ++slots;
            CHECK(e.type == bfloat16);
            CHECK(std::memcmp(e.bytes.data(), stored.data(), e.bytes.size()) == 0);
          }
      }
      for (const auto& e : list.entries())
        if (e.name == info.name) CHECK(std::memcmp(e.bytes.data(), h.variables().value(v), e.bytes.size()) == 0);
    }
    CHECK(slots == update::slot_count * 6);
  }
}
}  // namespace

TEST_CASE("a step is that of float32 on what was stored") {
  auto a = make_static_stepper<images>(static_batch<2>{}, adam{.rate = 0.01}, half_slots{});
  same_as_rounded<images, fast>(a, 0, 6, adam{.rate = 0.01});
  auto b = make_static_stepper<images>(static_batch<2>{}, momentum{.rate = 0.1}, half_slots{.seed = 11}, portable{},
                                       clip_by_global_norm{0.05}, exponential_moving_average{.decay = 0.9});
  same_as_rounded<images, portable>(b, 11, 6, momentum{.rate = 0.1}, clip_by_global_norm{0.05},
                                    exponential_moving_average{.decay = 0.9});
  auto c = make_static_stepper<images>(static_batch<2>{}, adam{.rate = 0.01}, half_slots{}, release_gradients{});
  same_as_rounded<images, fast>(c, 0, 6, adam{.rate = 0.01});
}

namespace {
// 14x14, each pixel the mean of four of the demo's drawings.
constexpr auto small = [](graph& g) {
  const auto image = g.placeholder("image", {batch, 196}), label = g.placeholder("label", {batch}, int32);
  const auto logits = dense(relu(dense(image, {.units = 16, .name = "hidden"})), {.units = 10, .name = "logits"});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, label)), .metrics = {}, .predictions = {}};
};
constexpr std::int64_t examples = 2048, a_batch = 32;
const digits::drawings& drawn() {
  static const digits::drawings all = digits::draw_digits(examples, 1);
  return all;
}
template <class Stepper>
double train(Stepper& s, int from, int to) {
  double last = 0;
  for (int step = from; step < to; ++step) {
    const std::size_t first = static_cast<std::size_t>(step) * a_batch % drawn().labels.size();
    for (std::size_t i = 0; i < a_batch; ++i) {
      s.template input<"label">()[i] = drawn().labels[first + i];
      const std::uint8_t* const in = drawn().images.data() + (first + i) * digits::pixels;
      for (std::size_t p = 0; p < 196; ++p) {
        const std::uint8_t* const at = in + p / 14 * 56 + p % 14 * 2;
        s.template input<"image">()[i * 196 + p] = static_cast<float>(at[0] + at[1] + at[28] + at[29]) / 1020.0f;
      }
    }
    s.step();
    if (step >= to - 64) last += static_cast<double>(s.loss()) / 64;  // an epoch
  }
  return last;
}
}  // namespace

TEST_CASE("the demo's digits: a final loss within 2 % of that with float slots, and a resumed run has the same bits") {
  auto wide = make_static_stepper<small>(static_batch<a_batch>{}, adam{.rate = 2e-3});
  auto narrow = make_static_stepper<small>(static_batch<a_batch>{}, adam{.rate = 2e-3}, half_slots{});
  wide.initialize(1), narrow.initialize(1);
  const double a = train(wide, 0, 640), b = train(narrow, 0, 640);
  CAPTURE(a);
  CAPTURE(b);
  CHECK(a < 0.6);
  CHECK(std::abs(b - a) < 0.02 * a);
  auto first = make_static_stepper<small>(static_batch<a_batch>{}, adam{.rate = 2e-3}, half_slots{}),
       second = make_static_stepper<small>(static_batch<a_batch>{}, adam{.rate = 2e-3}, half_slots{});
  first.initialize(1);
  train(first, 0, 300);
  const remembered saved = remember(first);
  state_list list;
  second.remembers(list);
  for (std::size_t i = 0; i < saved.values.size(); ++i)
    std::memcpy(list.entries()[i].bytes.data(), saved.values[i].data(), saved.values[i].size());
  second.restored();
  train(second, 300, 640);
  CHECK(remember(second) == remember(narrow));
}
