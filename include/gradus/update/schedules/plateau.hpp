// reduce_on_plateau is the one schedule that observes a value. Its state is in the checkpoint.
#pragma once
#include "../../base/error.hpp"
#include "../schedule.hpp"

namespace gradus::inline GRADUS_BUILD {

enum class plateau_mode { min, max };  // whether less is better, as for a loss, or more, as for an accuracy
enum class plateau_threshold { relative, absolute };  // PyTorch: "rel", "abs"

// Multiplies the rate by `factor` when more than `patience` observations in a row were no better than the best one.
//
//   better:  value < best (1 - threshold)  or  value < best - threshold       (min; relative or absolute)
//            value > best (1 + threshold)  or  value > best + threshold       (max)
//   after a reduction, `cooldown` observations do not count as bad; a change of at most eps is not made
//
// PyTorch's ReduceLROnPlateau(mode, factor, patience, threshold, threshold_mode, cooldown, min_lr, eps), with its
// defaults and its order: an observation is one call of scheduler.step(metrics), usually after an evaluation. Optax's
// contrib reduce_on_plateau gives a factor: use initial = 1, with product_of. A NaN is never better, here or in
// PyTorch. Here an infinity of either sign is not better either; in PyTorch an infinity on the better side becomes a
// best value that nothing can beat. factor must be below 1; otherwise observe, and making an update with the schedule,
// raise status::invalid_argument.
struct reduce_on_plateau {
  using policy_for = kind::schedule;
  double initial = 0.001;
  plateau_mode mode = plateau_mode::min;
  double factor = 0.1;
  std::int64_t patience = 10;
  double threshold = 1e-4;
  plateau_threshold threshold_mode = plateau_threshold::relative;
  std::int64_t cooldown = 0;
  double min_rate = 0;  // PyTorch: min_lr
  double eps = 1e-8;

  // State with its initial values; do not set it.
  double rate = initial;
  double best = worst();
  std::int64_t bad_observations = 0;  // in a row
  std::int64_t cooldown_left = 0;

  constexpr void check() const {
    check_factor();
    detail::check_bound("reduce_on_plateau", "threshold", threshold, detail::schedule_bound::not_negative);
    if (threshold_mode == plateau_threshold::relative && !(threshold < 1))
      detail::refuse_setting("reduce_on_plateau", "threshold", "< 1, a share of the best value (1 % is 0.01)",
                             threshold);
  }
  constexpr double operator()(std::int64_t) const { return rate; }
  // Returns whether the values that it observes are better the other way than these.
  constexpr bool observes_other_way(bool higher_is_better) const {
    return (mode == plateau_mode::max) != higher_is_better;
  }

  constexpr void observe(double value) {
    check_factor();  // check() looks at all, where an update is made; here it would cost a board 2 KB
    const bool better = is_better(value);
    if (better) best = value;
    bad_observations = better ? 0 : bad_observations + 1;
    if (cooldown_left > 0) --cooldown_left, bad_observations = 0;
    if (bad_observations <= patience) return;
    const double less = portable_math::product(rate, factor), next = less > min_rate ? less : min_rate;
    if (rate - next > eps) rate = next;
    cooldown_left = cooldown;
    bad_observations = 0;
  }
  // Resets the state to that before the first observation.
  constexpr void restart() { rate = initial, best = worst(), bad_observations = 0, cooldown_left = 0; }

  template <class List>
  void remembers(List& list) {
    list.scalar("reduce_on_plateau/rate", rate);
    list.scalar("reduce_on_plateau/best", best);
    list.scalar("reduce_on_plateau/bad_observations", bad_observations);
    list.scalar("reduce_on_plateau/cooldown_left", cooldown_left);
  }

private:
  constexpr void check_factor() const {
    if (!(factor < 1 && factor >= 0)) detail::refuse_setting("reduce_on_plateau", "factor", ">= 0 and < 1", factor);
  }
  constexpr double worst() const {
    return mode == plateau_mode::min ? portable_math::infinity : -portable_math::infinity;
  }
  constexpr bool is_better(double value) const {
    if (!(portable_math::abs(value) < portable_math::infinity)) return false;
    const bool relative = threshold_mode == plateau_threshold::relative;
    if (mode == plateau_mode::min)
      return value < (relative ? portable_math::product(best, 1 - threshold) : best - threshold);
    return value > (relative ? portable_math::product(best, 1 + threshold) : best + threshold);
  }
};

}  // namespace gradus
