// compiled with: -O3 -march=native
#include <gradus/cpu/measure.hpp>

#include <doctest/doctest.h>

#include <gradus/update/rules/gradient_descent.hpp>
#include <vector>

#include "updated.hpp"

using namespace gradus;
using updated::random_numbers;

namespace {

// Measures theta^2, g^2 and, where g is 0, something that is not: places beyond the end must not count.
struct counting_rule {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "Counting";
  std::optional<double> rate = 1.0;
  template <class N>
  struct constants {
    N rate;
  };
  constexpr constants<double> prepare(const step_info& at) const { return {at.rate}; }
  static constexpr std::size_t measures = 3;
  template <class N>
  std::array<N, 3> measure(N theta, N g, const constants<N>&) const {
    return {theta * theta, g * g, N(1) + N(0) * g};
  }
  constants<double> adapt(const constants<double>& c, const subject&, std::span<const double>) const { return c; }
  template <class N>
  N step(N theta, N g, const constants<N>& c) const {
    return theta - c.rate * g;
  }
};

}  // namespace

TEST_CASE("measures are sums over the elements, whatever the width, and nothing beyond the end counts") {
  const auto update = composed{counting_rule{}}.single();
  for (std::size_t n : {0u, 1u, 7u, 16u, 17u, 100u, 4096u, 4097u, 10000u}) {
    const auto theta = random_numbers<float>(n, 1), g = random_numbers<float>(n, 2);
    double want[3] = {};
    for (std::size_t i = 0; i < n; ++i) {
      want[0] += static_cast<double>(theta[i]) * static_cast<double>(theta[i]);
      want[1] += static_cast<double>(g[i]) * static_cast<double>(g[i]);
      want[2] += 1;
    }
    const auto c = update.prepare<float>(0);
    float* none[1] = {};
    double narrow[3] = {}, wide[3] = {};
    measure<0, fast, float, std::remove_const_t<decltype(update)>, detail::lane<float, fast>>(
        update, c, 1.0f, theta.data(), g.data(), none, n, narrow);
    measure<0, fast>(update, c, 1.0f, theta.data(), g.data(), none, n, wide);
    for (int k = 0; k < 3; ++k) {
      CHECK(narrow[k] == wide[k]);
      CHECK(wide[k] == doctest::Approx(want[k]).epsilon(1e-6));
    }
    CHECK(wide[2] == static_cast<double>(n));
  }
}

TEST_CASE("of a sparse gradient the listed rows are measured, duplicates summed; raw clips see the values one by one") {
  const std::vector<float> theta{1, 2, 3, 4, 5, 6}, values{1, 1, 10, 10, 2, 2};
  const std::vector<std::int32_t> rows{2, 0, 2};
  std::vector<std::int32_t> scratch(row_chains::scratch(3));
  float* none[1] = {};
  const auto update = composed{counting_rule{}}.single();
  double sums[3] = {};
  measure_rows<0, fast>(update, update.prepare<float>(0), 1.0f, theta.data(), none, 2, rows.data(), values.data(), 3,
                        scratch, sums);
  CHECK(sums[0] == 25 + 36 + 1 + 4);
  CHECK(sums[1] == 3 * 3 + 3 * 3 + 100 + 100);
  CHECK(sums[2] == 4);
  const auto clipped = composed{clip_by_norm{1.0}, gradient_descent{.rate = 1.0}}.single();
  double raw[1] = {};
  measure_values<0, fast>(clipped, clipped.prepare<float>(0), 1.0f, values.data(), values.size(), raw);
  CHECK(raw[0] == 1 + 1 + 100 + 100 + 4 + 4);
}

TEST_CASE("column sums of squares") {
  for (std::size_t columns : {1u, 3u, 16u, 21u}) {
    const auto x = random_numbers<double>(columns * 5, 3);
    std::vector<double> got(columns);
    column_squares<fast>(x.data(), x.size(), columns, got.data());
    for (std::size_t j = 0; j < columns; ++j) {
      double want = 0;
      for (std::size_t i = 0; i < 5; ++i) want += x[i * columns + j] * x[i * columns + j];
      CHECK(got[j] == doctest::Approx(want).epsilon(1e-14));
    }
  }
}
