// without sanitizers: arithmetic; whole/conformance_{norms,matrices} run the same loops under them
// compiled with: -O1 -march=native
#include <gradus/update/rules.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <gradus/base/random.hpp>
#include <gradus/cpu/math.hpp>
#include <gradus/cpu/sweeps.hpp>
#include <gradus/run/updater.hpp>
#include <string>
#include <string_view>
#include <vector>

using namespace gradus;

TEST_CASE("every listed rule is one, with slots of its own names") {
  std::size_t seen = 0;
  all_rules::for_each([&]<class R>(std::type_identity<R>) {
    static_assert(rule_fits<R>::value);
    ++seen;
    const R rule{};
    INFO(R::name);
    std::vector<std::string_view> names;
    if constexpr (detail::has_slots<R>)
      for (const auto& s : rule.slots()) {
        CHECK(!s.name.empty());
        for (const auto& n : names) CHECK(n != s.name);
        names.push_back(s.name);
      }
    CHECK_NOTHROW(detail::check_settings(rule));  // defaults are allowed
  });
  CHECK(seen == all_rules::size);
}

// ---- The papers' and libraries' formulas once more, as plain loops: no constants made ahead, powers by std::pow.
namespace {

using vec = std::vector<double>;
// One step of all elements: theta, g, slots (as many as are asked for, from 0), number of the step from 1.
using plain_step = std::function<void(vec& w, const vec& g, std::vector<vec>& s, double t)>;
// One element: w, g, its slots, t.
template <class F>
plain_step each(F f) {
  return [f](vec& w, const vec& g, std::vector<vec>& s, double t) {
    for (std::size_t i = 0; i < w.size(); ++i) {
      double* slots[4] = {};
      for (std::size_t k = 0; k < s.size(); ++k) slots[k] = &s[k][i];
      f(w[i], g[i], slots, t);
    }
  };
}
double norm(const vec& x) {
  double total = 0;
  for (double v : x) total += v * v;
  return std::sqrt(total);
}
double sgn(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }
double soft(double x, double by) { return sgn(x) * std::max(std::abs(x) - by, 0.0); }

// 1000 steps on gradients that push towards a target, with noise. Slots of the plain formula start as given, the first
// `like_theta` of them as the variable.
template <class T, class Rule>
void agrees(const Rule& rule, const plain_step& plain, const vec& starts, double tolerance,
            std::size_t like_theta = 0) {
  constexpr std::size_t n = 11;
  random_stream random{2027};
  vec want(n);
  for (auto& x : want) x = 2 * random.uniform() - 1;
  std::vector<T> w(want.begin(), want.end());
  for (std::size_t i = 0; i < n; ++i) want[i] = static_cast<double>(w[i]);
  std::vector<vec> slots;
  for (const double s : starts) slots.push_back(slots.size() < like_theta ? want : vec(n, s));
  updater<sweeps<fast>, Rule> u{rule};
  u.track("w", w);
  INFO(Rule::name);
  for (int t = 1; t <= 1000; ++t) {
    vec g(n);
    for (std::size_t i = 0; i < n; ++i)
      g[i] = static_cast<double>(static_cast<T>(0.3 * (want[i] - 0.5) + random.uniform() - 0.5));
    const std::vector<T> given(g.begin(), g.end());
    u.apply({{"w", given}});
    plain(want, g, slots, t);
    if (t % 100 == 0 || t < 4)
      for (std::size_t i = 0; i < n; ++i) {
        INFO("step ", t, " element ", i, ": ", static_cast<double>(w[i]), " for ", want[i]);
        CHECK(std::abs(static_cast<double>(w[i]) - want[i]) <= tolerance * (1 + std::abs(want[i])));
      }
  }
}
template <class Rule>
void agrees(const Rule& rule, const plain_step& plain, const vec& starts = {}, std::size_t like_theta = 0) {
  agrees<double>(rule, plain, starts, 1e-11, like_theta);
  agrees<float>(rule, plain, starts, 2e-3, like_theta);  // the roundings of 1000 steps
}

}  // namespace

TEST_CASE("TensorFlow's rules agree with plain loops for 1000 steps") {
  agrees(gradient_descent{.rate = 0.1}, each([](double& w, double g, double**, double) { w -= 0.1 * g; }));
  for (const bool nesterov : {false, true}) {
    agrees(momentum{.rate = 0.05, .decay = 0.8, .use_nesterov = nesterov},
           each([=](double& w, double g, double** s, double) {
             *s[0] = 0.8 * *s[0] + g;
             w -= nesterov ? 0.05 * (g + 0.8 * *s[0]) : 0.05 * *s[0];
           }),
           {0});
    agrees(momentumw{.rate = 0.05, .momentum = 0.8, .use_nesterov = nesterov, .weight_decay = 0.01},
           each([=](double& w, double g, double** s, double) {
             *s[0] = 0.8 * *s[0] + g;
             w -= 0.01 * w;
             w -= nesterov ? 0.05 * (g + 0.8 * *s[0]) : 0.05 * *s[0];
           }),
           {0});
  }
  agrees(adagrad{.rate = 0.5}, each([](double& w, double g, double** s, double) {
           *s[0] += g * g;
           w -= 0.5 * g / std::sqrt(*s[0]);
         }),
         {0.1});
  agrees(adagrad_da{.rate = 0.5, .l1 = 0.01, .l2 = 0.02}, each([](double& w, double g, double** s, double t) {
           *s[0] += g, *s[1] += g * g;
           w = -0.5 * soft(*s[0], t * 0.01) / (0.02 * t * 0.5 + std::sqrt(*s[1]));
         }),
         {0, 0.1});
  agrees(adadelta{.rate = 0.5, .rho = 0.9, .epsilon = 1e-4}, each([](double& w, double g, double** s, double) {
           *s[0] = 0.9 * *s[0] + 0.1 * g * g;
           const double u = std::sqrt(*s[1] + 1e-4) / std::sqrt(*s[0] + 1e-4) * g;
           w -= 0.5 * u;
           *s[1] = 0.9 * *s[1] + 0.1 * u * u;
         }),
         {0, 0});
  agrees(rmsprop{.rate = 0.01, .decay = 0.8, .momentum = 0.5, .epsilon = 1e-3},
         each([](double& w, double g, double** s, double) {
           *s[0] = 0.8 * *s[0] + 0.2 * g * g;
           *s[1] = 0.5 * *s[1] + 0.01 * g / std::sqrt(*s[0] + 1e-3);
           w -= *s[1];
         }),
         {1, 0});
  agrees(centered_rmsprop{.rate = 0.01, .decay = 0.8, .momentum = 0.5, .epsilon = 1e-2},
         each([](double& w, double g, double** s, double) {
           *s[0] = 0.8 * *s[0] + 0.2 * g * g;
           *s[1] = 0.8 * *s[1] + 0.2 * g;
           *s[2] = 0.5 * *s[2] + 0.01 * g / std::sqrt(*s[0] - *s[1] * *s[1] + 1e-2);
           w -= *s[2];
         }),
         {1, 0, 0});
  for (const double power : {-0.5, 0.0, -1.0, -0.75, -0.3})
    agrees(ftrl{.rate = 0.3, .learning_rate_power = power, .l1 = 0.05, .l2 = 0.1, .l2_shrinkage = 0.02, .beta = 0.5},
           each([=](double& w, double g, double** s, double) {
             const double n = *s[0] + g * g, now = std::pow(n, -power), before = std::pow(*s[0], -power);
             *s[1] += g + 2 * 0.02 * w - (now - before) / 0.3 * w;
             *s[0] = n;
             w = -soft(*s[1], 0.05) / ((now + 0.5) / 0.3 + 2 * 0.1);
           }),
           {0.1, 0});
  agrees(proximal_gradient_descent{.rate = 0.1, .l1 = 0.05, .l2 = 0.1},
         each([](double& w, double g, double**, double) { w = soft(w - 0.1 * g, 0.1 * 0.05) / (1 + 0.1 * 0.1); }));
  agrees(proximal_adagrad{.rate = 0.5, .l1 = 0.05, .l2 = 0.1}, each([](double& w, double g, double** s, double) {
           *s[0] += g * g;
           const double eta = 0.5 / std::sqrt(*s[0]);
           w = soft(w - eta * g, eta * 0.05) / (1 + eta * 0.1);
         }),
         {0.1});
}

TEST_CASE("Adam's family agrees with plain loops for 1000 steps") {
  constexpr double rate = 0.01, b1 = 0.8, b2 = 0.95, eps = 1e-3, wd = 0.1;
  const auto moments = [](double g, double** s) {
    *s[0] = b1 * *s[0] + (1 - b1) * g;
    *s[1] = b2 * *s[1] + (1 - b2) * g * g;
  };
  const auto hat = [](double x, double b, double t) { return x / (1 - std::pow(b, t)); };
  const auto alpha = [](double t) { return rate * std::sqrt(1 - std::pow(b2, t)) / (1 - std::pow(b1, t)); };
  agrees(adam{.rate = rate, .beta1 = b1, .beta2 = b2, .epsilon = eps},
         each([=](double& w, double g, double** s, double t) {
           moments(g, s);
           w -= alpha(t) * *s[0] / (std::sqrt(*s[1]) + eps);
         }),
         {0, 0});
  for (const auto form : {adamw_form::torch, adamw_form::keras, adamw_form::tensorflow})
    agrees(adamw{.rate = rate, .beta1 = b1, .beta2 = b2, .epsilon = eps, .weight_decay = wd, .form = form},
           each([=](double& w, double g, double** s, double t) {
             moments(g, s);
             const double u = form == adamw_form::torch
                                  ? rate * hat(*s[0], b1, t) / (std::sqrt(hat(*s[1], b2, t)) + eps)
                                  : alpha(t) * *s[0] / (std::sqrt(*s[1]) + eps);
             w -= (form == adamw_form::tensorflow ? wd : rate * wd) * w;
             w -= u;
           }),
           {0, 0});
  for (const auto form : {nadam_form::torch, nadam_form::constant, nadam_form::tensorflow})
    agrees(nadam{.rate = rate, .beta1 = b1, .beta2 = b2, .epsilon = eps, .weight_decay = wd, .form = form},
           [=](vec& w, const vec& g, std::vector<vec>& s, double t) {
             const auto mu = [](double k) { return b1 * (1 - 0.5 * std::pow(0.96, k * 0.004)); };
             s[2][0] *= mu(t);
             for (std::size_t i = 0; i < w.size(); ++i) {
               double* own[] = {&s[0][i], &s[1][i]};
               moments(g[i], own);
               const double decay = rate * wd * w[i];
               if (form == nadam_form::tensorflow) {
                 w[i] -= alpha(t) * ((1 - b1) * g[i] + b1 * s[0][i]) / (std::sqrt(s[1][i]) + eps);
               } else {
                 const double p = s[2][0];
                 const double n = form == nadam_form::torch
                                      ? mu(t + 1) * s[0][i] / (1 - p * mu(t + 1)) + (1 - mu(t)) * g[i] / (1 - p)
                                      : b1 * hat(s[0][i], b1, t + 1) + (1 - b1) * hat(g[i], b1, t);
                 w[i] -= rate * n / (std::sqrt(hat(s[1][i], b2, t)) + eps);
               }
               w[i] -= decay;
             }
           },
           {0, 0, 1});
  for (const auto form : {adamax_form::torch, adamax_form::tensorflow})
    agrees(adamax{.rate = rate, .beta1 = b1, .beta2 = b2, .epsilon = eps, .form = form},
           each([=](double& w, double g, double** s, double t) {
             const bool torch = form == adamax_form::torch;
             *s[0] = b1 * *s[0] + (1 - b1) * g;
             *s[1] = std::max(b2 * *s[1], std::abs(g) + (torch ? eps : 0));
             w -= rate * hat(*s[0], b1, t) / (*s[1] + (torch ? 0 : eps));
           }),
           {0, 0});
  for (const auto form : {amsgrad_form::raw, amsgrad_form::corrected, amsgrad_form::raw_eps_hat})
    agrees(amsgrad{.rate = rate, .beta1 = b1, .beta2 = b2, .epsilon = eps, .form = form},
           each([=](double& w, double g, double** s, double t) {
             moments(g, s);
             *s[2] = std::max(*s[2], form == amsgrad_form::corrected ? hat(*s[1], b2, t) : *s[1]);
             if (form == amsgrad_form::raw)
               w -= rate * hat(*s[0], b1, t) / (std::sqrt(hat(*s[2], b2, t)) + eps);
             else if (form == amsgrad_form::corrected)
               w -= rate * hat(*s[0], b1, t) / (std::sqrt(*s[2]) + eps);
             else
               w -= alpha(t) * *s[0] / (std::sqrt(*s[2]) + eps);
           }),
           {0, 0, 0});
  agrees(lamb{.rate = rate, .beta1 = b1, .beta2 = b2, .epsilon = eps, .weight_decay = wd},
         [=](vec& w, const vec& g, std::vector<vec>& s, double t) {
           vec u(w.size());
           for (std::size_t i = 0; i < w.size(); ++i) {
             double* own[] = {&s[0][i], &s[1][i]};
             moments(g[i], own);
             u[i] = hat(s[0][i], b1, t) / (std::sqrt(hat(s[1][i], b2, t)) + eps) + wd * w[i];
           }
           const double ratio = norm(w) / norm(u);
           for (std::size_t i = 0; i < w.size(); ++i) w[i] -= rate * ratio * u[i];
         },
         {0, 0});
  for (const double r : {0.0, 0.5})
    agrees(
        schedule_free_adamw{.rate = rate,
                            .beta1 = b1,
                            .beta2 = b2,
                            .epsilon = eps,
                            .weight_decay = wd,
                            .warmup_steps = 7,
                            .r = r,
                            .weight_lr_power = 1.5},
        [=](vec& y, const vec& g, std::vector<vec>& s, double t) {
          auto &z = s[0], &x = s[1], &v = s[2], &sum = s[3];
          const double eta = rate * std::min(t / 7, 1.0);
          const double weight = std::pow(t, r) * std::pow(eta, 1.5);
          sum[0] += weight;
          const double c = weight / sum[0];
          for (std::size_t i = 0; i < y.size(); ++i) {
            v[i] = b2 * v[i] + (1 - b2) * g[i] * g[i];
            z[i] -= eta * wd * y[i];
            z[i] -= eta * g[i] / (std::sqrt(hat(v[i], b2, t)) + eps);
            x[i] = (1 - c) * x[i] + c * z[i];
            y[i] = b1 * x[i] + (1 - b1) * z[i];
          }
        },
        {0, 0, 0, 0}, 2);
}

TEST_CASE("the other rules agree with plain loops for 1000 steps") {
  for (const auto form : {lars_form::tensorflow, lars_form::optax})
    for (const bool nesterov : {false, true})
      agrees(lars{.rate = 0.05,
                  .momentum = 0.8,
                  .weight_decay = 0.1,
                  .trust_coefficient = 0.5,
                  .epsilon = 0.01,
                  .use_nesterov = nesterov,
                  .form = form},
             [=](vec& w, const vec& g, std::vector<vec>& s, double) {
               vec u(w.size());
               for (std::size_t i = 0; i < w.size(); ++i) u[i] = g[i] + 0.1 * w[i];
               const double trust =
                   0.5 * norm(w) / (form == lars_form::tensorflow ? norm(g) + 0.1 * norm(w) + 0.01 : norm(u) + 0.01);
               for (std::size_t i = 0; i < w.size(); ++i) {
                 u[i] *= 0.05 * trust;
                 s[0][i] = 0.8 * s[0][i] + u[i];
                 w[i] -= nesterov ? u[i] + 0.8 * s[0][i] : s[0][i];
               }
             },
             {0});
  agrees(add_sign{.rate = 0.05, .alpha = 1.5, .beta = 0.8, .sign_decay = 0.7},
         each([](double& w, double g, double** s, double) {
           *s[0] = 0.8 * *s[0] + 0.2 * g;
           w -= 0.05 * (1.5 + 0.7 * sgn(g) * sgn(*s[0])) * g;
         }),
         {0});
  agrees(power_sign{.rate = 0.05, .base = 3, .beta = 0.8, .sign_decay = 0.7},
         each([](double& w, double g, double** s, double) {
           *s[0] = 0.8 * *s[0] + 0.2 * g;
           w -= 0.05 * std::pow(3, 0.7 * sgn(g) * sgn(*s[0])) * g;
         }),
         {0});
  agrees<double>(lion{.rate = 0.01, .beta1 = 0.8, .beta2 = 0.9, .weight_decay = 0.1},
                 each([](double& w, double g, double** s, double) {
                   const double c = 0.8 * *s[0] + 0.2 * g;
                   w -= 0.01 * (sgn(c) + 0.1 * w);
                   *s[0] = 0.9 * *s[0] + 0.1 * g;
                 }),
                 {0}, 1e-11);  // a float32 sign near 0 may differ: tests/update/rules/lion.cpp
  agrees<double>(sophia{.rate = 0.01, .beta1 = 0.8, .weight_decay = 0.1},
                 each([](double& w, double g, double** s, double) {
                   *s[0] = 0.8 * *s[0] + 0.2 * g;
                   w -= 0.01 * 0.1 * w;
                   w -= 0.01 * sgn(*s[0]) * std::min(std::abs(*s[0]) / 1e-15, 1.0);
                 }),
                 {0}, 1e-11);
}
