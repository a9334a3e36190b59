// Every rule finds the minimum of a parabola, of Rosenbrock's valley and of a logistic regression: plain, with its
// gradients clipped, by the moving average of its weights, and with two gradients accumulated.
#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <gradus/testing/wrapped.hpp>
#include <random>
#include <string>
#include <vector>

#include "rule_trials.hpp"

namespace convergence {

using vec = std::vector<double>;

struct problem {
  std::string name;
  gradus::extents dims;
  vec start;
  double best;                                       // the least loss
  std::function<double(const vec& w, vec& g)> loss;  // and its gradient
};

// sum (w - target)^2 of a 3 x 2 matrix.
inline problem parabola() {
  const vec target{1, -1, 1, 2, 0.5, -2};
  return {"parabola", {3, 2}, {-1, 4, 1, -2, 3, 1}, 0, [=](const vec& w, vec& g) {
            double loss = 0;
            for (std::size_t i = 0; i < w.size(); ++i)
              loss += (w[i] - target[i]) * (w[i] - target[i]), g[i] = 2 * (w[i] - target[i]);
            return loss;
          }};
}
// (1 - x)^2 + (y - x^2)^2 from (0, 0), the minimum at (1, 1).
inline problem rosenbrock() {
  return {"Rosenbrock", {2}, {0, 0}, 0, [](const vec& w, vec& g) {
            const double a = 1 - w[0], b = w[1] - w[0] * w[0];
            g[0] = -2 * a - 4 * w[0] * b, g[1] = 2 * b;
            return a * a + b * b;
          }};
}
// Mean log-loss of 40 points that no plane separates, and a small penalty. The best is where plain descent ends.
inline problem logistic() {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  std::vector<vec> x;
  vec y;
  for (int i = 0; i < 40; ++i) {
    x.push_back({normal(random), normal(random), 1});
    y.push_back(x.back()[0] - 0.5 * x.back()[1] + normal(random) > 0.3 ? 1 : 0);
  }
  const auto loss = [=](const vec& w, vec& g) {
    double sum = 0;
    g.assign(3, 0);
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double z = x[i][0] * w[0] + x[i][1] * w[1] + x[i][2] * w[2], p = 1 / (1 + std::exp(-z));
      sum -= y[i] * std::log(p) + (1 - y[i]) * std::log(1 - p);
      for (std::size_t k = 0; k < 3; ++k) g[k] += (p - y[i]) * x[i][k] / 40;
    }
    for (std::size_t k = 0; k < 3; ++k) sum += 40 * 0.05 * w[k] * w[k], g[k] += 0.1 * w[k];
    return sum / 40;
  };
  vec w{0, 0, 0}, g(3), moved(3);
  for (int step = 0; step < 1500; ++step) {
    loss(w, g);
    for (std::size_t k = 0; k < 3; ++k) w[k] -= 0.5 * g[k];
  }
  return {"logistic regression", {3, 1}, {2, -2, 1}, loss(w, g), loss};
}

// How near each problem's loss must come to the best, and in how many steps of the rule.
struct allowance {
  double parabola = 1e-4, rosenbrock = 1e-3, logistic = 1e-4;
  int steps = 2000;
};

struct around {
  std::string name;
  gradus::testing::detail::make_updater make;
  bool averaged = false;
  int every = 1;  // gradients for a step
};

// How much worse than the best the loss is in the end.
inline double left_of(const problem& p, const around& how, int steps) {
  vec w = p.start, g(w.size());
  const auto u = how.make();
  u->track("w", gradus::tensor_view(std::span<double>(w), p.dims));
  for (int i = 0; i < steps * how.every; ++i) {
    p.loss(w, g);
    u->apply(std::vector<gradus::named_gradient>{{"w", g}});
  }
  if (how.averaged) {
    gradus::state_list list;
    u->remembers(list);
    const auto* e = list.find("w/ExponentialMovingAverage");
    REQUIRE(e != nullptr);
    std::memcpy(w.data(), e->bytes.data(), e->bytes.size());
  }
  return p.loss(w, g) - p.best;
}
inline void run(const std::string& rule, const problem& p, const around& how, double tolerance, int steps) {
  const double left = left_of(p, how, steps);
  INFO(rule, ", ", how.name, ", ", p.name, ": ", left, " above the best after ", steps, " steps");
  CHECK(left <= tolerance);
}

inline const problem (&problems())[3] {
  static const problem all[] = {parabola(), rosenbrock(), logistic()};
  return all;
}

struct must_converge {
  // Beside the bare rule one update of everything, of which one policy at a time has an effect: compile time.
  template <class Rule>
  void operator()(const Rule& rule, const allowance& allowed = {}) const {
    using namespace gradus;
    using testing::detail::maker;
    const auto with = [&](double norm, std::int64_t every) {
      return maker(rule, clip_by_global_norm{norm}, exponential_moving_average{.decay = 0.9}, accumulate{every});
    };
    const around ways[] = {{"plain", maker(rule)},
                           {"clipped", with(1, 1)},
                           {"averaged", with(0x1p40, 1), true},
                           {"accumulated", with(0x1p40, 2), false, 2}};
    const std::string name(Rule::name);
    for (const auto& way : ways) {
      run(name, problems()[0], way, allowed.parabola, allowed.steps);
      run(name, problems()[1], way, allowed.rosenbrock, allowed.steps);
      run(name, problems()[2], way, allowed.logistic, allowed.steps);
    }
  }
  // At the first of these rates at which the bare rule does.
  template <class Rule>
  void at_a_rate(Rule rule, const allowance& allowed = {}) const {
    const double tolerance[] = {allowed.parabola, allowed.rosenbrock, allowed.logistic};
    for (const double rate : {1.0, 0.3, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002}) {
      rule.rate = rate;
      const around plain{"plain", gradus::testing::detail::maker(rule)};
      bool near = true;
      for (std::size_t i = 0; i < 3 && near; ++i) near = left_of(problems()[i], plain, allowed.steps) <= tolerance[i];
      if (near) return (*this)(rule, allowed);
    }
    FAIL_CHECK(Rule::name, " converges at no rate; give it its settings in tests/whole/rule_trials.hpp");
  }
};

// Of all rules every second, for compile time.
template <std::size_t Part, class... Rules>
void half_converge(gradus::rule_list<Rules...>) {
  std::size_t at = 0;
  const auto one = [&]<class Rule, std::size_t I>() {
    if constexpr (I % 2 == Part) rule_trials::of<Rule>::convergence(std::type_identity<Rule>{}, must_converge{}), ++at;
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (one.template operator()<Rules, I>(), ...);
  }(std::index_sequence_for<Rules...>{});
  CHECK(at == (sizeof...(Rules) + 1 - Part) / 2);
}

}  // namespace convergence
