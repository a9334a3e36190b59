// without sanitizers: published numbers; whole/conformance_{norms,matrices} run the same loops under them
#include <cmath>
#include <gradus/base/random.hpp>
#include <gradus/cpu/linear.hpp>
#include <gradus/update/rules/soap.hpp>
#include <limits>

#include "../trajectory.hpp"

namespace {
using gradus::soap;

soap from(const golden::json& p) {
  soap rule{.rate = p["learning_rate"].get<double>()};
  trajectory::set(rule.beta1, p, "beta1");
  trajectory::set(rule.beta2, p, "beta2");
  trajectory::set(rule.shampoo_beta, p, "shampoo_beta");
  trajectory::set(rule.epsilon, p, "epsilon");
  trajectory::set(rule.weight_decay, p, "weight_decay");
  trajectory::set(rule.precondition_frequency, p, "precondition_frequency");
  return rule;
}
}  // namespace

TEST_CASE("soap: golden trajectories") { CHECK(trajectory::replay_all("Soap", from, {3e-5, 3e-5}) >= 3); }

namespace {
using numbers = std::vector<double>;
using updater = gradus::updater<gradus::sweeps<gradus::fast>, soap>;

template <class T = double>
std::vector<T> random_numbers(std::size_t n, std::uint64_t seed) {
  gradus::random_stream r{seed};
  std::vector<T> v(n);
  for (auto& x : v) x = static_cast<T>(2 * r.uniform() - 1);
  return v;
}
template <class T>
gradus::tensor_view view(std::vector<T>& x, const gradus::extents& dims) {
  return {gradus::dtype_of<T>, dims, reinterpret_cast<std::byte*>(x.data())};
}
numbers run(const soap& rule, const gradus::extents& dims, int steps) {
  const auto n = static_cast<std::size_t>(count(dims));
  numbers theta = random_numbers(n, 1);
  updater u{rule};
  u.track("w", view(theta, dims));
  for (int i = 0; i < steps; ++i) {
    const auto g = random_numbers(n, 10 + static_cast<std::uint64_t>(i));
    u.apply({{"w", g}});
  }
  return theta;
}
void near(const numbers& got, const numbers& want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(golden::near(got[i], want[i], 1e-11, 1e-11));
}
// Adam, without the first gradient.
numbers adam(const soap& rule, std::size_t n, int steps) {
  numbers theta = random_numbers(n, 1), m(n), v(n);
  for (int i = 1; i < steps; ++i) {
    const auto g = random_numbers(n, 10 + static_cast<std::uint64_t>(i));
    const double by = *rule.rate * std::sqrt(1 - std::pow(rule.beta2, i)) / (1 - std::pow(rule.beta1, i));
    for (std::size_t j = 0; j < n; ++j) {
      m[j] = rule.beta1 * m[j] + (1 - rule.beta1) * g[j];
      v[j] = rule.beta2 * v[j] + (1 - rule.beta2) * g[j] * g[j];
      theta[j] -= by * m[j] / (std::sqrt(v[j]) + rule.epsilon);
      theta[j] -= *rule.rate * rule.weight_decay * theta[j];
    }
  }
  return theta;
}
template <class T>
double not_orthonormal(const gradus::tensor_view& view) {
  const auto* q = reinterpret_cast<const T*>(view.data);
  const std::int64_t n = view.dims[0];
  double worst = 0;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j <= i; ++j) {
      double sum = i == j ? -1 : 0;
      for (std::int64_t p = 0; p < n; ++p) sum += double(q[i * n + p]) * double(q[j * n + p]);
      worst = std::max(worst, std::abs(sum));
    }
  return worst;
}
}  // namespace

TEST_CASE("soap: what is not turned is Adam after the first gradient") {
  const soap rule{.rate = 0.01, .weight_decay = 0.1, .precondition_frequency = 2};
  near(run(rule, {}, 6), adam(rule, 1, 6));
  near(run(rule, {7}, 6), adam(rule, 7, 6));
  soap small = rule;
  small.max_precondition_dim = 2;
  near(run(small, {3, 4}, 6), adam(rule, 12, 6));
}
TEST_CASE("soap: one long side is not turned") {
  soap rule{.rate = 0.01, .precondition_frequency = 2, .max_precondition_dim = 3};
  for (const gradus::extents& dims : {gradus::extents{3, 5}, {5, 3}}) {
    numbers w(15, 1.0);
    updater u{rule};
    u.track("w", view(w, dims));
    const bool left = dims[0] == 3;
    CHECK(u.slot("w", left ? "L" : "R").dims == gradus::extents{3, 3});
    CHECK(u.slot("w", left ? "Q_L" : "Q_R").dims == gradus::extents{3, 3});
    CHECK_THROWS_AS(u.slot("w", left ? "R" : "L"), gradus::error);
  }
  // Transposed problems have transposed steps.
  const auto transposed = [](const numbers& x, std::size_t rows, std::size_t columns) {
    numbers y(x.size());
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j) y[j * rows + i] = x[i * columns + j];
    return y;
  };
  numbers a = random_numbers(15, 1), b = transposed(a, 3, 5);
  updater u{rule}, v{rule};
  u.track("w", view(a, {3, 5})), v.track("w", view(b, {5, 3}));
  for (std::uint64_t i = 0; i < 9; ++i) {
    const auto g = random_numbers(15, 10 + i), h = transposed(g, 3, 5);
    u.apply({{"w", g}}), v.apply({{"w", h}});
  }
  near(transposed(a, 3, 5), b);
}
TEST_CASE("soap: rank 3 is [all but the last, last]; a turned vector is a matrix of one column") {
  const soap rule{.rate = 0.01, .precondition_frequency = 3};
  near(run(rule, {2, 3, 6}, 9), run(rule, {6, 6}, 9));
  soap turned = rule;
  turned.precondition_1d = true;
  near(run(turned, {1}, 6), run(rule, {1, 1}, 6));
  numbers w(4, 1.0);
  updater u{turned};
  u.track("w", view(w, {4}));
  CHECK(u.slot("w", "L").dims == gradus::extents{4, 4});
}
TEST_CASE("soap: a variable whose gradient comes later starts later") {
  const soap rule{.rate = 0.01, .precondition_frequency = 2};
  numbers a = random_numbers(9, 1), b = a;
  updater u{rule};
  u.track("a", view(a, {3, 3})), u.track("b", view(b, {3, 3}));
  for (std::uint64_t i = 0; i < 9; ++i) {
    const auto g = random_numbers(9, 10 + i), h = random_numbers(9, 10 + i - 3);
    if (i < 3)
      u.apply({{"a", g}});
    else if (i < 6)
      u.apply({{"a", g}, {"b", h}});
    else
      u.apply({{"b", h}});
  }
  near(a, b);
}
TEST_CASE_TEMPLATE("soap: finds the bottom of a crooked valley; the basis stays orthonormal", T, float, double) {
  // sum of squares of A w B, A and B far from diagonal, with condition 30.
  constexpr std::int64_t m = 6, n = 5;
  const auto a = random_numbers<T>(m * m, 3), b = random_numbers<T>(n * n, 4);
  std::vector<T> w(m * n, T(1)), g(w.size()), aw(w.size()), awb(w.size());
  using math = gradus::linear<gradus::fast>;
  updater u{soap{.rate = 0.02, .weight_decay = 0, .precondition_frequency = 5}};
  u.track("w", view(w, {m, n}));
  const auto loss = [&] {
    math::matmul(a.data(), false, w.data(), false, aw.data(), m, n, m);
    math::matmul(aw.data(), false, b.data(), false, awb.data(), m, n, n);
    return math::sum_of_squares(awb.data(), awb.size());
  };
  const T first = loss();
  for (int i = 0; i < 600; ++i) {
    loss();
    math::matmul(awb.data(), false, b.data(), true, aw.data(), m, n, n);
    math::matmul(a.data(), true, aw.data(), false, g.data(), m, n, m);
    u.apply({{"w", g}});
  }
  CHECK(loss() < first * T(0.001));
  const double unit = std::numeric_limits<T>::epsilon();
  CHECK(not_orthonormal<T>(u.slot("w", "Q_L")) < 20 * unit);
  CHECK(not_orthonormal<T>(u.slot("w", "Q_R")) < 20 * unit);
}
TEST_CASE("soap: settings that cannot be") {
  trajectory::refused(soap{.beta1 = 1}, "beta1");
  trajectory::refused(soap{.precondition_frequency = 0}, "precondition_frequency");
}
