// Optimizers written a second time, straight from their formulas: plain doubles, no code of the library, no register,
// no bias correction turned into another. A thousand steps of random gradients, dense and sparse, must agree.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <gradus/cpu/linear.hpp>
#include <gradus/cpu/sweeps.hpp>
#include <gradus/run/updater.hpp>
#include <map>
#include <random>
#include <vector>

namespace reference {

using vec = std::vector<double>;
struct tensor {
  std::size_t rows = 1, columns = 1;  // a vector is one column
  vec w;
};
// One step of one tensor: its gradient, with zeros where there is none; which rows it lists; the number of the step.
using step = std::function<void(tensor&, const vec& g, const std::vector<bool>& listed, int t)>;
// Makes one with memory of its own.
using optimizer = std::function<step()>;

// From a formula on one element: f(w, g, slots, t), slots as many as `initial` has. Rows not listed: left alone.
inline optimizer elementwise(vec initial, std::function<void(double&, double, double*, int)> f, bool lazy) {
  return [=] {
    return [=, slots = std::vector<vec>()](tensor& x, const vec& g, const std::vector<bool>& listed, int t) mutable {
      if (slots.empty()) slots.assign(x.w.size(), initial);
      for (std::size_t i = 0; i < x.w.size(); ++i)
        if (!lazy || listed[i / x.columns]) f(x.w[i], g[i], slots[i].data(), t);
    };
  };
}
inline double sgn(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }
inline double norm(const vec& x) {
  double s = 0;
  for (const double e : x) s += e * e;
  return std::sqrt(s);
}

struct device : gradus::sweeps<gradus::fast> {
  using linear_algebra = gradus::linear<gradus::fast>;
};

struct settings {
  double rtol = 1e-9;  // of max(1, |w|)
  bool sparse = true;  // "a" gets rows, some twice, in two of three steps
  int steps = 1000;
  std::size_t rows = 6, columns = 3;
};

// A matrix "a" and a vector "b", stepped together.
template <class Rule>
void agree(const Rule& rule, const optimizer& make, const settings& how = {}) {
  std::mt19937_64 random(20);
  std::normal_distribution<double> normal;
  tensor a{how.rows, how.columns, vec(how.rows * how.columns)}, b{7, 1, vec(7)};
  for (double& x : a.w) x = normal(random);
  for (double& x : b.w) x = normal(random);
  vec ours_a = a.w, ours_b = b.w;
  gradus::updater<device, Rule> updater(rule);
  updater.track("a", gradus::tensor_view(std::span<double>(ours_a), {static_cast<std::int64_t>(how.rows),
                                                                     static_cast<std::int64_t>(how.columns)}));
  updater.track("b", ours_b);
  auto step_a = make(), step_b = make();
  const std::vector<bool> all(7, true);
  double worst = 0;
  for (int t = 1; t <= how.steps; ++t) {
    vec gb(7), ga(a.w.size(), 0.0);
    for (double& x : gb) x = normal(random);
    std::vector<bool> listed(how.rows, true);
    if (how.sparse && t % 3 != 0) {
      std::vector<std::int64_t> rows(4);
      vec values(rows.size() * how.columns);
      listed.assign(how.rows, false);
      for (auto& r : rows) r = static_cast<std::int64_t>(random() % how.rows);
      for (double& x : values) x = normal(random);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto r = static_cast<std::size_t>(rows[i]);
        listed[r] = true;
        for (std::size_t k = 0; k < how.columns; ++k) ga[r * how.columns + k] += values[i * how.columns + k];
      }
      updater.apply({{"b", gb}, {"a", gradus::indexed_slices{rows, values}}});
    } else {
      for (double& x : ga) x = normal(random);
      updater.apply({{"a", ga}, {"b", gb}});
    }
    step_a(a, ga, listed, t), step_b(b, gb, all, t);
    const auto compare = [&](const vec& ours, const vec& theirs, const char* name) {
      for (std::size_t i = 0; i < ours.size(); ++i) {
        const double error = std::fabs(ours[i] - theirs[i]) / std::max(1.0, std::fabs(theirs[i]));
        worst = error > worst ? error : worst;
        if (error <= how.rtol) continue;  // not NaN either
        INFO(Rule::name, ", ", name, "[", i, "] after step ", t, ": ", ours[i], " for ", theirs[i]);
        REQUIRE(error <= how.rtol);
      }
    };
    compare(ours_a, a.w, "a"), compare(ours_b, b.w, "b");
  }
  INFO(Rule::name);
  CHECK(worst <= how.rtol);
  if (std::getenv("GRADUS_SHOW_ERRORS")) MESSAGE(Rule::name, ": largest error ", worst);
}

}  // namespace reference
