// Sophia divides momentum by an estimate of the curvature, and clips each element's step to the rate.
//
//   m <- beta1 m + (1 - beta1) g                from 0
//   sophia_g  theta <- theta - rate (clip(m / (rho batch_size h + 1e-15), -1, 1) + weight_decay theta)
//   optax     theta <- theta - rate (clip(m' / max(rho h, epsilon), -1, 1) + weight_decay theta)
//   h <- beta2 h + (1 - beta2) e^2              from 0, only when an estimate e is observed; optax: e instead of e^2
//
// where m' = m / (1 - beta1^t). Liu et al. 2023, arXiv:2305.14342. `sophia_g` is the authors' code (SophiaG): every 10
// steps, before the step, observe e, the gradient of the loss with labels sampled from the model's own predictions;
// batch_size is the number of examples (tokens) that the loss averages over, which turns e^2 into the
// Gauss-Newton-Bartlett estimate. With h = 0 the step is a sign step. `optax` is optax.contrib.sophia: its gamma is
// `rho` (0.01), weight_decay 1e-4; it observes Hutchinson's estimate e = u Hu (u random signs, H the Hessian) after the
// step, on steps 0, 10, ... PyTorch and TensorFlow have no equivalent. Sparse gradients: a row that is not listed
// counts as gradient 0, unless sparse_mode::lazy.
//
//   u.observe({{"w", estimate}});               // gradus::updater, before apply
//
// Source: Liu et al. 2023, arXiv:2305.14342
// PyTorch: – (the authors' SophiaG)
// Optax: `contrib.sophia`: `.rho = 0.01, .weight_decay = 1e-4, .form = sophia_form::optax`; observe after the step
#pragma once
#include "../../base/math.hpp"
#include "../sparse_mode.hpp"

namespace gradus::inline GRADUS_BUILD {

enum class sophia_form { sophia_g, optax };

struct sophia {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "Sophia";
  static constexpr double default_rate = 0.0001;

  std::optional<double> rate = {};           // the longest step of an element; unset: 0.0001, or the schedule
  double beta1 = 0.965;                      // how long g is remembered: about 1/(1-beta1) steps
  double beta2 = 0.99;                       // how long estimates are remembered, in observations
  double rho = 0.04;                         // larger clips less; choose it so that 10 to 50 % of elements are clipped
  double weight_decay = 0.1;                 // times the rate
  double batch_size = 5120;                  // sophia_g: examples (times tokens) of a step
  double epsilon = 1e-8;                     // optax: floor of the denominator
  sophia_form form = sophia_form::sophia_g;  // how the denominator is made
  sparse_mode sparse = sparse_mode::decay_all;  // lazy: rows without a gradient stay; decay_all: they get 0

  static constexpr auto settings() {
    using line = setting<sophia>;
    return std::array{line{"rate", &sophia::rate, setting_range::not_negative},
                      line{"beta1", &sophia::beta1, setting_range::half_open},
                      line{"beta2", &sophia::beta2, setting_range::half_open},
                      line{"rho", &sophia::rho, setting_range::not_negative},
                      line{"weight_decay", &sophia::weight_decay, setting_range::not_negative},
                      line{"batch_size", &sophia::batch_size, setting_range::positive},
                      line{"epsilon", &sophia::epsilon, setting_range::not_negative}};
  }

  constexpr auto slots() const { return std::array{slot{"m", 0.0}, slot{"h", 0.0}}; }

  // Holds the number of finished steps, and beta1^t of the step to come.
  static constexpr std::array<std::string_view, 2> shared_names{"step", "beta1_power"};
  using shared = std::array<double, 2>;
  static constexpr auto powers() { return std::array<double sophia::*, 2>{nullptr, &sophia::beta1}; }
  constexpr shared start() const { return {0, beta1}; }
  constexpr void finish(shared& s) const { s = {s[0] + 1, portable_math::product(s[1], beta1)}; }

  template <class N>
  struct constants {
    N rate, decay, beta1, fresh1, beta2, fresh2, correction, curvature, least;
  };
  constexpr constants<double> prepare(const step_info& at, const shared& s) const {
    const bool optax = form == sophia_form::optax;
    return {at.rate,
            at.rate * weight_decay,
            beta1,
            1 - beta1,
            beta2,
            1 - beta2,
            optax ? 1 / (1 - s[1]) : 1,
            optax ? rho : rho * batch_size,
            optax ? epsilon : 1e-15};
  }

  template <class N>
  N step(N theta, N g, const constants<N>& c, N& m, N& h) const {
    m = c.beta1 * m + c.fresh1 * g;
    const N curvature = c.curvature * h;
    const N ratio = m * c.correction / (form == sophia_form::optax ? max(c.least, curvature) : curvature + c.least);
    const N clipped = min(N(1), max(N(-1), ratio));  // a NaN stays: the second place
    return theta - c.decay * theta - c.rate * clipped;
  }
  constexpr bool decays_all_rows() const { return sparse == sparse_mode::decay_all; }

  // Takes a new estimate e.
  template <class N>
  void observe(N estimate, const constants<N>& c, N&, N& h) const {
    h = c.beta2 * h + c.fresh2 * (form == sophia_form::optax ? estimate : estimate * estimate);
  }
};

}  // namespace gradus
