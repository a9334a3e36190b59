// These policies decide when to save; they are called after every step, and can be combined.
//
//   make_trainer<digits>(adam{}, any_of{every_seconds{600}, every_steps{1000}}, run_config{...});
//
//   every_steps{1000}       after steps 1000, 2000, ... (TensorFlow's save_checkpoints_steps)
//   every_seconds{600}      at the first step so many seconds after the last save (save_checkpoints_secs)
//   when_better{}           a metric has been measured that is better than every one before
//   on_signal{SIGTERM}      the machine is about to be taken away (checkpoint/on_signal.hpp)
//   any_of{a, b, ...}       any of them; each is called every time, so that each sees all steps
#pragma once
#include "../base/build.hpp"

#include <concepts>
#include <cstdint>
#include <optional>
#include <tuple>

#include "../base/contract.hpp"
#include "../base/error.hpp"

namespace gradus::inline GRADUS_BUILD {

// The input of a decision: this step, the newest save (step -1: none yet), and the metrics measured since the step
// before.
struct save_moment {
  std::int64_t step = 0, saved_step = -1;
  double elapsed = 0, saved_elapsed = 0;  // monotonic seconds
  std::optional<double> metric = {};
};

template <class D>
concept save_decision =
    std::same_as<typename D::policy_for, kind::save_when> && requires(D& d, const save_moment& now) {
      { d.due(now) } -> std::convertible_to<bool>;
    };

// Saves after every so many steps; 0: never.
struct every_steps {
  using policy_for = kind::save_when;
  std::int64_t steps = 1000;
  bool due(const save_moment& now) const { return steps > 0 && now.step % steps == 0; }
};

// Saves once so many seconds have passed since the last save; 0: never.
struct every_seconds {
  using policy_for = kind::save_when;
  double seconds = 600;
  bool due(const save_moment& now) const { return seconds > 0 && now.elapsed - now.saved_elapsed >= seconds; }
};

// Saves when a measured metric is better than at every save before. Of a loss, lower values are better: give
// `.higher_is_better = false`. A validation of the other direction is refused.
struct when_better {
  using policy_for = kind::save_when;
  bool higher_is_better = true;
  std::optional<double> best = {};  // a metric that is not finite is none
  bool due(const save_moment& now);
  bool saves_other_way(bool higher) const { return higher != higher_is_better; }
  // Takes the best value of an earlier run, which later ones have to surpass.
  void begin_better(double value) { due({.metric = value}); }
};

namespace detail {
// Returns whether a decision, or a part of it, saves at metrics that are better the other way than these.
template <class Decision>
bool saves_other_way(const Decision& d, bool higher_is_better) {
  if constexpr (requires { d.saves_other_way(higher_is_better); })
    return d.saves_other_way(higher_is_better);
  else
    return false;
}
// Passes the best value of an earlier run to a decision, or to its parts.
template <class Decision>
void begin_better(Decision& d, double best) {
  if constexpr (requires { d.begin_better(best); }) d.begin_better(best);
}
}  // namespace detail

// Saves when one of these decisions is due.
template <save_decision... Decisions>
struct any_of {
  using policy_for = kind::save_when;

  any_of() = default;
  any_of(Decisions... decisions) : decisions_(std::move(decisions)...) {}
  bool due(const save_moment& now) {
    return std::apply([&](auto&... d) { return (int{d.due(now)} | ... | 0) != 0; }, decisions_);
  }
  bool stop() const {
    return std::apply([](const auto&... d) { return (asks(d) || ...); }, decisions_);
  }
  bool saves_other_way(bool higher) const {
    return std::apply([&](const auto&... d) { return (detail::saves_other_way(d, higher) || ...); }, decisions_);
  }
  void begin_better(double best) {
    std::apply([&](auto&... d) { (detail::begin_better(d, best), ...); }, decisions_);
  }

private:
  template <class D>
  static bool asks(const D& d) {
    if constexpr (requires { d.stop(); })
      return d.stop();
    else
      return false;
  }
  std::tuple<Decisions...> decisions_;
};
static_assert(save_decision<every_steps> && save_decision<every_seconds> && save_decision<when_better>);
static_assert(save_decision<any_of<every_steps, when_better>>);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "save_when.ipp"
#endif
