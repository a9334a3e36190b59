#include <doctest/doctest.h>
#include <gradus/base/random.hpp>
#include <gradus/cpu/winograd_transforms.hpp>

#include <array>
#include <cmath>

using namespace gradus;

namespace {
// The matrices of the paper, times 24 where G has fractions.
template <int M>
struct matrices;
template <>
struct matrices<2> {
  static constexpr double image[4][4] = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}};
  static constexpr double filter[4][3] = {{24, 0, 0}, {12, 12, 12}, {12, -12, 12}, {0, 0, 24}};
  static constexpr double result[2][4] = {{1, 1, 1, 0}, {0, 1, -1, -1}};
};
template <>
struct matrices<4> {
  static constexpr double image[6][6] = {{4, 0, -5, 0, 1, 0},  {0, -4, -4, 1, 1, 0}, {0, 4, -4, -1, 1, 0},
                                         {0, -2, -1, 2, 1, 0}, {0, 2, -1, -2, 1, 0}, {0, 4, 0, -5, 0, 1}};
  static constexpr double filter[6][3] = {{6, 0, 0}, {-4, -4, -4}, {-4, 4, -4}, {1, 2, 4}, {1, -2, 4}, {0, 0, 24}};
  static constexpr double result[4][6] = {
      {1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}};
};

using number = detail::lane<double, fast>;

template <int In, int Out, class Transform, class Entry>
void check_matrix(Transform transform, Entry entry) {
  for (int j = 0; j < In; ++j) {
    number unit[In], to[Out];
    for (int i = 0; i < In; ++i) unit[i] = number(i == j ? 1.0 : 0.0);
    transform(unit, to);
    for (int i = 0; i < Out; ++i) CHECK(to[i].v == doctest::Approx(entry(i, j)).epsilon(1e-15));
  }
}
template <int M>
void check_matrices() {
  using of = detail::winograd_transforms<M>;
  using m = matrices<M>;
  constexpr int side = M + 2;
  check_matrix<side, side>([](const number* a, number* b) { of::image(a, b); },
                           [](int i, int j) { return m::image[i][j]; });
  check_matrix<3, side>([](const number* a, number* b) { of::filter(a, b); },
                        [](int i, int j) { return m::filter[i][j] / 24; });
  check_matrix<side, M>([](const number* a, number* b) { of::result(a, b); },
                        [](int i, int j) { return m::result[i][j]; });
  check_matrix<M, side>([](const number* a, number* b) { of::gradient(a, b); },
                        [](int i, int j) { return m::result[j][i]; });
  check_matrix<side, 3>([](const number* a, number* b) { of::of_filter(a, b); },
                        [](int i, int j) { return m::filter[j][i] / 24; });
}

// Sums of a tile by transforms, and plainly.
template <int M>
void check_tile(random_stream& r) {
  using of = detail::winograd_transforms<M>;
  constexpr int side = M + 2;
  number pixels[side][side], filters[3][3], upstream[M][M], v[side][side], u[side][side], d[side][side], y[M][M],
      df[3][3];
  const auto fill = [&](auto& numbers) {
    for (auto& row : numbers)
      for (number& x : row) x = number(2 * r.uniform() - 1);
  };
  fill(pixels), fill(filters), fill(upstream);
  detail::transform_both<side, side, number>([&](int i, int j) { return pixels[i][j]; },
                                             [](const number* a, number* b) { of::image(a, b); },
                                             [&](int i, int j, number x) { v[i][j] = x; });
  detail::transform_both<3, side, number>([&](int i, int j) { return filters[i][j]; },
                                          [](const number* a, number* b) { of::filter(a, b); },
                                          [&](int i, int j, number x) { u[i][j] = x; });
  detail::transform_both<M, side, number>([&](int i, int j) { return upstream[i][j]; },
                                          [](const number* a, number* b) { of::gradient(a, b); },
                                          [&](int i, int j, number x) { d[i][j] = x; });
  detail::transform_both<side, M, number>([&](int i, int j) { return u[i][j] * v[i][j]; },
                                          [](const number* a, number* b) { of::result(a, b); },
                                          [&](int i, int j, number x) { y[i][j] = x; });
  detail::transform_both<side, 3, number>([&](int i, int j) { return d[i][j] * v[i][j]; },
                                          [](const number* a, number* b) { of::of_filter(a, b); },
                                          [&](int i, int j, number x) { df[i][j] = x; });
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < M; ++j) {
      double sum = 0;
      for (int a = 0; a < 3; ++a)
        for (int b = 0; b < 3; ++b) sum += pixels[i + a][j + b].v * filters[a][b].v;
      CHECK(std::abs(y[i][j].v - sum) < 1e-13);
    }
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < 3; ++b) {
      double sum = 0;
      for (int i = 0; i < M; ++i)
        for (int j = 0; j < M; ++j) sum += pixels[i + a][j + b].v * upstream[i][j].v;
      CHECK(std::abs(df[a][b].v - sum) < 1e-13);
    }
}
}  // namespace

TEST_CASE("the transforms are the paper's matrices") {
  check_matrices<2>();
  check_matrices<4>();
}

TEST_CASE("transforms, products and the transform back give the sums of a tile") {
  random_stream r{5, 0};
  for (int i = 0; i < 20; ++i) check_tile<2>(r), check_tile<4>(r);
}
