// without sanitizers: arithmetic; whole/conformance_{norms,matrices} run the same loops under them
// The optimizers of TensorFlow 1.x, a thousand steps beside a second implementation.
#include <gradus/update/rules/adadelta.hpp>
#include <gradus/update/rules/adagrad.hpp>
#include <gradus/update/rules/adagrad_da.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/add_sign.hpp>
#include <gradus/update/rules/ftrl.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/rules/momentum.hpp>
#include <gradus/update/rules/momentumw.hpp>
#include <gradus/update/rules/power_sign.hpp>
#include <gradus/update/rules/proximal_adagrad.hpp>
#include <gradus/update/rules/proximal_gradient_descent.hpp>
#include <gradus/update/rules/rmsprop.hpp>

#include "reference.hpp"

using namespace gradus;
using namespace reference;

TEST_CASE("gradient_descent agrees") {
  agree(gradient_descent{.rate = 0.01}, elementwise(
                                            {}, [](double& w, double g, double*, int) { w -= 0.01 * g; }, true));
}
TEST_CASE("momentum agrees, with Nesterov's too") {
  for (const bool nesterov : {false, true})
    agree(momentum{.rate = 0.01, .decay = 0.8, .use_nesterov = nesterov},
          elementwise(
              {0},
              [=](double& w, double g, double* a, int) {
                *a = 0.8 * *a + g;
                w -= nesterov ? 0.01 * g + 0.01 * 0.8 * *a : 0.01 * *a;
              },
              true));
}
TEST_CASE("adagrad agrees") {
  agree(adagrad{.rate = 0.1}, elementwise(
                                  {0.1},
                                  [](double& w, double g, double* a, int) {
                                    *a += g * g;
                                    w -= 0.1 * g / std::sqrt(*a);
                                  },
                                  true));
}
TEST_CASE("adagrad_da agrees: the variable is made from the sums of its gradients, with the step of the optimizer") {
  agree(adagrad_da{.rate = 0.1, .l1 = 0.003, .l2 = 0.002},
        elementwise(
            {0, 0.1},
            [](double& w, double g, double* s, int t) {
              s[0] += g, s[1] += g * g;
              const double kept = std::max(std::fabs(s[0]) - t * 0.003, 0.0);
              w = -0.1 * sgn(s[0]) * kept / (0.002 * t * 0.1 + std::sqrt(s[1]));
            },
            true));
}
TEST_CASE("adadelta agrees") {
  agree(adadelta{.rate = 0.5, .rho = 0.9, .epsilon = 1e-6}, elementwise(
                                                                {0, 0},
                                                                [](double& w, double g, double* s, int) {
                                                                  s[0] = 0.9 * s[0] + 0.1 * g * g;
                                                                  const double u = std::sqrt(s[1] + 1e-6) /
                                                                                   std::sqrt(s[0] + 1e-6) * g;
                                                                  w -= 0.5 * u;
                                                                  s[1] = 0.9 * s[1] + 0.1 * u * u;
                                                                },
                                                                true));
}
TEST_CASE("rmsprop agrees, centered too") {
  agree(rmsprop{.rate = 0.01, .decay = 0.8, .momentum = 0.7, .epsilon = 1e-3},
        elementwise(
            {1, 0},
            [](double& w, double g, double* s, int) {
              s[0] = 0.8 * s[0] + 0.2 * g * g;
              s[1] = 0.7 * s[1] + 0.01 * g / std::sqrt(s[0] + 1e-3);
              w -= s[1];
            },
            true));
  agree(centered_rmsprop{.rate = 0.01, .decay = 0.8, .momentum = 0.7, .epsilon = 1e-3},
        elementwise(
            {1, 0, 0},
            [](double& w, double g, double* s, int) {
              s[0] = 0.8 * s[0] + 0.2 * g * g;
              s[1] = 0.8 * s[1] + 0.2 * g;
              s[2] = 0.7 * s[2] + 0.01 * g / std::sqrt(s[0] - s[1] * s[1] + 1e-3);
              w -= s[2];
            },
            true));
}
TEST_CASE("adam agrees, with lazy rows and with decaying ones") {
  for (const bool lazy : {true, false})
    agree(adam{.rate = 0.01, .sparse = lazy ? sparse_mode::lazy : sparse_mode::decay_all},
          elementwise(
              {0, 0},
              [](double& w, double g, double* s, int t) {
                s[0] = 0.9 * s[0] + 0.1 * g;
                s[1] = 0.999 * s[1] + 0.001 * g * g;
                w -=
                    0.01 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t)) * s[0] / (std::sqrt(s[1]) + 1e-8);
              },
              lazy));
}
TEST_CASE("ftrl agrees, for every power") {
  for (const double power : {-0.5, -0.7, -1.0, 0.0})
    agree(ftrl{.rate = 0.1, .learning_rate_power = power, .l1 = 0.01, .l2 = 0.02, .l2_shrinkage = 0.03, .beta = 0.04},
          elementwise(
              {0.1, 0},
              [=](double& w, double g, double* s, int) {
                const double n = s[0] + g * g, p = -power;
                s[1] += g + 2 * 0.03 * w - (std::pow(n, p) - std::pow(s[0], p)) / 0.1 * w;
                s[0] = n;
                const double q = (std::pow(n, p) + 0.04) / 0.1 + 2 * 0.02;
                w = std::fabs(s[1]) > 0.01 ? (sgn(s[1]) * 0.01 - s[1]) / q : 0;
              },
              true));
}
TEST_CASE("the proximal rules agree") {
  const auto shrink = [](double q, double rate) {
    return sgn(q) * std::max(std::fabs(q) - rate * 0.02, 0.0) / (1 + 0.03 * rate);
  };
  agree(proximal_gradient_descent{.rate = 0.1, .l1 = 0.02, .l2 = 0.03},
        elementwise(
            {}, [=](double& w, double g, double*, int) { w = shrink(w - 0.1 * g, 0.1); }, true));
  agree(proximal_adagrad{.rate = 0.1, .l1 = 0.02, .l2 = 0.03}, elementwise(
                                                                   {0.1},
                                                                   [=](double& w, double g, double* a, int) {
                                                                     *a += g * g;
                                                                     const double eta = 0.1 / std::sqrt(*a);
                                                                     w = shrink(w - eta * g, eta);
                                                                   },
                                                                   true));
}
TEST_CASE("momentumw agrees: decay first, not times the rate, on listed rows") {
  agree(momentumw{.rate = 0.01, .momentum = 0.8, .weight_decay = 0.001}, elementwise(
                                                                             {0},
                                                                             [](double& w, double g, double* a, int) {
                                                                               w -= 0.001 * w;
                                                                               *a = 0.8 * *a + g;
                                                                               w -= 0.01 * *a;
                                                                             },
                                                                             true));
}
TEST_CASE("add_sign and power_sign agree") {
  agree(add_sign{.rate = 0.01, .sign_decay = 0.5}, elementwise(
                                                       {0},
                                                       [](double& w, double g, double* m, int) {
                                                         *m = 0.9 * *m + 0.1 * g;
                                                         w -= 0.01 * (1 + 0.5 * sgn(g) * sgn(*m)) * g;
                                                       },
                                                       false));
  agree(power_sign{.rate = 0.01, .sign_decay = 0.5}, elementwise(
                                                         {0},
                                                         [](double& w, double g, double* m, int) {
                                                           *m = 0.9 * *m + 0.1 * g;
                                                           w -= 0.01 * std::exp(0.5 * sgn(g) * sgn(*m)) * g;
                                                         },
                                                         false));
}
