// This header has cosine decays (SGDR: Loshchilov & Hutter 2017, arXiv:1608.03983; linear cosine: Bello et al. 2017,
// arXiv:1709.07417).
#pragma once
#include "../../base/random.hpp"
#include "../schedule.hpp"

namespace gradus::inline GRADUS_BUILD {

// initial ((1 - alpha) (1 + cos(pi s / decay_steps)) / 2 + alpha), s = min(global_step, decay_steps).
// TensorFlow: tf.train.cosine_decay. Optax: cosine_decay_schedule(init_value, decay_steps, alpha). PyTorch:
// CosineAnnealingLR(T_max, eta_min) with alpha = eta_min / initial, up to T_max; after T_max it rises again, while this
// schedule stays.
//
// Value: initial ((1-alpha)(1 + cos πs/D)/2 + alpha), s at most D
// Settings: `initial, decay_steps, alpha = 0`
// Elsewhere: Optax cosine_decay_schedule; PyTorch CosineAnnealingLR(T_max, eta_min = alpha · initial) up to T_max
struct cosine_decay {
  using policy_for = kind::schedule;
  double initial = 0.001;
  double decay_steps = 1;
  double alpha = 0;  // what is left in the end, as a share of `initial`

  constexpr void check() const {
    detail::check_length("cosine_decay", "decay_steps", decay_steps);
    detail::check_bound("cosine_decay", "alpha", alpha, detail::schedule_bound::share);
  }
  constexpr double operator()(std::int64_t global_step) const {
    const double s = static_cast<double>(global_step);
    const double wave = detail::half_cosine(s > decay_steps ? 1.0 : s / decay_steps);
    return portable_math::product(initial, detail::between(alpha, 1, wave));
  }
};

// A cosine decay with restarts: period i is first_decay_steps * t_mul^i steps long and falls from initial * m_mul^i.
//
//   initial ((1 - alpha) m_mul^i (1 + cos(pi f)) / 2 + alpha)      f: the share of period i that is done
//
// Period lengths are subtracted one by one, so a restart happens exactly at its step. TensorFlow computes a quotient of
// logarithms, which at some restarts is one rounding too small (with t_mul = 3 at the fifth), so it returns the end of
// the old period there. With t_mul below 1 the periods end at first_decay_steps / (1 - t_mul); from then on the rate is
// NaN, as in TensorFlow.
// TensorFlow: tf.train.cosine_decay_restarts. PyTorch: CosineAnnealingWarmRestarts(T_0, T_mult, eta_min).
//
// Value: initial ((1-alpha) m_mul^i (1 + cos πf)/2 + alpha), f the done share of period i, which is first_decay_steps ·
//   t_mul^i long
// Settings: `initial, first_decay_steps, t_mul = 2, m_mul = 1, alpha = 0`
// Elsewhere: PyTorch CosineAnnealingWarmRestarts(T_0, T_mult, eta_min); Optax sgdr_schedule (with warm-ups). Restarts
//   are exact, TensorFlow's are a rounding late at some
struct cosine_decay_restarts {
  using policy_for = kind::schedule;
  double initial = 0.001;
  double first_decay_steps = 1;
  double t_mul = 2;
  double m_mul = 1;
  double alpha = 0;

  constexpr void check() const {
    detail::check_bound("cosine_decay_restarts", "first_decay_steps", first_decay_steps);
    detail::check_bound("cosine_decay_restarts", "t_mul", t_mul);
    detail::check_bound("cosine_decay_restarts", "alpha", alpha, detail::schedule_bound::share);
  }
  constexpr double operator()(std::int64_t global_step) const {
    double left = static_cast<double>(global_step), length = first_decay_steps, period = 0;
    if (t_mul == 1) {
      period = portable_math::floor(left / length);
      left -= portable_math::product(period, length);
    } else {
      for (; left >= length && length > 0; period += 1) {
        left -= length;
        length = portable_math::product(length, t_mul);
      }
    }
    if (!(length > 0)) return portable_math::not_a_number;
    const double wave = portable_math::product(portable_math::pow(m_mul, period), detail::half_cosine(left / length));
    return portable_math::product(initial, portable_math::product(1 - alpha, wave) + alpha);
  }
};

namespace detail {
// initial ((alpha + linear) (1 + cos(2 pi num_periods s / D)) / 2 + beta)
constexpr double linear_cosine(double initial, double s, double d, double num_periods, double alpha, double beta,
                               double linear) {
  const double wave = half_cosine(portable_math::product(num_periods + num_periods, s / d));
  return portable_math::product(initial, portable_math::product(alpha + linear, wave) + beta);
}
}  // namespace detail

// initial ((alpha + (D - s) / D) (1 + cos(2 pi num_periods s / D)) / 2 + beta), D = decay_steps, s = min(global_step,
// D). TensorFlow: tf.train.linear_cosine_decay.
//
// Value: initial ((alpha + (D-s)/D)(1 + cos(2π num_periods s/D))/2 + beta), s at most D
// Settings: `initial, decay_steps, num_periods = 0.5, alpha = 0, beta = 0.001`
struct linear_cosine_decay {
  using policy_for = kind::schedule;
  double initial = 0.001;
  double decay_steps = 1;
  double num_periods = 0.5;
  double alpha = 0;
  double beta = 0.001;

  constexpr void check() const { detail::check_length("linear_cosine_decay", "decay_steps", decay_steps); }
  constexpr double operator()(std::int64_t global_step) const {
    double s = static_cast<double>(global_step);
    if (s > decay_steps) s = decay_steps;
    return detail::linear_cosine(initial, s, decay_steps, num_periods, alpha, beta, (decay_steps - s) / decay_steps);
  }
};

// linear_cosine_decay with noise in its linear part: N(0, initial_variance / (1 + s)^variance_decay) is added to
// (D - s) / D. The rate may be negative.
//
// TensorFlow (tf.train.noisy_linear_cosine_decay) draws at every evaluation; here the noise is a function of seed and
// step, so that a resumed run has the same noise. From decay_steps on only the noise changes.
//
// Value: the same with (D-s)/D + N(0, initial_variance / (1+s)^variance_decay)
// Settings: `initial, decay_steps, initial_variance = 1, variance_decay = 0.55, num_periods = 0.5, alpha = 0, beta =
//   0.001, seed = 0`
// Elsewhere: TensorFlow draws anew at each evaluation; here seed and step decide. `.at(s, draw)` takes a draw of yours
//   from N(0, 1), `.unit_normal(s)` is ours
struct noisy_linear_cosine_decay {
  using policy_for = kind::schedule;
  static constexpr bool may_be_negative = true;
  double initial = 0.001;
  double decay_steps = 1;
  double initial_variance = 1;
  double variance_decay = 0.55;
  double num_periods = 0.5;
  double alpha = 0;
  double beta = 0.001;
  std::uint64_t seed = 0;

  constexpr void check() const { detail::check_length("noisy_linear_cosine_decay", "decay_steps", decay_steps); }
  double operator()(std::int64_t global_step) const { return at(global_step, unit_normal(global_step)); }

  // Returns the rate, given the draw from N(0, 1).
  double at(std::int64_t global_step, double unit_normal) const {
    double s = static_cast<double>(global_step);
    if (s > decay_steps) s = decay_steps;
    const double variance = initial_variance / portable_math::pow(1 + s, variance_decay);
    const double noise = portable_math::product(portable_math::sqrt(variance), unit_normal);
    return detail::linear_cosine(initial, s, decay_steps, num_periods, alpha, beta,
                                 (decay_steps - s) / decay_steps + noise);
  }
  // Returns the draw from N(0, 1) of a step (Box and Muller 1958).
  double unit_normal(std::int64_t global_step) const {
    const auto step = static_cast<std::uint64_t>(global_step);
    const auto w = philox(seed)({static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(step >> 32), stream, 0});
    const double radius = portable_math::sqrt(-2 * portable_math::log(1 - uniform_double(w[0], w[1])));
    return portable_math::product(radius, portable_math::cos_pi(2 * uniform_double(w[2], w[3])));
  }

private:
  static constexpr std::uint32_t stream = 0x6e6c6364;  // apart from other users of the same seed
};

}  // namespace gradus
