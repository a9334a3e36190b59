// The drawings that the digits example makes for itself.
#include "../../examples/digits/draw.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>

namespace {
std::uint64_t fingerprint(std::span<const std::uint8_t> bytes) {  // FNV-1a
  std::uint64_t h = 14695981039346656037u;
  for (const auto b : bytes) h = (h ^ b) * 1099511628211u;
  return h;
}
}  // namespace

TEST_CASE("a drawing is a function of its seed and number") {
  const auto a = digits::draw_digits(50, 1), b = digits::draw_digits(20, 1), c = digits::draw_digits(20, 2);
  CHECK(a.images.size() == 50 * 784);
  CHECK(a.labels.size() == 50);
  const auto head = std::span(a.images).first(20 * 784);
  CHECK(fingerprint(head) == fingerprint(b.images));
  CHECK(fingerprint(head) != fingerprint(c.images));
  CHECK(fingerprint(std::span(head).first(784)) != fingerprint(std::span(head).subspan(784, 784)));
}

TEST_CASE("ten digits, equally often, of ink and paper") {
  const auto all = digits::draw_digits(5000, 3);
  std::array<int, 10> seen{};
  for (const auto label : all.labels) {
    REQUIRE(label < 10);
    ++seen[label];
  }
  for (const int n : seen) CHECK((n > 400 && n < 600));
  for (std::size_t i = 0; i < all.labels.size(); ++i) {
    int dark = 0;
    for (std::size_t k = 0; k < 784; ++k) dark += all.images[i * 784 + k] > 100;
    CHECK((dark > 15 && dark < 400));
  }
}

TEST_CASE("the nearest mean drawing does not tell the digit, so they are not too easy; nor is it useless") {
  const auto train = digits::draw_digits(3000, 4), test = digits::draw_digits(1000, 5);
  std::array<std::array<double, 784>, 10> mean{};
  std::array<double, 10> count{};
  for (std::size_t i = 0; i < train.labels.size(); ++i) {
    ++count[train.labels[i]];
    for (std::size_t k = 0; k < 784; ++k) mean[train.labels[i]][k] += train.images[i * 784 + k];
  }
  for (std::size_t d = 0; d < 10; ++d)
    for (auto& m : mean[d]) m /= count[d];
  int right = 0;
  for (std::size_t i = 0; i < test.labels.size(); ++i) {
    std::size_t nearest = 0;
    double least = 1e300;
    for (std::size_t d = 0; d < 10; ++d) {
      double sum = 0;
      for (std::size_t k = 0; k < 784; ++k)
        sum += (mean[d][k] - test.images[i * 784 + k]) * (mean[d][k] - test.images[i * 784 + k]);
      if (sum < least) least = sum, nearest = d;
    }
    right += nearest == test.labels[i];
  }
  MESSAGE("nearest mean: ", right, " of 1000");
  CHECK((right > 500 && right < 900));
}
