// one thread: nothing here runs at the same time
// compiled with: -O2
#include <gradus/run/slot_storage.hpp>
#include <gradus/update/clip.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/momentum.hpp>
#include <gradus/update/rules/rmsprop.hpp>

#include "../../examples/digits/draw.hpp"
#include "../sanitized.hpp"
#include "static_compare.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace static_test;

namespace {
using half_slots = gradus::slots<bfloat16>;
using byte_slots = gradus::slots<int8>;
template <auto Build, class... Policies>
inline constexpr std::size_t memory_of =
    decltype(make_static_stepper<Build>(std::declval<Policies>()...))::memory_bytes;
constexpr std::size_t line = default_device::alignment;
constexpr std::size_t rounded(std::size_t floats) { return (floats * 4 + line - 1) / line * line; }
constexpr std::size_t trained =
    rounded(9 * 4) + rounded(4) + rounded(64 * 6) + rounded(6) + rounded(6 * 3) + rounded(3);
}  // namespace

// Two slots of Adam in the memory of one; averages stay as they are.
static_assert(memory_of<images, static_batch<2>, adam> - memory_of<images, static_batch<2>, adam, half_slots> ==
              trained);
static_assert(memory_of<images, static_batch<2>, adam, exponential_moving_average> -
                  memory_of<images, static_batch<2>, adam, half_slots, exponential_moving_average> ==
              trained);

// A quarter, and a scale for each 64 elements and each of the six variables that are trained (the local one has no
// slots).
static_assert(memory_of<images, static_batch<2>, adam> - memory_of<images, static_batch<2>, adam, byte_slots> ==
              2 * trained - (2 * (trained / 4 + (trained / 256 + 6) * 4) + line - 1) / line * line);

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

namespace {
double value_of(int code, float scale) { return std::pow(code, 4) * (code < 0 ? -1.0 : 1.0) * double(scale); }
}  // namespace

TEST_CASE(
    "int8: a code is a neighbour of its number, with the exact mean; the greatest stays; what has no signs keeps out "
    "of 0") {
  random_stream draws{.seed = 9};
  for (int trial = 0; trial < 20; ++trial) {
    const std::size_t n = 1 + draws.below(64);
    std::vector<float> x(n), back(n);
    for (float& v : x)
      v = std::ldexp(uniform_float(draws.word()) - 0.5f, -static_cast<int>(draws.below(40)) - trial * 2);
    if (trial % 4 == 1)
      for (float& v : x) v = std::abs(v);
    if (trial % 3 == 0) x[draws.below(static_cast<std::uint32_t>(n))] = 0;
    const bool signs = std::any_of(x.begin(), x.end(), [](float v) { return v < 0; });
    std::vector<double> sums(n);
    std::int8_t codes[64] = {};
    float scale = 0;
    const detail::int8_slot slot{codes, &scale};
    constexpr int steps = 4096;
    float greatest = 0;
    for (const float v : x) greatest = std::max(greatest, std::abs(v));
    for (int step = 0; step < steps; ++step) {
      slot.store(x.data(), 0, n, 5, static_cast<std::uint64_t>(step));
      slot.load(back.data(), 0, n);
      for (std::size_t i = 0; i < n; ++i) {
        const int q = codes[i] < 0 ? -codes[i] : codes[i];
        const double size = std::abs(double(x[i])), own = value_of(q, scale);
        const bool neighbour = own <= size * (1 + 1e-6) ? value_of(q + 1, scale) >= size * (1 - 1e-6)
                                                        : value_of(q - 1, scale) <= size * (1 + 1e-6);
        const bool stands_for = std::abs(double(back[i]) - (x[i] < 0 ? -own : own)) <= 1e-6 * own;
        const bool vanishes = signs && size < double(scale);  // may become 0
        if ((x[i] == 0 ? q != 0 : q == 0 && !vanishes) || (q != 0 && (codes[i] < 0) != (x[i] < 0)) || !neighbour ||
            !stands_for)
          FAIL("a code of ", int(codes[i]), " for ", x[i], ", which came back as ", back[i]);
        sums[i] += double(back[i]);
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      const double size = std::abs(double(x[i])), code = std::pow(size / double(scale), 0.25);
      const double gap = value_of(int(code) + 1, scale) - value_of(int(code), scale);
      const double below_scale = signs ? 0.1 * double(scale) : double(scale);  // of x, the part below 1/16 of it is cut
      CHECK(std::abs(sums[i] / steps - double(x[i])) <
            (size < double(scale) ? below_scale : 4 * gap / 128 + 1e-6 * size));
      if (std::abs(x[i]) == greatest) CHECK(back[i] == doctest::Approx(x[i]).epsilon(1e-6));
    }
  }
}

TEST_CASE("int8: what is not finite makes its piece NaN, what is tiny becomes 0, and a constant starts as itself") {
  constexpr float infinite = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const float odd : {infinite, -infinite, nan}) {
    std::vector<float> x(150, 1.0f), back(150);
    x[70] = odd;
    std::int8_t codes[150] = {};
    float scales[3];
    const detail::int8_slot slot{codes, scales};
    for (std::size_t first = 0; first < 150; first += 64)
      slot.store(x.data() + first, first, std::min<std::size_t>(64, 150 - first), 1, 1),
          slot.load(back.data() + first, first, std::min<std::size_t>(64, 150 - first));
    for (std::size_t i = 0; i < 150; ++i) CHECK(std::isnan(back[i]) == (i >= 64 && i < 128));
  }
  for (const float start : {0.0f, -0.0f, 0.1f, -3.0f, 1e-28f, 0x1p-95f, -0x1p-96f, 0x1p-149f, 3e38f}) {
    std::vector<float> back(100), again(100);
    std::int8_t codes[100] = {};
    float scales[2];
    const detail::int8_slot slot{codes, scales};
    slot.start(start, 100);
    slot.load(back.data(), 0, 64), slot.load(back.data() + 64, 64, 36);
    for (const float v : back)
      CHECK(double(v) == doctest::Approx(std::abs(start) < 0x1p-95f ? 0.0 : double(start)).epsilon(1e-6));
    const std::vector<float> x(100, start);
    slot.store(x.data(), 0, 64, 1, 1), slot.store(x.data() + 64, 64, 36, 1, 1);
    slot.load(again.data(), 0, 64), slot.load(again.data() + 64, 64, 36);
    for (const float v : again) CHECK(double(v) == doctest::Approx(double(back[0])).epsilon(1e-6));
  }
}

TEST_CASE("int8: in the smallest piece that has a scale, zeros stay 0 and what is small stays small") {
  std::vector<float> x(64), back(64);
  x[0] = 0x1p-95f, x[1] = -0x1p-105f, x[2] = 0x1p-120f;
  std::int8_t codes[64] = {};
  float scale = 0;
  const detail::int8_slot slot{codes, &scale};
  slot.store(x.data(), 0, 64, 1, 1);
  slot.load(back.data(), 0, 64);
  CHECK(std::isfinite(16 / scale));
  CHECK(back[0] == doctest::Approx(x[0]).epsilon(1e-6));
  CHECK(std::abs(back[1]) <= 0x1p-104f);
  CHECK(std::abs(back[2]) <= 0x1p-118f);
  CHECK(std::all_of(back.begin() + 3, back.end(), [](float v) { return v == 0; }));
}

TEST_CASE("int8: the code of a size is the same from wherever its search begins, and lies beside its fourth root") {
  random_stream draws{.seed = 21};
  for (int trial = 0; trial < 4000; ++trial) {
    const std::uint32_t q = draws.below(128), random = draws.below(65536);
    const std::uint64_t at = 16ull * q * q * q * q;  // parts
    double size = double(at) + double(draws.below(33)) - 16;
    if (trial % 2 == 0) size = std::pow(uniform_float(draws.word()) * 127.0, 4) * 16;
    const float parts = static_cast<float>(std::max(size, 0.0));
    const auto whole = static_cast<std::uint64_t>(parts);
    std::uint64_t below = 0, above = 0, code = 0;
    const auto of = [](std::uint64_t c) { return 16 * c * c * c * c; };
    while (of(below + 1) <= whole) ++below;
    above = below + 1;
    if (parts >= static_cast<float>(of(127)))
      code = 127;
    else
      code = random * (of(above) - of(below)) < (whole - of(below)) << 16 ? above : below;
    for (const std::uint32_t begins : {0u, 1u, 63u, 126u, 127u, detail::int8_slot::near(parts, 5)})
      if (detail::int8_slot::code_of(parts, begins, random, false) != code)
        FAIL("from ", begins, ": ", detail::int8_slot::code_of(parts, begins, random, false), " for ", parts,
             " parts, expected ", code);
    const auto nearest =
        static_cast<std::int64_t>(detail::int8_slot::near(parts, 5)) - static_cast<std::int64_t>(below);
    CHECK(std::abs(nearest) <= 1);
  }
}

TEST_CASE("int8: what is too small for a part beside its greatest has no code 0 where none is negative") {
  std::vector<float> x(64, 0x1p-130f), back(64);
  x[0] = 3e38f, x[1] = 0;
  std::int8_t codes[64] = {};
  float scale = 0;
  detail::int8_slot{codes, &scale}.store(x.data(), 0, 64, 1, 1);
  CHECK(codes[0] == 127);
  CHECK(codes[1] == 0);
  CHECK(std::all_of(codes + 2, codes + 64, [](std::int8_t c) { return c == 1; }));
}

namespace {
// A weight whose gradient is next to nothing, beside others; how far it goes.
constexpr auto vanishing = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 8});
  const auto scale = g.constant({1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, 1e-22}, {8});
  const auto w = g.variable("w", {8}, {.init = zeros});
  return model_spec{.loss = reduce_mean(reduce_sum(x * scale * w, {1})), .metrics = {}, .predictions = {}};
};
}  // namespace

TEST_CASE("int8: a gradient that vanishes beside others moves nothing") {
  auto s = make_static_stepper<vanishing>(static_batch<1>{}, adam{.rate = 0.01}, byte_slots{});
  s.initialize(1);
  for (float& v : s.input<"x">()) v = 1;
  for (int i = 0; i < 1000; ++i) s.step();
  CHECK(std::abs(s.variable<"w">()[7]) < 1e-6f);
  CHECK(s.variable<"w">()[1] > 9);
}

TEST_CASE("element i of step t takes half a word of the Philox stream t") {
  const philox words(77);
  std::vector<float> x(150);
  random_stream draws{.seed = 4};
  for (float& v : x) v = uniform_float(draws.word()) - 0.5f;
  std::vector<std::uint16_t> stored(150);
  for (std::size_t first = 0; first < 150; first += 64)
    detail::bfloat_slot{stored.data()}.store(x.data() + first, first, std::min<std::size_t>(64, 150 - first), 77, 9);
  for (std::size_t i = 0; i < 150; ++i) {
    const std::uint32_t word = words.word(9, i / 2), random = i % 2 == 0 ? word & 0xffffu : word >> 16;
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x[i]);
    CHECK(stored[i] == static_cast<std::uint16_t>((bits >> 16) + ((bits & 0xffffu) + random >= 65536 ? 1 : 0)));
  }
}

namespace {
// The same steps with float slots on the heap, which are rounded here after every step.
template <dtype Type, auto Build, class Arithmetic, class Static, class... Update>
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
    std::size_t found = 0;
    const auto is_same = [&](std::string_view name, dtype type, const void* values) {
      for (const auto& e : list.entries())
        if (e.name == name) {
          ++found;
          return e.type == type && std::memcmp(e.bytes.data(), values, e.bytes.size()) == 0;
        }
      return true;  // local to the run
    };
    for (std::size_t v = 0; v < h.variables().size(); ++v) {
      const variable_info& info = h.variables().info(v);
      if (info.trainable)
        for (std::size_t k = 0; k < update::slot_count; ++k) {
          float* const f = reinterpret_cast<float*>(h.variables().mirror(k, v));
          const std::size_t n = info.size();
          std::vector<std::uint16_t> halves(n);
          std::vector<std::int8_t> codes(n);
          std::vector<float> scales((n + 63) / 64);
          const detail::bfloat_slot as_bfloat{halves.data()};
          const detail::int8_slot as_int8{codes.data(), scales.data()};
          for (std::size_t first = 0; first < n; first += 64) {
            const std::size_t many = std::min<std::size_t>(64, n - first);
            const auto round = [&](const auto& slot) {
              slot.store(f + first, first, many, (seed ^ stream_of(info.name)) + k, static_cast<std::uint64_t>(i));
              slot.load(f + first, first, many);
            };
            if constexpr (Type == int8)
              round(as_int8);
            else
              round(as_bfloat);
          }
          const std::string name = checkpoint_name(info.name, h.optimizer().mirrors()[k]);
          CHECK(is_same(name, Type, Type == int8 ? static_cast<const void*>(codes.data()) : halves.data()));
          if (Type == int8) CHECK(is_same(name + "/scale", float32, scales.data()));
        }
      CHECK(is_same(info.name, info.type, h.variables().value(v)));
    }
    CHECK(found >= (1 + update::slot_count * (Type == int8 ? 2 : 1)) * 6);
  }
}
}  // namespace

TEST_CASE("a step is that of float32 on what was stored") {
  auto a = make_static_stepper<images>(static_batch<2>{}, adam{.rate = 0.01}, half_slots{});
  same_as_rounded<bfloat16, images, fast>(a, 0, 6, adam{.rate = 0.01});
  auto b = make_static_stepper<images>(static_batch<2>{}, momentum{.rate = 0.1}, half_slots{.seed = 11}, portable{},
                                       clip_by_global_norm{0.05}, exponential_moving_average{.decay = 0.9});
  same_as_rounded<bfloat16, images, portable>(b, 11, 6, momentum{.rate = 0.1}, clip_by_global_norm{0.05},
                                              exponential_moving_average{.decay = 0.9});
  auto c = make_static_stepper<images>(static_batch<2>{}, adam{.rate = 0.01}, half_slots{}, release_gradients{});
  same_as_rounded<bfloat16, images, fast>(c, 0, 6, adam{.rate = 0.01});
}
TEST_CASE("int8: a step is that of float32 on what was stored") {
  auto a = make_static_stepper<images>(static_batch<2>{}, adam{.rate = 0.01}, byte_slots{});
  same_as_rounded<int8, images, fast>(a, 0, 6, adam{.rate = 0.01});
  auto b = make_static_stepper<images>(static_batch<2>{}, momentum{.rate = 0.1}, byte_slots{.seed = 11}, portable{},
                                       clip_by_global_norm{0.05}, exponential_moving_average{.decay = 0.9});
  same_as_rounded<int8, images, portable>(b, 11, 6, momentum{.rate = 0.1}, clip_by_global_norm{0.05},
                                          exponential_moving_average{.decay = 0.9});
  auto c = make_static_stepper<images>(static_batch<2>{}, adam{.rate = 0.01}, byte_slots{}, release_gradients{});
  same_as_rounded<int8, images, fast>(c, 0, 6, adam{.rate = 0.01});
  auto d = make_static_stepper<images>(static_batch<2>{}, rmsprop{.rate = 0.01, .momentum = 0.5}, byte_slots{});
  same_as_rounded<int8, images, fast>(d, 0, 6, rmsprop{.rate = 0.01, .momentum = 0.5});
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

namespace {
// A sensor: 64 samples of one of four waves, of any phase, in noise.
constexpr auto sensor = [](graph& g) {
  const auto signal = g.placeholder("signal", {batch, 64}), label = g.placeholder("label", {batch}, int32);
  auto h = tanh(dense(signal, {.units = 32, .name = "first"}));
  h = tanh(dense(h, {.units = 16, .name = "second"}));
  const auto logits = dense(h, {.units = 4, .name = "logits"});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, label)), .metrics = {}, .predictions = {}};
};
template <class Policy>
double sensor_loss() {
  auto s = make_static_stepper<sensor>(static_batch<8>{}, adam{.rate = 2e-3}, clip_by_global_norm{1.0}, Policy{});
  s.initialize(2);
  random_stream draws{.seed = 12};
  double last = 0;
  for (int step = 0; step < 1500; ++step) {
    for (std::size_t i = 0; i < 8; ++i) {
      const std::uint32_t label = draws.below(4);
      s.template input<"label">()[i] = static_cast<std::int32_t>(label);
      const double phase = double(uniform_float(draws.word())) * 6.28;
      for (std::size_t k = 0; k < 64; ++k)
        s.template input<"signal">()[i * 64 + k] = static_cast<float>(std::sin(phase + double(k) * 0.1 * (label + 1))) +
                                                   (uniform_float(draws.word()) - 0.5f) * 3.0f;
    }
    s.step();
    if (step >= 1000) last += static_cast<double>(s.loss()) / 500;
  }
  return last;
}
}  // namespace

TEST_CASE("a sensor's signals: a final loss within 2 % of that with float slots" * doctest::skip(is_sanitized)) {
  const double wide = sensor_loss<fast>(), half = sensor_loss<half_slots>(), eighth = sensor_loss<byte_slots>();
  CAPTURE(wide);
  CAPTURE(half);
  CAPTURE(eighth);
  CHECK(wide < 0.6);
  CHECK(std::abs(half - wide) < 0.02 * wide);
  CHECK(std::abs(eighth - wide) < 0.02 * wide);
}

namespace {
template <class Policy>
void learns_and_resumes(double float_loss) {
  const auto make = [] { return make_static_stepper<small>(static_batch<a_batch>{}, adam{.rate = 2e-3}, Policy{}); };
  auto narrow = make(), first = make(), second = make();
  narrow.initialize(1);
  const double loss = train(narrow, 0, 640);
  CAPTURE(loss);
  CHECK(std::abs(loss - float_loss) < 0.02 * float_loss);
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
}  // namespace

TEST_CASE("the demo's digits: a final loss within 2 % of that with float slots, and a resumed run has the same bits" *
          doctest::skip(is_sanitized)) {
  auto wide = make_static_stepper<small>(static_batch<a_batch>{}, adam{.rate = 2e-3});
  wide.initialize(1);
  const double loss = train(wide, 0, 640);
  CAPTURE(loss);
  CHECK(loss < 0.6);
  learns_and_resumes<half_slots>(loss);
  learns_and_resumes<byte_slots>(loss);
}
