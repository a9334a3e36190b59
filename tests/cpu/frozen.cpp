#include "windows.hpp"

#include <gradus/cpu/frozen.hpp>

#include <cmath>
#include <limits>

using namespace window_test;

namespace {
constexpr float infinity = std::numeric_limits<float>::infinity();

struct quantized {
  std::vector<std::uint8_t> codes;
  std::vector<float> pairs;  // of each part: scale, zero point
};
quantized quantize_parts(const std::vector<float>& x, std::size_t parts) {
  quantized q{std::vector<std::uint8_t>(x.size()), std::vector<float>(2 * parts)};
  const auto each = static_cast<std::int64_t>(x.size() / parts);
  for (std::size_t i = 0; i < parts; ++i) {
    const float* const from = x.data() + static_cast<std::int64_t>(i) * each;
    detail::quantization_of(from, each, &q.pairs[2 * i]);
    detail::quantize(&q.codes[i * static_cast<std::size_t>(each)], from, each, &q.pairs[2 * i]);
  }
  return q;
}

struct drawn_weights {
  std::vector<std::int8_t> codes;
  std::vector<float> scales, bias;
  frozen_weights card;
  drawn_weights(lcg& random, int layer, shape dims, int channels) {
    for (std::int64_t i = 0; i < count(dims); ++i)
      codes.push_back(static_cast<std::int8_t>(static_cast<int>(random(255)) - 127));
    for (int i = 0; i < channels; ++i)
      scales.push_back(static_cast<float>(random(1000) + 1) / 4096), bias.push_back(static_cast<float>(random(9)) - 4);
    card = {layer, dims, channels, codes.data(), scales.data(), bias.data()};
  }
};
// sum * (scale * scale of the channel) + bias, every step rounded to float by itself.
float expected(std::int64_t sum, float scale, const drawn_weights& w, std::size_t channel) {
  volatile float s = static_cast<float>(sum), both = scale * w.scales[channel], y = s * both;
  y = y + w.bias[channel];
  return y;
}
// The kernel's result in this many parts, of a signature with these extents.
template <class F>
std::vector<float> in_parts(const std::vector<int>& dims, std::int64_t rows, std::size_t size, int parts, F run) {
  detail::signature s;
  for (std::size_t i = 0; i < dims.size(); ++i) s.dims[i] = dims[i];
  std::vector<float> y(size, std::nanf(""));
  for (int part = 0; part < parts; ++part) run(detail::dynamic{rows, 1, part, parts, s}, y.data());
  return y;
}
}  // namespace

TEST_CASE("numbers in 8 bits: the nearest code, and a code for 0") {
  lcg random{11};
  for (int round = 0; round < 300; ++round) {
    auto x = random.reals<float>(1 + random(60));
    const float wide = std::ldexp(1.0f, static_cast<int>(random(120)) - 60);
    const bool positive = random(2) == 0;
    for (float& v : x) v = (positive ? std::fabs(v) : v) * wide;
    if (random(3) == 0) x[random(static_cast<std::uint32_t>(x.size()))] = 0;
    const auto q = quantize_parts(x, 1);
    const float scale = q.pairs[0], zero = q.pairs[1];
    CAPTURE(round);
    REQUIRE(zero == std::nearbyint(zero));
    REQUIRE((zero >= 0 && zero <= 255 && scale >= 0));
    float low = 0, high = 0;
    for (float v : x) low = std::min(low, v), high = std::max(high, v);
    REQUIRE(scale == doctest::Approx((high - low) / 255).epsilon(1e-6));
    if (positive) REQUIRE(zero == 0);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double stands_for = (q.codes[i] - static_cast<double>(zero)) * scale;
      // At the ends the zero point's rounding may cost half a code more.
      REQUIRE(std::fabs(stands_for - x[i]) <= 1.001 * scale);
      if (x[i] != low && x[i] != high && q.codes[i] != 0 && q.codes[i] != 255)
        REQUIRE(std::fabs(stands_for - x[i]) <= 0.5001 * scale);
      if (x[i] == 0) REQUIRE(stands_for == 0);
    }
  }
}

TEST_CASE("numbers in 8 bits: none, the smallest, those that are not finite") {
  for (const auto& x : {std::vector<float>(5, 0.0f), std::vector<float>(5, 1e-38f), std::vector<float>(3, -1e-45f)}) {
    const auto q = quantize_parts(x, 1);
    CHECK(q.pairs[0] == 0);
    CHECK(q.pairs[1] == 0);
    CHECK(q.codes[0] == 0);
  }
  for (const float bad : {infinity, -infinity, std::nanf("")}) {
    const auto q = quantize_parts({1, 2, bad, 3, /* another part: */ 1, 2, -3, 4}, 2);
    CHECK(std::isnan(q.pairs[0]));
    CHECK(q.pairs[2] == doctest::Approx(7.0 / 255));
  }
  const float most = std::numeric_limits<float>::max();
  const auto q = quantize_parts({most, -most, 0}, 1);
  CHECK(std::isfinite(q.pairs[0]));
  CHECK(static_cast<float>(q.codes[2]) == q.pairs[1]);
  CHECK(q.codes[0] == 255);
  CHECK(q.codes[1] <= 1);
}

TEST_CASE("convolutions of codes: exact sums, in any number of parts") {
  lcg random{5};
  for (int round = 0; round < 200; ++round) {
    problem p = draw(random);
    const bool depthwise = round % 2 == 1;
    const int multiplier = depthwise ? 1 + static_cast<int>(random(3)) : 1;
    if (depthwise) p.out = p.in * multiplier;
    const auto images = static_cast<std::size_t>(p.n), in = static_cast<std::size_t>(p.in),
               out = static_cast<std::size_t>(p.out), places = static_cast<std::size_t>(p.oh() * p.ow());
    const drawn_weights w(random, depthwise ? frozen_weights::of_depthwise_conv2d : frozen_weights::of_conv2d,
                          {p.kh, p.kw, p.in, depthwise ? multiplier : p.out}, p.out);
    auto x = random.reals<float>(p.x_size());
    if (random(2) == 0)
      for (float& v : x) v = std::max(v, 0.0f);
    const auto q = quantize_parts(x, images);
    std::vector<std::int64_t> sums(p.y_size(), 0);
    p.each([&](std::size_t to, std::size_t from, std::size_t at) {
      const auto zero = static_cast<std::int64_t>(q.pairs[2 * (to / places) + 1]);
      for (std::size_t c = 0; c < out; ++c)
        if (depthwise)
          sums[to * out + c] +=
              (q.codes[from * in + c / static_cast<std::size_t>(multiplier)] - zero) * w.codes[at * out + c];
        else
          for (std::size_t k = 0; k < in; ++k)
            sums[to * out + c] += (q.codes[from * in + k] - zero) * w.codes[(at * in + k) * out + c];
    });
    std::vector<float> wanted(p.y_size());
    for (std::size_t i = 0; i < wanted.size(); ++i)
      wanted[i] = expected(sums[i], q.pairs[2 * (i / (places * out))], w, i % out);
    CAPTURE(round);
    for (const int parts : {1, 2, 5})
      REQUIRE(in_parts(p.lowered(), p.n, p.y_size(), parts, [&](const detail::dynamic& s, float* y) {
                const detail::frozen_windows g(s);
                const index_range lines = s.share(s.dim(0) * g.oh);
                if (depthwise)
                  detail::frozen_depthwise_conv2d(w.card, y, q.codes.data(), q.pairs.data(), lines, g);
                else
                  detail::frozen_conv2d(w.card, y, q.codes.data(), q.pairs.data(), lines, g);
              }) == wanted);
  }
}

TEST_CASE("products of codes: exact sums, rows with scales of their own") {
  lcg random{8};
  for (int round = 0; round < 100; ++round) {
    const std::size_t rows = 1 + random(6), in = 1 + random(70), units = 1 + random(40);
    const drawn_weights w(random, frozen_weights::of_dense, {static_cast<int>(in), static_cast<int>(units)},
                          static_cast<int>(units));
    auto x = random.reals<float>(rows * in);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] *= static_cast<float>(1 + i / in);
    const auto q = quantize_parts(x, rows);
    std::vector<float> wanted(rows * units);
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < units; ++c) {
        std::int64_t sum = 0;
        for (std::size_t k = 0; k < in; ++k)
          sum += (q.codes[r * in + k] - static_cast<std::int64_t>(q.pairs[2 * r + 1])) * w.codes[k * units + c];
        wanted[r * units + c] = expected(sum, q.pairs[2 * r], w, c);
      }
    const auto n = static_cast<std::int64_t>(rows), k = static_cast<std::int64_t>(in),
               m = static_cast<std::int64_t>(units);
    for (const int parts : {1, 3})
      REQUIRE(in_parts({0, static_cast<int>(in), static_cast<int>(units)}, n, wanted.size(), parts,
                       [&](const detail::dynamic& s, float* y) {
                         detail::frozen_dense(w.card, y, q.codes.data(), q.pairs.data(), s.share(s.dim(0)), k, m);
                       }) == wanted);
  }
}

TEST_CASE("the longest sum fits into 32 bits, and an image that is not finite gives NaN alone") {
  const auto n = static_cast<std::size_t>(detail::most_terms);
  const std::vector<std::int8_t> codes(n, -127);
  const float scale = 1, bias = 0;
  const frozen_weights w{frozen_weights::of_dense, {static_cast<int>(n), 1}, 1, codes.data(), &scale, &bias};
  const std::vector<std::uint8_t> x(n, 255);
  const float pair[] = {1, 0};
  float y = 0;
  detail::frozen_dense(w, &y, x.data(), pair, {0, 1}, detail::most_terms, 1);
  CHECK(y == -255.0f * 127 * static_cast<float>(n));

  const auto q = quantize_parts({1, infinity, 1, 2}, 2);
  const std::int8_t two[] = {1, 1};
  const frozen_weights pairwise{frozen_weights::of_dense, {2, 1}, 1, two, &scale, &bias};
  float both[2];
  detail::frozen_dense(pairwise, both, q.codes.data(), q.pairs.data(), {0, 2}, 2, 1);
  CHECK(std::isnan(both[0]));
  CHECK(both[1] == doctest::Approx(3).epsilon(0.01));
}
