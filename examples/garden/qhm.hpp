// Quasi-hyperbolic momentum (Ma & Yarats 2019, arXiv:1810.06801): a step between the gradient and its running mean.
//   m <- beta m + (1 - beta) g,   theta <- theta - rate ((1 - nu) g + nu m)
#pragma once
#include <gradus/update/rule.hpp>

struct qhm {
  using policy_for = gradus::kind::rule;
  static constexpr std::string_view name = "QHM";
  std::optional<double> rate = {};
  double beta = 0.999, nu = 0.7;

  constexpr auto slots() const { return std::array{gradus::slot{"m", 0.0}}; }
  template <class N>
  struct constants {
    N beta, fresh, from_g, from_m;
  };
  constexpr constants<double> prepare(const gradus::step_info& at) const {
    return {beta, 1 - beta, at.rate * (1 - nu), at.rate * nu};
  }
  template <class N>
  N step(N theta, N g, const constants<N>& c, N& m) const {
    m = c.beta * m + c.fresh * g;
    return theta - c.from_g * g - c.from_m * m;
  }
};
