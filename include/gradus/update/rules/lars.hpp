// LARS is momentum with a rate for each tensor, in proportion to the tensor's own size.
//
//   trust = trust_coefficient |theta| / (|g| + weight_decay |theta| + epsilon)           optax: / (|u| + epsilon)
//   u = g + weight_decay theta
//   a <- momentum a + rate trust u              from 0; |.| is the norm over the whole tensor, trust 1 if a norm is 0
//   theta <- theta - a                          with Nesterov: theta - (rate trust u + momentum a)
//
// You, Gitman & Ginsburg 2017, arXiv:1708.03888. `tensorflow` is tf.contrib.opt.LARSOptimizer (its eeta is
// trust_coefficient), `optax` is optax.lars (weight_decay 0). The buffer holds steps already multiplied by the rate.
// Variables whose name contains one of skip_list (biases, norms) take trust 1 and no decay. PyTorch has no equivalent.
//
// A step reads theta and g once more than an elementwise rule. Sparse gradients: the tensorflow form runs plain
// momentum with the rate alone on listed rows, without trust or decay (the buffer then holds gradients, as in
// momentum.hpp); in the optax form a row that is not listed counts as gradient 0, unless sparse_mode::lazy.
//
// Source: You, Gitman & Ginsburg 2017, arXiv:1708.03888
// TensorFlow: `contrib.opt.LARSOptimizer`; eeta is `trust_coefficient`
// Optax: `lars`: `.weight_decay = 0, .form = lars_form::optax`
#pragma once
#include "../../base/build.hpp"

#include <cmath>

#include "../../base/math.hpp"
#include "../setting.hpp"
#include "../sparse_mode.hpp"

namespace gradus::inline GRADUS_BUILD {

enum class lars_form { tensorflow, optax };

struct lars {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "LARSOptimizer";

  std::optional<double> rate = {};                 // step length; no default
  double momentum = 0.9;                           // how much of the sum stays; at least 0
  double weight_decay = 1e-4;                      // Optax 0; at least 0
  double trust_coefficient = 0.001;                // how much of its size a tensor may move in a step of rate 1
  double epsilon = 0.0;                            // added to the denominator of trust
  bool use_nesterov = false;                       // look ahead along the sum
  lars_form form = lars_form::tensorflow;          // which denominator
  sparse_mode sparse = sparse_mode::decay_all;     // of the optax form: lazy leaves rows without a gradient alone
  std::array<std::string_view, 8> skip_list = {};  // variables with one of these in the name get trust 1 and no decay

  static constexpr auto settings() {
    using line = setting<lars>;
    return std::array{line{"rate", &lars::rate, setting_range::not_negative},
                      line{"momentum", &lars::momentum, setting_range::not_negative},
                      line{"weight_decay", &lars::weight_decay, setting_range::not_negative},
                      line{"trust_coefficient", &lars::trust_coefficient, setting_range::not_negative},
                      line{"epsilon", &lars::epsilon, setting_range::not_negative}};
  }

  constexpr auto slots() const { return std::array{slot{"momentum", 0.0}}; }
  // Returns whether a variable takes trust and decay.
  constexpr bool selects(std::string_view variable, const extents&) const {
    for (const auto part : skip_list)
      if (!part.empty() && variable.find(part) != std::string_view::npos) return false;
    return true;
  }

  template <class N>
  struct constants {
    N rate, decay, momentum, outside;
  };
  constexpr constants<double> prepare(const step_info& at) const { return {at.rate, weight_decay, momentum, 1}; }

  static constexpr std::size_t measures = 2;
  template <class N>
  std::array<N, 2> measure(N theta, N g, const constants<N>& c, const N&) const {
    const N u = form == lars_form::optax ? g + c.decay * theta : g;
    return {theta * theta, u * u};
  }
  constants<double> adapt(const constants<double>& c, const subject& about, std::span<const double> sums) const {
    if (about.sparse && form == lars_form::tensorflow) return {1, 0, c.momentum, c.rate};
    if (!about.selected) return {c.rate, 0, c.momentum, 1};
    const double size = std::sqrt(sums[0]), slope = std::sqrt(sums[1]);
    if (size == 0 || slope == 0) return c;
    double below = slope + epsilon;
    if (form == lars_form::tensorflow) below = below + portable_math::product(c.decay, size);
    return {c.rate * (trust_coefficient * size / below), c.decay, c.momentum, 1};
  }

  template <class N>
  N step(N theta, N g, const constants<N>& c, N& a) const {
    const N u = c.rate * (g + c.decay * theta);
    a = c.momentum * a + u;
    return theta - c.outside * (use_nesterov ? u + c.momentum * a : a);
  }
  constexpr bool decays_all_rows() const { return form == lars_form::optax && sparse == sparse_mode::decay_all; }
};

}  // namespace gradus
