// without sanitizers: arithmetic; whole/conformance_{norms,matrices} run the same loops under them
// The rules on whole matrices beside a second implementation: loops over plain vectors, eigenvectors by Jacobi's method
// and orthonormal bases by Gram and Schmidt's.
#include <gradus/base/sort.hpp>
#include <gradus/update/rules/adafactor.hpp>
#include <gradus/update/rules/muon.hpp>
#include <gradus/update/rules/soap.hpp>

#include "reference.hpp"

using namespace gradus;
using namespace reference;

namespace {
double rms(const vec& x) { return norm(x) / std::sqrt(static_cast<double>(x.size())); }

struct matrix {
  std::size_t m = 0, n = 0;
  vec x;
  matrix(std::size_t rows, std::size_t columns, vec values = {}) : m(rows), n(columns), x(std::move(values)) {
    x.resize(m * n);
  }
  double& operator()(std::size_t i, std::size_t j) { return x[i * n + j]; }
  double operator()(std::size_t i, std::size_t j) const { return x[i * n + j]; }
};
matrix operator*(const matrix& a, const matrix& b) {
  matrix c(a.m, b.n);
  for (std::size_t i = 0; i < a.m; ++i)
    for (std::size_t j = 0; j < b.n; ++j)
      for (std::size_t k = 0; k < a.n; ++k) c(i, j) += a(i, k) * b(k, j);
  return c;
}
matrix transposed(const matrix& a) {
  matrix c(a.n, a.m);
  for (std::size_t i = 0; i < a.m; ++i)
    for (std::size_t j = 0; j < a.n; ++j) c(j, i) = a(i, j);
  return c;
}
matrix sum(double p, const matrix& a, double q, const matrix& b) {
  matrix c = a;
  for (std::size_t i = 0; i < c.x.size(); ++i) c.x[i] = p * a.x[i] + q * b.x[i];
  return c;
}
// Orthonormal columns with the same spans: Gram and Schmidt, twice for accuracy.
matrix orthonormal(matrix a) {
  for (std::size_t j = 0; j < a.n; ++j) {
    for (int twice = 0; twice < 2; ++twice)
      for (std::size_t k = 0; k < j; ++k) {
        double dot = 0;
        for (std::size_t i = 0; i < a.m; ++i) dot += a(i, j) * a(i, k);
        for (std::size_t i = 0; i < a.m; ++i) a(i, j) -= dot * a(i, k);
      }
    double length = 0;
    for (std::size_t i = 0; i < a.m; ++i) length += a(i, j) * a(i, j);
    for (std::size_t i = 0; i < a.m; ++i) a(i, j) /= std::sqrt(length);
  }
  return a;
}
// The columns of q, and with them what `along` does, by falling diagonal of q^T a q.
template <class Along>
matrix ordered(const matrix& a, const matrix& q, Along along) {
  const matrix d = transposed(q) * a * q;
  std::vector<std::size_t> order(a.m);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  gradus::detail::sort_stably(order, [&](std::size_t i, std::size_t j) { return d(i, i) > d(j, j); });
  matrix r(q.m, q.n);
  for (std::size_t j = 0; j < q.n; ++j)
    for (std::size_t i = 0; i < q.m; ++i) r(i, j) = q(i, order[j]);
  along(order);
  return r;
}
// Eigenvectors of a symmetric matrix in columns, largest eigenvalue first: Jacobi's rotations.
matrix eigenvectors(const matrix& given) {
  matrix a = given, v(a.m, a.m);
  for (std::size_t i = 0; i < a.m; ++i) v(i, i) = 1;
  for (int sweep = 0; sweep < 60; ++sweep)
    for (std::size_t p = 0; p < a.m; ++p)
      for (std::size_t q = p + 1; q < a.m; ++q) {
        if (std::fabs(a(p, q)) < 1e-300) continue;
        const double angle = 0.5 * std::atan2(2 * a(p, q), a(q, q) - a(p, p)), c = std::cos(angle), s = std::sin(angle);
        matrix r(a.m, a.m);
        for (std::size_t i = 0; i < a.m; ++i) r(i, i) = 1;
        r(p, p) = r(q, q) = c, r(p, q) = s, r(q, p) = -s;
        a = transposed(r) * a * r, v = v * r;
      }
  return ordered(given, v, [](const auto&) {});
}
}  // namespace

TEST_CASE("adafactor agrees, factored and not, in both forms") {
  agree(adafactor{.rate = 0.05, .min_dim_size_to_factor = 3, .weight_decay = 0.001}, [] {
    return [r = vec(), c = vec(), v = vec()](tensor& x, const vec& g, const std::vector<bool>&, int t) mutable {
      const std::size_t m = x.rows, n = x.columns;
      const double beta = 1 - std::pow(t, -0.8);
      vec u(g.size());
      if (n > 1) {  // the longest axis is the rows'
        r.resize(n), c.resize(m);
        vec over_rows(n), over_columns(m);
        for (std::size_t i = 0; i < m; ++i)
          for (std::size_t j = 0; j < n; ++j) {
            const double q = g[i * n + j] * g[i * n + j] + 1e-30;
            over_rows[j] += q / static_cast<double>(m), over_columns[i] += q / static_cast<double>(n);
          }
        double mean = 0;
        for (std::size_t j = 0; j < n; ++j)
          r[j] = beta * r[j] + (1 - beta) * over_rows[j], mean += r[j] / static_cast<double>(n);
        for (std::size_t i = 0; i < m; ++i) c[i] = beta * c[i] + (1 - beta) * over_columns[i];
        for (std::size_t i = 0; i < m; ++i)
          for (std::size_t j = 0; j < n; ++j)
            u[i * n + j] = g[i * n + j] * std::pow(r[j] / mean, -0.5) * std::pow(c[i], -0.5);
      } else {
        v.resize(m);
        for (std::size_t i = 0; i < m; ++i) {
          v[i] = beta * v[i] + (1 - beta) * (g[i] * g[i] + 1e-30);
          u[i] = g[i] / std::sqrt(v[i]);
        }
      }
      const double clip = std::max(1.0, rms(u)), scale = 0.05 * std::max(rms(x.w), 1e-3);
      for (std::size_t i = 0; i < g.size(); ++i) x.w[i] -= u[i] / clip * scale + 0.001 * x.w[i];
    };
  });
  agree(adafactor{.rate = 0.05, .form = adafactor_form::relative, .weight_decay = 0.01}, [] {
    return [r = vec(), c = vec(), v = vec()](tensor& x, const vec& g, const std::vector<bool>&, int t) mutable {
      const std::size_t m = x.rows, n = x.columns;
      const double beta = 1 - std::pow(t, -0.8), eps = std::pow(2.0, -52);
      const double alpha = std::max(1e-3, rms(x.w)) * std::min(0.05, 1 / std::sqrt(t));
      vec u(g.size());
      r.resize(m), c.resize(n), v.resize(m);
      double mean = 0;
      for (std::size_t i = 0; i < m; ++i) {
        double s = 0;
        for (std::size_t j = 0; j < n; ++j) s += g[i * n + j] * g[i * n + j] / static_cast<double>(n);
        r[i] = beta * r[i] + (1 - beta) * s, mean += r[i] / static_cast<double>(m);
      }
      for (std::size_t j = 0; j < n; ++j) {
        double s = 0;
        for (std::size_t i = 0; i < m; ++i) s += g[i * n + j] * g[i * n + j] / static_cast<double>(m);
        c[j] = beta * c[j] + (1 - beta) * s;
      }
      for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = 0; j < n; ++j) {
          const double full = n == 1 ? r[i] : r[i] * c[j] / std::max(mean, eps);  // a vector's rows are itself
          u[i * n + j] = g[i * n + j] / std::sqrt(std::max(full, eps * eps));
        }
      const double clip = std::max(1.0, rms(u));
      for (std::size_t i = 0; i < g.size(); ++i) x.w[i] = x.w[i] * (1 - 0.05 * 0.01) - alpha * u[i] / clip;
    };
  });
}

TEST_CASE("muon agrees, in its three forms, with Adam for the vector") {
  for (const auto form : {muon_form::original, muon_form::optax, muon_form::keras})
    agree(muon{.form = form, .weight_decay = 0.01, .fallback = {.rate = 0.01}}, [=] {
      return [=, m = vec(), v = vec()](tensor& x, const vec& g, const std::vector<bool>&, int t) mutable {
        m.resize(g.size()), v.resize(g.size());
        if (x.columns == 1) {
          for (std::size_t i = 0; i < g.size(); ++i) {
            m[i] = 0.9 * m[i] + 0.1 * g[i], v[i] = 0.999 * v[i] + 0.001 * g[i] * g[i];
            x.w[i] -= 0.01 * (m[i] / (1 - std::pow(0.9, t))) / (std::sqrt(v[i] / (1 - std::pow(0.999, t))) + 1e-8);
          }
          return;
        }
        const double mu = 0.95;
        matrix s(x.rows, x.columns);
        for (std::size_t i = 0; i < g.size(); ++i) {
          m[i] = form == muon_form::keras ? mu * m[i] + g[i] : mu * m[i] + (1 - mu) * g[i];
          s.x[i] = form == muon_form::original ? (1 - mu) * g[i] + mu * m[i]
                   : form == muon_form::optax
                       ? mu * m[i] / (1 - std::pow(mu, t + 1)) + (1 - mu) * g[i] / (1 - std::pow(mu, t))
                       : g[i] + mu * m[i];
        }
        const double length = norm(s.x) + (form == muon_form::optax ? 1e-8 : 1e-7);
        for (double& e : s.x) e /= length;
        s = transposed(s);  // 3 x 6: the shorter side first
        for (int i = 0; i < 5; ++i) {
          const matrix a = s * transposed(s);
          s = sum(3.4445, s, 1, sum(-4.7750, a, 2.0315, a * a) * s);
        }
        s = transposed(s);
        const double scale = form == muon_form::original ? std::sqrt(6.0 / 3)
                             : form == muon_form::optax  ? 1
                                                         : 0.2 * std::sqrt(6.0);
        for (std::size_t i = 0; i < g.size(); ++i) x.w[i] -= 0.02 * (scale * s.x[i] + 0.01 * x.w[i]);
      };
    });
}

// Square: of other shapes some eigenvalues are zero, and any basis of their space would do.
TEST_CASE("soap agrees, on a square matrix and a vector") {
  agree(soap{.rate = 0.01, .precondition_frequency = 3},
        [] {
          return [l = matrix(0, 0), r = matrix(0, 0), ql = matrix(0, 0), qr = matrix(0, 0), m = vec(), v = vec(),
                  calls = 0](tensor& x, const vec& g, const std::vector<bool>&, int) mutable {
            const int t = calls++;
            const std::size_t n = x.rows;
            const double beta = 0.95, correction = std::sqrt(1 - std::pow(beta, t)) / (1 - std::pow(beta, t));
            if (t == 0) m.resize(g.size()), v.resize(g.size());
            if (x.columns == 1) {
              if (t == 0) return;
              for (std::size_t i = 0; i < g.size(); ++i) {
                m[i] = beta * m[i] + (1 - beta) * g[i], v[i] = beta * v[i] + (1 - beta) * g[i] * g[i];
                x.w[i] -= 0.01 * correction * m[i] / (std::sqrt(v[i]) + 1e-8);
                x.w[i] -= 0.01 * 0.01 * x.w[i];
              }
              return;
            }
            const matrix grad(n, n, g);
            if (t == 0) {
              l = sum(1 - beta, grad * transposed(grad), 0, grad), r = sum(1 - beta, transposed(grad) * grad, 0, grad);
              ql = eigenvectors(l), qr = eigenvectors(r);
              return;
            }
            const matrix turned = transposed(ql) * grad * qr;
            for (std::size_t i = 0; i < g.size(); ++i) {
              m[i] = beta * m[i] + (1 - beta) * g[i];
              v[i] = beta * v[i] + (1 - beta) * turned.x[i] * turned.x[i];
            }
            matrix u = transposed(ql) * matrix(n, n, m) * qr;
            for (std::size_t i = 0; i < g.size(); ++i) u.x[i] /= std::sqrt(v[i]) + 1e-8;
            u = ql * u * transposed(qr);
            for (std::size_t i = 0; i < g.size(); ++i) {
              x.w[i] -= 0.01 * correction * u.x[i];
              x.w[i] -= 0.01 * 0.01 * x.w[i];
            }
            l = sum(beta, l, 1 - beta, grad * transposed(grad)), r = sum(beta, r, 1 - beta, transposed(grad) * grad);
            if (t % 3 != 0) return;
            const vec old = v;
            ql = orthonormal(l * ordered(l, ql, [&](const auto& order) {
                               for (std::size_t i = 0; i < n; ++i)
                                 for (std::size_t j = 0; j < n; ++j) v[i * n + j] = old[order[i] * n + j];
                             }));
            const vec rows = v;
            qr = orthonormal(r * ordered(r, qr, [&](const auto& order) {
                               for (std::size_t i = 0; i < n; ++i)
                                 for (std::size_t j = 0; j < n; ++j) v[i * n + j] = rows[i * n + order[j]];
                             }));
          };
        },
        {.rows = 3, .columns = 3});
}
