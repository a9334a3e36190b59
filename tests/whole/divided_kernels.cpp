// Kernels over rows and columns, done in parts: the same bits as at once.
#include "../cpu/divided.hpp"

#include <doctest/doctest.h>
#include <gradus/base/random.hpp>
#include <gradus/cpu/arrange.hpp>
#include <gradus/cpu/gather.hpp>
#include <gradus/cpu/reduce.hpp>
#include <gradus/cpu/softmax.hpp>

namespace {
using namespace gradus;
using namespace divided_test;

std::vector<float> draw(std::size_t n) {
  random_stream r{n + 1};
  std::vector<float> v(n);
  for (auto& x : v) x = static_cast<float>(4 * r.uniform() - 2);
  return v;
}
std::vector<std::int32_t> labels(std::size_t n, std::int32_t below) {
  std::vector<std::int32_t> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<std::int32_t>((i * 7) % static_cast<std::size_t>(below));
  return v;
}
}  // namespace

TEST_CASE("softmax and cross-entropy, by rows") {
  for (int n : {1, 10, 16, 40, 300}) {
    for (std::int64_t rows : {0, 1, 5, 19}) {
      const auto count = static_cast<std::size_t>(rows * n), many = static_cast<std::size_t>(rows);
      const auto x = draw(count), y = draw(count), dy = draw(many);
      const auto label = labels(many, n);
      const std::vector<int> dims{0, n};
      bool same = true;
      const auto two = {float32, float32, float32};
      same_in_parts<&cards::softmax, float>(dims, rows, count, two, {x.data()}, same);
      same_in_parts<&cards::log_softmax, float>(dims, rows, count, two, {x.data()}, same);
      same_in_parts<&cards::softmax_grad, float>(dims, rows, count, two, {x.data(), y.data()}, same);
      same_in_parts<&cards::log_softmax_grad, float>(dims, rows, count, two, {x.data(), y.data()}, same);
      same_in_parts<&cards::softmax_xent, float>(dims, rows, many, two, {x.data(), y.data()}, same);
      const auto ids = {float32, float32, int32, float32};
      same_in_parts<&cards::sparse_xent, float>(dims, rows, many, ids, {x.data(), label.data()}, same);
      same_in_parts<&cards::sparse_xent_grad, float>(dims, rows, count, ids, {x.data(), label.data(), dy.data()}, same);
      CHECK(same);
    }
  }
}

TEST_CASE("sums, by rows and by columns; a column is one chain in order") {
  const auto two = {float32, float32};
  for (int n : {1, 9, 100}) {
    for (int m : {1, 15, 16, 64, 65, 200}) {
      const auto x = draw(static_cast<std::size_t>(2 * n * m));
      bool same = true;
      const auto down = same_in_parts<&cards::sum, float>({1, 2, n, m}, 1, static_cast<std::size_t>(m), two, {x.data()},
                                                          same);  // [n, m] to [m]
      for (int j = 0; j < m; ++j) {
        float chain = 0;
        for (int i = 0; i < n; ++i) chain += x[static_cast<std::size_t>(i * m + j)];
        REQUIRE(down[static_cast<std::size_t>(j)] == chain);
      }
      same_in_parts<&cards::mean, float>({0, 3, 2, n, m}, 1, static_cast<std::size_t>(2 * m), two, {x.data()}, same);
      same_in_parts<&cards::max, float>({0, 2, n, m}, 1, static_cast<std::size_t>(n), two, {x.data()}, same);
      same_in_parts<&cards::argmax, std::int64_t>({0, 2, n, m}, 1, static_cast<std::size_t>(n), {int64, float32},
                                                  {x.data()}, same);
      CHECK(same);
    }
  }
}

TEST_CASE("rows by number, and what is moved") {
  bool same = true;
  const int width = 130, table = 9;
  const auto x = draw(static_cast<std::size_t>(table * width)), values = draw(static_cast<std::size_t>(20 * width));
  const auto at = labels(20, table);
  const auto types = {float32, float32, int32};
  same_in_parts<&cards::gather, float>({0, width, table}, 20, static_cast<std::size_t>(20 * width), types,
                                       {x.data(), at.data()}, same);
  const auto dense = same_in_parts<&cards::rows_to_dense, float>({0, width, table}, 20, x.size(), types,
                                                                 {values.data(), at.data()}, same);
  for (int row = 0; row < table; ++row)
    for (int j = 0; j < width; ++j) {
      float chain = 0;
      for (std::size_t i = 0; i < 20; ++i)
        if (at[i] == row) chain += values[i * width + static_cast<std::size_t>(j)];
      REQUIRE(dense[static_cast<std::size_t>(row * width + j)] == chain);
    }
  const float on = 1, off = 0;
  same_in_parts<&cards::one_hot, float>({0, table}, 20, static_cast<std::size_t>(20 * table), {float32, int32},
                                        {at.data(), &on, &off}, same);
  CHECK(same);
}

TEST_CASE("transposed in parts") {
  const auto x = draw(5 * 3 * 4 * 8);
  bool same = true;
  const auto y = same_in_parts<&cards::transpose, float>({4, 0, 4, 3, 8, 0, 0, 0, 2, 1, 3}, 5, x.size(),
                                                         {float32, float32}, {x.data()}, same);
  for (std::size_t a = 0; a < 5; ++a)
    for (std::size_t b = 0; b < 4; ++b)
      for (std::size_t c = 0; c < 3; ++c)
        for (std::size_t d = 0; d < 8; ++d)
          REQUIRE(y[((a * 4 + b) * 3 + c) * 8 + d] == x[((a * 3 + c) * 4 + b) * 8 + d]);
  const auto turned = same_in_parts<&cards::transpose, float>({2, 24, 20, 0, 0, 0, 0, 1, 0}, 1, x.size(),
                                                              {float32, float32}, {x.data()}, same);
  for (std::size_t i = 0; i < 24; ++i)
    for (std::size_t j = 0; j < 20; ++j) REQUIRE(turned[i * 20 + j] == x[j * 24 + i]);
  same_in_parts<&cards::transpose, float>({1, 0, 0, 0, 0, 0, 0, 0}, 480, x.size(), {float32, float32}, {x.data()},
                                          same);
  const float fill = -1;
  same_in_parts<&cards::causal_mask, float>({0, 8}, 7, 448, {float32, float32}, {x.data(), &fill}, same);
  CHECK(same);
}
