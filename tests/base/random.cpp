#include <gradus/base/random.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace {
using words = std::array<std::uint32_t, 4>;
constexpr gradus::philox keyed(std::uint32_t k0, std::uint32_t k1) {
  return gradus::philox(std::uint64_t{k1} << 32 | k0);
}
}  // namespace

// Random123, tests/kat_vectors, "philox4x32 10": counter, key, result.
static_assert(keyed(0, 0)({0, 0, 0, 0}) == words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(keyed(0xffffffff, 0xffffffff)({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}) ==
              words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
static_assert(keyed(0xa4093822, 0x299f31d0)({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}) ==
              words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});

TEST_CASE("the published vectors hold at run time too") {
  volatile std::uint32_t zero = 0;
  CHECK(keyed(zero, zero)({zero, zero, zero, zero}) == words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
}

TEST_CASE("a word is the block of its counter, at its place") {
  const gradus::philox f(0x0123456789abcdefu);
  const std::uint64_t stream = 0xfedcba9876543210u;
  for (std::uint64_t index :
       {std::uint64_t{0}, std::uint64_t{5}, std::uint64_t{0x7fffffff}, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    const std::uint64_t block = index / 4;
    const words expected =
        f({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0x76543210u, 0xfedcba98u});
    CHECK(f.word(stream, index) == expected[index % 4]);
  }
}

TEST_CASE("a stream walks through the words and can be put anywhere") {
  gradus::random_stream s{.seed = 42};
  std::vector<std::uint32_t> walked;
  for (int i = 0; i < 10; ++i) walked.push_back(s.word());
  CHECK(s.next == 10);
  for (std::size_t i = 0; i < 10; ++i) CHECK(walked[i] == gradus::philox(42).word(0, i));
  gradus::random_stream resumed{.seed = 42, .next = 7};
  CHECK(resumed.word() == walked[7]);
}

TEST_CASE("uniform numbers lie in [0, 1), to the last word") {
  static_assert(gradus::uniform_float(0) == 0.0f);
  static_assert(gradus::uniform_float(0xffffffffu) == 1.0f - 0x1p-24f);
  static_assert(gradus::uniform_float(0x80000000u) == 0.5f);
  static_assert(gradus::uniform_double(0, 0) == 0.0);
  static_assert(gradus::uniform_double(0xffffffffu, 0xffffffffu) == 1.0 - 0x1p-53);
  gradus::random_stream s{.seed = 1};
  double sum = 0;
  const int n = 100000;
  for (int i = 0; i < n; ++i) sum += s.uniform();
  // The mean of n uniforms has standard deviation 1/sqrt(12 n) = 0.0009: five of them.
  CHECK(std::abs(sum / n - 0.5) < 0.0046);
}

TEST_CASE("below is even: chi-square over 7 cells stays under its 99.99 % point") {
  gradus::random_stream s{.seed = 3};
  const int n = 70000;
  int cells[7] = {};
  for (int i = 0; i < n; ++i) ++cells[s.below(7)];
  double chi_square = 0;
  for (int c : cells) chi_square += (c - n / 7.0) * (c - n / 7.0) / (n / 7.0);
  CHECK(chi_square < 27.86);  // 6 degrees of freedom
}

TEST_CASE("below keeps its bound at the edges, and rejects what would make it uneven") {
  gradus::random_stream s{.seed = 9};
  for (int i = 0; i < 100; ++i) CHECK(s.below(1) == 0);
  // With n = 2^31 + 1 nearly half of all words are rejected, so 1000 draws take clearly more than 1000 words.
  s = {.seed = 9};
  for (int i = 0; i < 1000; ++i) CHECK(s.below(0x80000001u) < 0x80000001u);
  CHECK(s.next > 1500);
  CHECK(s.next < 2500);
}
