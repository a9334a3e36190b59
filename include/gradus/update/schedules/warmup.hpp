// These schedules begin with a warm-up: the rate rises over warmup_steps, then stays or falls.
#pragma once
#include "sequence.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// Rises from 0 at step 0 to 1 at warmup_steps, and is 1 from there on.
constexpr double warmed(std::int64_t global_step, std::int64_t warmup_steps) {
  return global_step >= warmup_steps ? 1.0 : static_cast<double>(global_step) / static_cast<double>(warmup_steps);
}
// Checks that a phase has 0 steps or more.
constexpr void check_phase(std::string_view schedule, std::string_view setting, std::int64_t steps) {
  check_bound(schedule, setting, static_cast<double>(steps), schedule_bound::not_negative);
}
}  // namespace detail

// initial + (peak - initial) s / warmup_steps, s = min(global_step, warmup_steps): step 0 has `initial`.
//
//   gradus::linear_warmup{.peak = 0.1, .warmup_steps = 500}
//       .then(gradus::cosine_decay{.initial = 0.1, .decay_steps = 9500})
//
// Optax: linear_schedule(init_value, end_value, transition_steps), warmup_constant_schedule. PyTorch: LinearLR with
// start_factor = initial / peak.
//
// Value: initial + (peak - initial) min(s, W)/W
// Settings: `initial = 0, peak, warmup_steps`; `.then(next)`
// Elsewhere: Optax linear_schedule, warmup_constant_schedule; PyTorch LinearLR
struct linear_warmup {
  using policy_for = kind::schedule;
  double initial = 0;
  double peak = 0.001;
  std::int64_t warmup_steps = 1;

  constexpr void check() const { detail::check_phase("linear_warmup", "warmup_steps", warmup_steps); }
  constexpr double operator()(std::int64_t global_step) const {
    return detail::between(initial, peak, detail::warmed(global_step, warmup_steps));
  }
  // Returns the schedule that follows `next` after the warm-up; step 0 of `next` is step warmup_steps.
  template <class Next>
  constexpr schedule_sequence<linear_warmup, Next> then(Next next) const {
    return {*this, warmup_steps, next};
  }
};

// This is a linear warm-up from initial to peak, then a half cosine down to `end` at decay_steps, which counts the
// warm-up too. Optax: warmup_cosine_decay_schedule(init_value, peak_value, warmup_steps, decay_steps, end_value).
//
// Value: the warm-up; from W a half cosine from peak to `end` at D, which includes W
// Settings: `initial = 0, peak, warmup_steps, decay_steps, end = 0`
// Elsewhere: Optax warmup_cosine_decay_schedule(init_value, peak_value, warmup_steps, decay_steps, end_value)
struct warmup_cosine_decay {
  using policy_for = kind::schedule;
  double initial = 0;
  double peak = 0.001;
  std::int64_t warmup_steps = 0;
  std::int64_t decay_steps = 1;
  double end = 0;

  constexpr void check() const {
    detail::check_phase("warmup_cosine_decay", "warmup_steps", warmup_steps);
    detail::check_length("warmup_cosine_decay", "decay_steps", static_cast<double>(decay_steps));
    if (decay_steps <= warmup_steps)
      raise(status::invalid_argument, "warmup_cosine_decay: expected `decay_steps`, which counts the warm-up too, > ",
            warmup_steps, ", found ", decay_steps);
  }
  constexpr double operator()(std::int64_t global_step) const {
    if (global_step < warmup_steps) return detail::between(initial, peak, detail::warmed(global_step, warmup_steps));
    const double p = global_step >= decay_steps ? 1.0
                                                : static_cast<double>(global_step - warmup_steps) /
                                                      static_cast<double>(decay_steps - warmup_steps);
    return detail::between(end, peak, detail::half_cosine(p));
  }
};

// This says how the last phase of warmup_stable_decay falls as p goes from 0 to 1: 1 - p, (1 + cos(pi p)) / 2, 1 -
// sqrt(p).
enum class decay_type { linear, cosine, one_minus_sqrt };

// peak times a share that rises from min_ratio to 1 over warmup_steps, is 1 for stable_steps, and falls back to
// min_ratio over decay_steps, where it stays: WSD, the trapezoid (Hu et al. 2024, arXiv:2404.06395).
// Hugging Face: get_wsd_schedule(num_warmup_steps, num_stable_steps, num_decay_steps, min_lr_ratio, decay_type), with
// linear warm-up.
//
// Value: peak · (min_ratio + (1 - min_ratio) r): r rises to 1 over W, is 1 for `stable_steps`, falls to 0 over D by
//   `decay_type::linear` 1-p, `cosine` (1+cos πp)/2 or `one_minus_sqrt` 1-√p
// Settings: `peak, warmup_steps, stable_steps, decay_steps, min_ratio = 0, decay_type = linear`
// Elsewhere: WSD; Hugging Face get_wsd_schedule
struct warmup_stable_decay {
  using policy_for = kind::schedule;
  double peak = 0.001;
  std::int64_t warmup_steps = 0;
  std::int64_t stable_steps = 0;
  std::int64_t decay_steps = 1;
  double min_ratio = 0;
  gradus::decay_type decay_type = gradus::decay_type::linear;

  constexpr void check() const {
    detail::check_phase("warmup_stable_decay", "warmup_steps", warmup_steps);
    detail::check_phase("warmup_stable_decay", "stable_steps", stable_steps);
    detail::check_phase("warmup_stable_decay", "decay_steps", decay_steps);
    if (warmup_steps + stable_steps < 1)
      detail::check_length("warmup_stable_decay", "decay_steps", static_cast<double>(decay_steps));
  }
  double operator()(std::int64_t global_step) const {
    double share = 1;
    const std::int64_t decaying = global_step - warmup_steps - stable_steps;
    if (global_step < warmup_steps)
      share = detail::warmed(global_step, warmup_steps);
    else if (decaying >= 0)
      share = falling(decaying);
    return portable_math::product(peak, detail::between(min_ratio, 1, share));
  }

private:
  double falling(std::int64_t s) const {
    if (s >= decay_steps) return 0;
    const double p = static_cast<double>(s) / static_cast<double>(decay_steps);
    switch (decay_type) {
    case gradus::decay_type::cosine: return detail::half_cosine(p);
    case gradus::decay_type::one_minus_sqrt: return 1 - portable_math::sqrt(p);
    default: return 1 - p;
    }
  }
};

// peak s / warmup_steps, then peak / sqrt((s - warmup_steps + timescale) / timescale). timescale 0 stands for
// warmup_steps, which gives peak sqrt(warmup_steps / s), or for 10000 where warmup_steps is 0 too.
// Hugging Face: get_inverse_sqrt_schedule(num_warmup_steps, timescale).
//
// Value: peak · s/W, then peak / √((s - W + T)/T), T = `timescale`, or W, or 10000
// Settings: `peak, warmup_steps, timescale = 0`
// Elsewhere: Hugging Face get_inverse_sqrt_schedule
struct inverse_sqrt {
  using policy_for = kind::schedule;
  double peak = 0.001;
  std::int64_t warmup_steps = 0;
  std::int64_t timescale = 0;

  constexpr void check() const {
    detail::check_phase("inverse_sqrt", "warmup_steps", warmup_steps);
    detail::check_phase("inverse_sqrt", "timescale", timescale);
  }
  double operator()(std::int64_t global_step) const {
    if (global_step < warmup_steps) return portable_math::product(peak, detail::warmed(global_step, warmup_steps));
    const std::int64_t scale = timescale != 0 ? timescale : warmup_steps != 0 ? warmup_steps : 10000;
    const double s = static_cast<double>(global_step - warmup_steps + scale);
    return peak / portable_math::sqrt(s / static_cast<double>(scale));
  }
};

// factor / sqrt(d_model) * min(1 / sqrt(s), s / warmup_steps^1.5), s = global_step: it rises to its peak factor /
// sqrt(d_model warmup_steps) at s = warmup_steps, then falls with the root of s (Vaswani et al. 2017, arXiv:1706.03762,
// section 5.3). The paper counts steps from 1; global_step begins at 0, where the rate is 0.
//
// Value: factor / √d_model · min(1/√s, s/W^1.5); 0 at step 0
// Settings: `d_model = 512, warmup_steps = 4000, factor = 1`
// Elsewhere: the Transformer's, which counts from 1
struct noam {
  using policy_for = kind::schedule;
  double d_model = 512;  // the width of the model
  std::int64_t warmup_steps = 4000;
  double factor = 1;

  constexpr void check() const {
    detail::check_bound("noam", "d_model", d_model);
    detail::check_bound("noam", "warmup_steps", static_cast<double>(warmup_steps));
  }
  double operator()(std::int64_t global_step) const {
    const double s = static_cast<double>(global_step), w = static_cast<double>(warmup_steps);
    const double share = global_step < warmup_steps ? s / (w * portable_math::sqrt(w)) : 1 / portable_math::sqrt(s);
    return portable_math::product(factor / portable_math::sqrt(d_model), share);
  }
};

}  // namespace gradus
