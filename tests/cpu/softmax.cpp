#include <doctest/doctest.h>
#include <gradus/cpu/device.hpp>
#include <gradus/cpu/softmax.hpp>
#include <gradus/run/session.hpp>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace {
using namespace gradus;

struct row_sums {
  double most, log_sum;
};
row_sums of(const float* x, std::size_t n) {
  double most = -INFINITY, sum = 0;
  for (std::size_t i = 0; i < n; ++i) most = std::max(most, static_cast<double>(x[i]));
  for (std::size_t i = 0; i < n; ++i) sum += std::exp(static_cast<double>(x[i]) - most);
  return {most, std::log(sum)};
}
}  // namespace

TEST_CASE("softmax, log softmax and both cross-entropies agree with double arithmetic") {
  for (int classes : {1, 2, 10, 16, 17, 100}) {
    CAPTURE(classes);
    const auto n = static_cast<std::size_t>(classes);
    const std::size_t rows = 5;
    random_stream r{n};
    std::vector<float> x(rows * n), labels(rows * n);
    std::vector<std::int64_t> label(rows);
    for (auto& v : x) v = static_cast<float>(20 * r.uniform() - 10);
    for (std::size_t i = 0; i < rows; ++i) {
      label[i] = r.below(static_cast<std::uint32_t>(classes));
      for (std::size_t j = 0; j < n; ++j) labels[i * n + j] = static_cast<std::int64_t>(j) == label[i] ? 1.f : 0.f;
    }
    graph g;
    const value in = g.placeholder("x", {batch, classes}), dense_labels = g.placeholder("labels", {batch, classes}),
                ids = g.placeholder("label", {batch}, int64);
    const value soft = softmax(in), log_soft = log_softmax(in),
                xent = softmax_cross_entropy_with_logits(in, dense_labels),
                sparse = sparse_softmax_cross_entropy(in, ids);
    session s{g};
    const auto got = s.run({soft, log_soft, xent, sparse}, {{"x", x}, {"labels", labels}, {"label", label}});
    for (std::size_t i = 0; i < rows; ++i) {
      const auto [most, log_sum] = of(x.data() + i * n, n);
      double total = 0;
      for (std::size_t j = 0; j < n; ++j) {
        const double want = static_cast<double>(x[i * n + j]) - most - log_sum;
        CHECK(got[1].as<float>()[i * n + j] == doctest::Approx(want).epsilon(1e-5));
        CHECK(got[0].as<float>()[i * n + j] == doctest::Approx(std::exp(want)).epsilon(1e-5));
        total += static_cast<double>(got[0].as<float>()[i * n + j]);
      }
      CHECK(total == doctest::Approx(1).epsilon(1e-5));
      const double loss = most + log_sum - static_cast<double>(x[i * n + static_cast<std::size_t>(label[i])]);
      CHECK(got[2].as<float>()[i] == doctest::Approx(loss).epsilon(1e-4));
      CHECK(got[3].as<float>()[i] == doctest::Approx(loss).epsilon(1e-4));
    }
  }
}

namespace {
template <class T, const card* Op>
std::vector<T> cross_entropy(const std::vector<T>& x, const std::vector<std::int32_t>& label, const std::vector<T>& dy,
                             int classes, std::size_t first, std::size_t rows) {
  const auto n = static_cast<std::size_t>(classes);
  std::vector<T> y(rows * (Op == &cards::sparse_xent ? 1 : n));
  const detail::signature what{
      Op, {dtype_of<T>, dtype_of<T>, int32, dtype_of<T>}, {static_cast<int>(rows), classes}, {}};
  auto* const from = const_cast<T*>(x.data()) + first * n;
  std::byte* args[] = {reinterpret_cast<std::byte*>(y.data()), reinterpret_cast<std::byte*>(from),
                       reinterpret_cast<std::byte*>(const_cast<std::int32_t*>(label.data()) + first),
                       reinterpret_cast<std::byte*>(const_cast<T*>(dy.data()) + first)};
  op_kernel<Op>::template run<fast>(detail::dynamic{1, 1, 0, 1, what}, args);
  return y;
}
template <class T>
bool same_number(T a, T b) {
  return std::bit_cast<typename detail::lane<T, fast>::word>(a) ==
             std::bit_cast<typename detail::lane<T, fast>::word>(b) ||
         (std::isnan(a) && std::isnan(b));
}
template <class T>
void rows_together_and_alone() {
  const std::size_t rows = 37;
  for (int classes : {1, 2, 7, 8, 10, 16, 17}) {
    CAPTURE(classes);
    const auto n = static_cast<std::size_t>(classes);
    random_stream r{n};
    std::vector<T> x(rows * n), dy(rows);
    std::vector<std::int32_t> label(rows);
    for (auto& v : x) v = static_cast<T>(40 * r.uniform() - 20);
    for (auto& v : dy) v = static_cast<T>(r.uniform());
    for (auto& v : label) v = static_cast<std::int32_t>(r.below(static_cast<std::uint32_t>(classes)));
    x[2 * n] = -std::numeric_limits<T>::infinity(), x[4 * n - 1] = std::numeric_limits<T>::quiet_NaN();
    x[5 * n] = std::numeric_limits<T>::quiet_NaN(), x[6 * n] = std::numeric_limits<T>::infinity();
    const auto loss = cross_entropy<T, &cards::sparse_xent>(x, label, dy, classes, 0, rows);
    const auto grad = cross_entropy<T, &cards::sparse_xent_grad>(x, label, dy, classes, 0, rows);
    for (std::size_t i = 0; i < rows; ++i) {
      CAPTURE(i);
      CHECK(same_number(loss[i], cross_entropy<T, &cards::sparse_xent>(x, label, dy, classes, i, 1)[0]));
      const auto one = cross_entropy<T, &cards::sparse_xent_grad>(x, label, dy, classes, i, 1);
      for (std::size_t j = 0; j < n; ++j) CHECK(same_number(grad[i * n + j], one[j]));
    }
  }
}
}  // namespace

TEST_CASE("rows computed together have the bits of rows alone") {
  rows_together_and_alone<float>();
  rows_together_and_alone<double>();
}

TEST_CASE("large logits neither overflow nor lose the loss") {
  graph g;
  const value x = g.placeholder("x", {batch, 3}), label = g.placeholder("label", {batch}, int32);
  const value loss = sparse_softmax_cross_entropy(x, label);
  session s{g};
  const auto r = s.run(
      loss, {{"x", std::vector<float>{1e30f, 0, -1e30f, 88, 89, 90}}, {"label", std::vector<std::int32_t>{0, 0}}});
  CHECK(r.as<float>()[0] == 0.f);
  CHECK(r.as<float>()[1] == doctest::Approx(2.4076).epsilon(1e-4));
}

TEST_CASE("a label that is no class is an error that says which") {
  graph g;
  const value x = g.placeholder("x", {batch, 3}), label = g.placeholder("label", {batch}, int32);
  const value loss = sparse_softmax_cross_entropy(x, label);
  session s{g};
  CHECK_THROWS_WITH_AS(s.run(loss, {{"x", std::vector<float>(6)}, {"label", std::vector<std::int32_t>{0, 3}}}),
                       doctest::Contains("label 3 of row 1 is outside [0, 3)"), invalid_argument);
}
