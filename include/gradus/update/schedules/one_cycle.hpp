// One-cycle schedules (Smith & Topin 2018, arXiv:1708.07120) rise from a small rate to `peak`, and fall to a much
// smaller one. PyTorch and Optax place the corners differently, so both are here.
//
// A momentum that moves the other way has the same shape upside down, for instance from 0.95 to 0.85 and back:
// {.peak = 0.85, .div_factor = 0.85 / 0.95, .final_div_factor = 1}.
#pragma once
#include "../../base/build.hpp"

#include <array>
#include <cstddef>

#include "../schedule.hpp"

namespace gradus::inline GRADUS_BUILD {

// This says how a phase goes from one rate to the next.
enum class annealing { cosine, linear };

namespace detail {
struct corner {
  double step = 0, rate = 0;
};
// Returns the rate at step s on the curve through the corners, which are in order of their steps. Before the first and
// after the last corner it is that corner's rate; of two corners at one step the later counts.
template <std::size_t N>
constexpr double along(const std::array<corner, N>& corners, double s, annealing how) {
  std::size_t i = 1;
  while (i + 1 < N && s >= corners[i].step) ++i;
  const corner a = corners[i - 1], b = corners[i];
  if (!(s > a.step)) return a.rate;
  if (!(s < b.step)) return b.rate;
  const double p = (s - a.step) / (b.step - a.step);
  return how == annealing::cosine ? between(b.rate, a.rate, half_cosine(p)) : between(a.rate, b.rate, p);
}
constexpr void check_cycle(std::string_view schedule, double pct_start, double div_factor, double final_div_factor) {
  check_bound(schedule, "pct_start", pct_start, schedule_bound::share);
  check_bound(schedule, "div_factor", div_factor);
  check_bound(schedule, "final_div_factor", final_div_factor);
}
}  // namespace detail

// PyTorch's OneCycleLR(max_lr, total_steps, pct_start, anneal_strategy, div_factor, final_div_factor, three_phase): the
// rate goes from peak / div_factor at step 0 to peak at pct_start * total_steps - 1 (not rounded) to
// peak / div_factor / final_div_factor at total_steps - 1. With three_phase it falls to peak / div_factor first, as
// fast as it rose. After total_steps - 1 the last rate stays; PyTorch raises an error there.
//
// Value: peak/div_factor at 0, peak at pct_start·T - 1, peak/div_factor/final_div_factor at T - 1 and after, T =
//   total_steps; `three_phase` falls to peak/div_factor first, at 2·pct_start·T - 2
// Settings: `peak, total_steps, pct_start = 0.3, anneal = annealing::cosine` (or `linear`)`, div_factor = 25,
//   final_div_factor = 1e4, three_phase = false`
// Elsewhere: PyTorch OneCycleLR; `peak` is max_lr
struct one_cycle {
  using policy_for = kind::schedule;
  double peak = 0.001;  // PyTorch: max_lr
  std::int64_t total_steps = 1;
  double pct_start = 0.3;
  annealing anneal = annealing::cosine;
  double div_factor = 25;
  double final_div_factor = 1e4;
  bool three_phase = false;

  constexpr void check() const {
    detail::check_length("one_cycle", "total_steps", static_cast<double>(total_steps));
    detail::check_cycle("one_cycle", pct_start, div_factor, final_div_factor);
  }
  constexpr double operator()(std::int64_t global_step) const {
    const double total = static_cast<double>(total_steps), s = static_cast<double>(global_step);
    const double low = peak / div_factor, least = low / final_div_factor, up = portable_math::product(pct_start, total);
    if (three_phase)
      return detail::along<4>({{{0, low}, {up - 1, peak}, {2 * up - 2, low}, {total - 1, least}}}, s, anneal);
    return detail::along<3>({{{0, low}, {up - 1, peak}, {total - 1, least}}}, s, anneal);
  }
};

// Optax's cosine_onecycle_schedule(transition_steps, peak_value, pct_start, div_factor, final_div_factor): corners at
// 0, int(pct_start * transition_steps) and transition_steps, with peak / div_factor, peak and peak / div_factor /
// final_div_factor.
//
// Value: the same values at 0, int(pct_start·T), T = transition_steps
// Settings: `transition_steps, peak, pct_start = 0.3, div_factor = 25, final_div_factor = 1e4`
// Elsewhere: Optax cosine_onecycle_schedule
struct cosine_onecycle {
  using policy_for = kind::schedule;
  std::int64_t transition_steps = 1;
  double peak = 0.001;
  double pct_start = 0.3;
  double div_factor = 25;
  double final_div_factor = 1e4;

  constexpr void check() const {
    detail::check_length("cosine_onecycle", "transition_steps", static_cast<double>(transition_steps));
    detail::check_cycle("cosine_onecycle", pct_start, div_factor, final_div_factor);
  }
  constexpr double operator()(std::int64_t global_step) const {
    const double total = static_cast<double>(transition_steps), low = peak / div_factor;
    const double up = portable_math::floor(portable_math::product(pct_start, total));
    return detail::along<3>({{{0, low}, {up, peak}, {total, low / final_div_factor}}}, static_cast<double>(global_step),
                            annealing::cosine);
  }
};

// Optax's linear_onecycle_schedule(transition_steps, peak_value, pct_start, pct_final, div_factor, final_div_factor):
// straight lines between corners at 0, int(pct_start * transition_steps), int(pct_final * transition_steps) and
// transition_steps, with peak / div_factor, peak, peak / div_factor and peak / div_factor / final_div_factor.
//
// Value: lines through peak/div_factor, peak, peak/div_factor, peak/div_factor/final_div_factor at 0, int(pct_start·T),
//   int(pct_final·T), T
// Settings: and `pct_final = 0.85`
// Elsewhere: Optax linear_onecycle_schedule
struct linear_onecycle {
  using policy_for = kind::schedule;
  std::int64_t transition_steps = 1;
  double peak = 0.001;
  double pct_start = 0.3;
  double pct_final = 0.85;
  double div_factor = 25;
  double final_div_factor = 1e4;

  constexpr void check() const {
    detail::check_length("linear_onecycle", "transition_steps", static_cast<double>(transition_steps));
    detail::check_cycle("linear_onecycle", pct_start, div_factor, final_div_factor);
    detail::check_bound("linear_onecycle", "pct_final", pct_final, detail::schedule_bound::share);
  }
  constexpr double operator()(std::int64_t global_step) const {
    const double total = static_cast<double>(transition_steps), low = peak / div_factor;
    const double up = portable_math::floor(portable_math::product(pct_start, total));
    const double down = portable_math::floor(portable_math::product(pct_final, total));
    return detail::along<4>({{{0, low}, {up, peak}, {down, low}, {total, low / final_div_factor}}},
                            static_cast<double>(global_step), annealing::linear);
  }
};

}  // namespace gradus
