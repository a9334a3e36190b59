// without sanitizers: arithmetic; whole/conformance_{norms,matrices} run the same loops under them
// The optimizers since TensorFlow 1.x, a thousand steps beside a second implementation. Sparse gradients are zeros
// elsewhere to them, but in the forms of tf.contrib.
#include <gradus/update/rules/adamax.hpp>
#include <gradus/update/rules/adamw.hpp>
#include <gradus/update/rules/amsgrad.hpp>
#include <gradus/update/rules/lamb.hpp>
#include <gradus/update/rules/lars.hpp>
#include <gradus/update/rules/lion.hpp>
#include <gradus/update/rules/nadam.hpp>
#include <gradus/update/rules/schedule_free.hpp>
#include <gradus/update/rules/sophia.hpp>

#include "reference.hpp"

using namespace gradus;
using namespace reference;

namespace {
// Adam's moments, then f(w, old w, m, v corrected, t).
void moments(double* s, double g, double beta1, double beta2) {
  s[0] = beta1 * s[0] + (1 - beta1) * g;
  s[1] = beta2 * s[1] + (1 - beta2) * g * g;
}
double corrected(double x, double beta, int t) { return x / (1 - std::pow(beta, t)); }
}  // namespace

TEST_CASE("adamw agrees, in its three forms") {
  agree(adamw{.rate = 0.01, .epsilon = 1e-4},
        elementwise(
            {0, 0},
            [](double& w, double g, double* s, int t) {
              moments(s, g, 0.9, 0.999);
              w -= 0.01 * (corrected(s[0], 0.9, t) / (std::sqrt(corrected(s[1], 0.999, t)) + 1e-4) + 0.01 * w);
            },
            false));
  const auto hat = [](double wd) {
    return elementwise(
        {0, 0},
        [=](double& w, double g, double* s, int t) {
          moments(s, g, 0.9, 0.999);
          const double root = std::sqrt(1 - std::pow(0.999, t));
          w = w - wd * w - 0.01 * root / (1 - std::pow(0.9, t)) * s[0] / (std::sqrt(s[1]) + 1e-4);
        },
        false);
  };
  agree(adamw{.rate = 0.01, .epsilon = 1e-4, .weight_decay = 0.1, .form = adamw_form::keras}, hat(0.01 * 0.1));
  agree(adamw{.rate = 0.01, .epsilon = 1e-4, .weight_decay = 0.001, .form = adamw_form::tensorflow}, hat(0.001),
        {.sparse = false});
}
TEST_CASE("nadam agrees, in its three forms") {
  agree(nadam{.rate = 0.01, .momentum_decay = 0.01},
        elementwise(
            {0, 0},
            [](double& w, double g, double* s, int t) {
              moments(s, g, 0.9, 0.999);
              const auto mu = [](int i) { return 0.9 * (1 - 0.5 * std::pow(0.96, i * 0.01)); };
              double seen = 1;
              for (int i = 1; i <= t; ++i) seen *= mu(i);
              const double n = mu(t + 1) * s[0] / (1 - seen * mu(t + 1)) + (1 - mu(t)) * g / (1 - seen);
              w -= 0.01 * n / (std::sqrt(corrected(s[1], 0.999, t)) + 1e-8);
            },
            false));
  agree(nadam{.rate = 0.01, .form = nadam_form::constant},
        elementwise(
            {0, 0},
            [](double& w, double g, double* s, int t) {
              moments(s, g, 0.9, 0.999);
              const double n = 0.9 * corrected(s[0], 0.9, t + 1) + corrected(0.1 * g, 0.9, t);
              w -= 0.01 * n / (std::sqrt(corrected(s[1], 0.999, t)) + 1e-8);
            },
            false));
  agree(nadam{.rate = 0.01, .form = nadam_form::tensorflow},
        elementwise(
            {0, 0},
            [](double& w, double g, double* s, int t) {
              moments(s, g, 0.9, 0.999);
              const double alpha = 0.01 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
              w -= alpha * (0.1 * g + 0.9 * s[0]) / (std::sqrt(s[1]) + 1e-8);
            },
            false),
        {.sparse = false});
}
TEST_CASE("adamax agrees, in both forms") {
  for (const bool torch : {true, false})
    agree(adamax{.rate = 0.01, .epsilon = 1e-3, .form = torch ? adamax_form::torch : adamax_form::tensorflow},
          elementwise(
              {0, 0},
              [=](double& w, double g, double* s, int t) {
                s[0] = 0.9 * s[0] + 0.1 * g;
                s[1] = std::max(0.999 * s[1], std::fabs(g) + (torch ? 1e-3 : 0));
                w -= 0.01 * corrected(s[0], 0.9, t) / (s[1] + (torch ? 0 : 1e-3));
              },
              !torch));
}
TEST_CASE("amsgrad agrees, in its three forms") {
  for (const auto form : {amsgrad_form::raw, amsgrad_form::corrected, amsgrad_form::raw_eps_hat})
    agree(amsgrad{.rate = 0.01, .beta2 = 0.9, .epsilon = 1e-4, .form = form},
          elementwise(
              {0, 0, 0},
              [=](double& w, double g, double* s, int t) {
                moments(s, g, 0.9, 0.9);
                s[2] = std::max(s[2], form == amsgrad_form::corrected ? corrected(s[1], 0.9, t) : s[1]);
                const double m = corrected(s[0], 0.9, t), c2 = 1 - std::pow(0.9, t);
                if (form == amsgrad_form::raw)
                  w -= 0.01 * m / (std::sqrt(s[2] / c2) + 1e-4);
                else if (form == amsgrad_form::corrected)
                  w -= 0.01 * m / (std::sqrt(s[2]) + 1e-4);
                else
                  w -= 0.01 * std::sqrt(c2) * m / (std::sqrt(s[2]) + 1e-4);
              },
              false));
}
TEST_CASE("lion agrees") {
  agree(lion{.rate = 0.01, .weight_decay = 0.1}, elementwise(
                                                     {0},
                                                     [](double& w, double g, double* m, int) {
                                                       w -= 0.01 * (sgn(0.9 * *m + 0.1 * g) + 0.1 * w);
                                                       *m = 0.99 * *m + 0.01 * g;
                                                     },
                                                     false));
}
TEST_CASE("sophia without observations agrees: a step by signs, then clipped") {
  agree(sophia{.rate = 0.01}, elementwise(
                                  {0},
                                  [](double& w, double g, double* m, int) {
                                    w *= 1 - 0.01 * 0.1;
                                    *m = 0.965 * *m + 0.035 * g;
                                    w -= 0.01 * sgn(*m) * std::min(std::fabs(*m) / 1e-15, 1.0);
                                  },
                                  false));
}
TEST_CASE("schedule_free_adamw agrees") {
  agree(schedule_free_adamw{.rate = 0.02, .weight_decay = 0.01, .warmup_steps = 20, .r = 0.5}, [] {
    return [z = vec(), x = vec(), v = vec(), largest = 0.0, sum = 0.0](tensor& y, const vec& g,
                                                                       const std::vector<bool>&, int t) mutable {
      if (z.empty()) z = x = y.w, v.assign(z.size(), 0.0);
      const double eta = 0.02 * (t <= 20 ? t / 20.0 : 1.0);
      largest = std::max(largest, eta);
      const double weight = std::pow(t, 0.5) * largest * largest;
      sum += weight;
      for (std::size_t i = 0; i < g.size(); ++i) {
        z[i] -= eta * 0.01 * y.w[i];
        v[i] = 0.999 * v[i] + 0.001 * g[i] * g[i];
        z[i] -= eta * g[i] / (std::sqrt(corrected(v[i], 0.999, t)) + 1e-8);
        x[i] = (1 - weight / sum) * x[i] + weight / sum * z[i];
        y.w[i] = 0.9 * x[i] + 0.1 * z[i];
      }
    };
  });
}
TEST_CASE("lamb agrees") {
  agree(lamb{.rate = 0.01, .weight_decay = 0.1}, [] {
    return [m = vec(), v = vec()](tensor& x, const vec& g, const std::vector<bool>&, int t) mutable {
      m.resize(g.size()), v.resize(g.size());
      vec u(g.size());
      for (std::size_t i = 0; i < g.size(); ++i) {
        m[i] = 0.9 * m[i] + 0.1 * g[i];
        v[i] = 0.999 * v[i] + 0.001 * g[i] * g[i];
        u[i] = corrected(m[i], 0.9, t) / (std::sqrt(corrected(v[i], 0.999, t)) + 1e-6) + 0.1 * x.w[i];
      }
      const double r = norm(x.w) / norm(u);
      for (std::size_t i = 0; i < g.size(); ++i) x.w[i] -= 0.01 * r * u[i];
    };
  });
}
TEST_CASE("lars agrees, in both forms; TensorFlow's takes rows as plain momentum") {
  agree(lars{.rate = 10, .weight_decay = 0.01, .epsilon = 1e-3}, [] {
    return [a = vec()](tensor& x, const vec& g, const std::vector<bool>& listed, int) mutable {
      a.resize(g.size());
      const bool sparse = std::find(listed.begin(), listed.end(), false) != listed.end();
      const double size = norm(x.w), trust = 0.001 * size / (norm(g) + 0.01 * size + 1e-3);
      for (std::size_t i = 0; i < g.size(); ++i) {
        if (!listed[i / x.columns]) continue;
        if (sparse) {
          a[i] = 0.9 * a[i] + g[i];
          x.w[i] -= 10 * a[i];
        } else {
          a[i] = 0.9 * a[i] + (g[i] + 0.01 * x.w[i]) * 10 * trust;
          x.w[i] -= a[i];
        }
      }
    };
  });
  for (const bool nesterov : {false, true})
    agree(lars{.rate = 10, .weight_decay = 0.01, .use_nesterov = nesterov, .form = lars_form::optax}, [=] {
      return [=, a = vec()](tensor& x, vec g, const std::vector<bool>&, int) mutable {
        a.resize(g.size());
        for (std::size_t i = 0; i < g.size(); ++i) g[i] += 0.01 * x.w[i];
        const double trust = 0.001 * norm(x.w) / norm(g);
        for (std::size_t i = 0; i < g.size(); ++i) {
          const double u = 10 * trust * g[i];
          a[i] = u + 0.9 * a[i];
          x.w[i] -= nesterov ? u + 0.9 * a[i] : a[i];
        }
      };
    });
}
