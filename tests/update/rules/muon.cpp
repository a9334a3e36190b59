// without sanitizers: published numbers; whole/conformance_{norms,matrices} run the same loops under them
#include <gradus/update/rules/muon.hpp>

#include <gradus/base/random.hpp>
#include <gradus/update/linear_algebra.hpp>
#include <gradus/update/rules/adamw.hpp>
#include <gradus/update/rules/nadam.hpp>

#include "../trajectory.hpp"

namespace {
using gradus::muon, gradus::muon_form;

muon from(const golden::json& p, muon_form form) {
  muon rule{.rate = p["learning_rate"].get<double>(), .form = form};
  trajectory::set(rule.momentum, p, form == muon_form::optax ? "beta" : "momentum");
  trajectory::set(rule.use_nesterov, p, "use_nesterov");
  trajectory::set(rule.ns_steps, p, "ns_steps");
  trajectory::set(rule.epsilon, p, "ns_eps");
  trajectory::set(rule.weight_decay, p, "weight_decay");
  if (p.contains("consistent_rms") && !p["consistent_rms"].is_null())
    trajectory::set(rule.consistent_rms, p, "consistent_rms");
  return rule;
}

using math = gradus::linear<gradus::fast>;
using numbers = std::vector<double>;

numbers random_numbers(std::size_t n, std::uint64_t seed) {
  gradus::random_stream r{seed};
  numbers v(n);
  for (auto& x : v) x = 2 * r.uniform() - 1;
  return v;
}
template <class T>
std::vector<T> singular_values(const std::vector<T>& x, std::int64_t rows, std::int64_t columns) {
  const std::int64_t n = std::min(rows, columns);
  const auto size = static_cast<std::size_t>(n * n);
  std::vector<T> gram(size), values(static_cast<std::size_t>(n)), vectors(size),
      scratch(gradus::symmetric_eigen_scratch(n));
  math::gram(x.data(), rows > columns, gram.data(), n, std::max(rows, columns));
  gradus::symmetric_eigen<math>(gram.data(), n, values.data(), vectors.data(), scratch.data());
  for (T& s : values) s = std::sqrt(std::max(s, T(0)));
  return values;
}
// `steps` random gradients into a variable; its values after.
template <class Rule>
numbers run(const Rule& rule, gradus::extents dims, int steps, std::uint64_t seed = 1) {
  const auto n = static_cast<std::size_t>(count(dims));
  numbers theta = random_numbers(n, seed);
  gradus::updater<gradus::sweeps<gradus::fast>, Rule> u{rule};
  u.track("w", gradus::tensor_view{gradus::float64, dims, reinterpret_cast<std::byte*>(theta.data())});
  for (int i = 0; i < steps; ++i) {
    const auto g = random_numbers(n, seed + 10 + static_cast<std::uint64_t>(i));
    u.apply({{"w", g}});
  }
  return theta;
}
void near(const numbers& got, const numbers& want, double rtol = 1e-11) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(golden::near(got[i], want[i], rtol, rtol));
}
// The same numbers by plain loops and matrices that are made whole.
numbers product(const numbers& a, const numbers& b, std::size_t m, std::size_t k, std::size_t n) {
  numbers c(m * n);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t p = 0; p < k; ++p) c[i * n + j] += a[i * k + p] * b[p * n + j];
  return c;
}
numbers transposed(const numbers& a, std::size_t rows, std::size_t columns) {
  numbers b(a.size());
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) b[j * rows + i] = a[i * columns + j];
  return b;
}
numbers plain_newton_schulz(numbers x, std::size_t rows, std::size_t columns, double epsilon) {
  if (rows > columns)
    return transposed(plain_newton_schulz(transposed(x, rows, columns), columns, rows, epsilon), columns, rows);
  double norm = 0;
  for (double v : x) norm += v * v;
  for (double& v : x) v /= std::sqrt(norm) + epsilon;
  for (int i = 0; i < 5; ++i) {
    const auto a = product(x, transposed(x, rows, columns), rows, columns, rows), aa = product(a, a, rows, rows, rows);
    numbers b(a.size());
    for (std::size_t j = 0; j < b.size(); ++j) b[j] = -4.7750 * a[j] + 2.0315 * aa[j];
    const auto bx = product(b, x, rows, rows, columns);
    for (std::size_t j = 0; j < x.size(); ++j) x[j] = 3.4445 * x[j] + bx[j];
  }
  return x;
}
}  // namespace

TEST_CASE("muon: golden trajectories, original form") {
  CHECK(trajectory::replay_all("Muon", [](const auto& p) { return from(p, muon_form::original); }, {3e-5, 3e-5}) >= 3);
}
TEST_CASE("muon: golden trajectories, optax form") {
  CHECK(trajectory::replay_all("MuonBC", [](const auto& p) { return from(p, muon_form::optax); }, {3e-5, 3e-5}) >= 3);
}

TEST_CASE_TEMPLATE("newton_schulz: singular values end near 1", T, float, double) {
  for (const auto& [rows, columns] : {std::pair{1, 1}, {4, 4}, {3, 50}, {50, 3}, {40, 60}, {64, 64}, {128, 100}}) {
    CAPTURE(rows);
    CAPTURE(columns);
    const auto random = random_numbers(static_cast<std::size_t>(rows * columns), 3);
    std::vector<T> x(random.begin(), random.end()), scratch(gradus::newton_schulz_scratch(rows, columns));
    const auto before = singular_values(x, rows, columns);
    T norm = 0;
    for (T v : x) norm += v * v;
    const T* const o = gradus::newton_schulz<math>(x.data(), rows, columns, 5, 1e-7, {}, scratch.data());
    const auto after = singular_values(std::vector<T>(o, o + rows * columns), rows, columns);
    CHECK(after[0] < T(1.21));
    // The iteration keeps no order; but how many were large enough at first must be near 1 now.
    const auto counts = [](const std::vector<T>& v, T least) {
      return std::count_if(v.begin(), v.end(), [=](T s) { return s > least; });
    };
    CHECK(counts(after, T(0.68)) >= counts(before, T(0.003) * std::sqrt(norm)));
  }
}
TEST_CASE("newton_schulz: zero stays zero") {
  numbers x(12), scratch(gradus::newton_schulz_scratch(3, 4));
  const double* o = gradus::newton_schulz<math>(x.data(), 3, 4, 5, 1e-7, {}, scratch.data());
  for (int i = 0; i < 12; ++i) CHECK(o[i] == 0);
}
TEST_CASE("muon: keras form, by plain loops") {
  for (bool nesterov : {true, false})
    for (const auto& [rows, columns] : {std::pair{3, 5}, {5, 3}, {4, 4}}) {
      const auto n = static_cast<std::size_t>(rows * columns);
      numbers theta = random_numbers(n, 1), m(n);
      for (std::uint64_t i = 0; i < 4; ++i) {
        const auto g = random_numbers(n, 11 + i);
        numbers x(n);
        for (std::size_t j = 0; j < n; ++j) m[j] = 0.9 * m[j] + g[j], x[j] = nesterov ? g[j] + 0.9 * m[j] : m[j];
        const auto o = plain_newton_schulz(x, static_cast<std::size_t>(rows), static_cast<std::size_t>(columns), 1e-7);
        for (std::size_t j = 0; j < n; ++j) {
          theta[j] -= 0.01 * 0.004 * theta[j];
          theta[j] -= 0.01 * 0.2 * std::sqrt(double(std::max(rows, columns))) * o[j];
        }
      }
      near(run(muon{.rate = 0.01, .form = muon_form::keras, .momentum = 0.9, .use_nesterov = nesterov}, {rows, columns},
               4),
           theta, 1e-9);
    }
}
TEST_CASE("muon: what is not a matrix takes AdamW's step") {
  const gradus::muon_fallback by{
      .rate = 0.02, .rate_scale = 0.5, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6, .weight_decay = 0.1};
  const gradus::adamw adamw{.rate = 0.01, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6, .weight_decay = 0.1};
  for (auto form : {muon_form::original, muon_form::optax, muon_form::keras})
    for (const gradus::extents& dims : {gradus::extents{}, {7}, {2, 3, 4}})
      near(run(muon{.rate = 1.0, .form = form, .fallback = by}, dims, 5), run(adamw, dims, 5));
  near(run(muon{.form = muon_form::optax, .fallback = by}, {2, 2, 3, 2}, 5), run(adamw, {2, 2, 3, 2}, 5));
}
TEST_CASE("muon: the others with Nesterov's momentum, as Optax") {
  const gradus::nadam nadam{.rate = 0.01, .beta1 = 0.8, .beta2 = 0.95, .form = gradus::nadam_form::constant};
  near(run(muon{.rate = 0.01,
                .form = muon_form::optax,
                .fallback = {.beta1 = 0.8, .beta2 = 0.95, .epsilon = nadam.epsilon, .use_nesterov = true}},
           {7}, 5),
       run(nadam, {7}, 5));
}
TEST_CASE("muon: rank 4 is [first, rest] in the original form, scaled by its last extents") {
  // 6 x 2 last: scale sqrt(3); as 4 x 24 it would be 1.
  const double by = std::sqrt(3.0);
  near(run(muon{.rate = 0.01, .weight_decay = 0.1}, {4, 2, 6, 2}, 3),
       run(muon{.rate = 0.01 * by, .weight_decay = 0.1 / by}, {4, 24}, 3));
}
TEST_CASE("muon: which slots a variable has") {
  gradus::updater<gradus::sweeps<gradus::fast>, muon> u{muon{}};
  std::vector<float> matrix(6), vector(3);
  u.track("matrix", gradus::tensor_view{gradus::float32, {2, 3}, reinterpret_cast<std::byte*>(matrix.data())});
  u.track("vector", vector);
  CHECK(u.slot("matrix", "momentum").dims == gradus::extents{2, 3});
  CHECK(u.slot("vector", "momentum").dims == gradus::extents{3});
  CHECK(u.slot("vector", "v").dims == gradus::extents{3});
  CHECK_THROWS_AS(u.slot("matrix", "v"), gradus::error);
}
TEST_CASE("muon: settings that cannot be") {
  trajectory::refused(muon{.momentum = 1}, "momentum");
  trajectory::refused(muon{.ns_steps = -1}, "ns_steps");
  trajectory::refused(muon{.consistent_rms = 0.0}, "consistent_rms");
  trajectory::refused(muon{.fallback = {.beta2 = 1}}, "fallback.beta2");
}
