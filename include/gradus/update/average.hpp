// An average is a copy of the parameters that follows them. It does not change training; an evaluation or a predictor
// with `use_averages` reads it in place of the parameters.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <string_view>

#include "../base/contract.hpp"
#include "setting.hpp"

namespace gradus::inline GRADUS_BUILD {

// shadow <- shadow - (1 - d)(shadow - theta), after theta's step; shadow starts with theta's initial value.
//
// d is decay, or min(decay, (1 + n)/(10 + n)) with num_updates, where n is global_step after the step: the average then
// follows quickly at first. It behaves as tf.train.ExponentialMovingAverage on variables (without debiasing, since the
// shadow starts at the variable), and runs after the optimizer as in MovingAverageOptimizer: variables without a
// gradient in a step keep their shadow; with a sparse gradient every row of the shadow follows.
struct exponential_moving_average {
  using policy_for = kind::average;
  static constexpr std::string_view name = "ExponentialMovingAverage";
  double decay = 0.9999;     // the average is over about 1/(1-decay) steps
  bool num_updates = false;  // start with a short memory
  static constexpr std::string_view called = "exponential_moving_average";
  static constexpr auto settings() {
    using line = setting<exponential_moving_average>;
    return std::array{line{"decay", &exponential_moving_average::decay, setting_range::unit}};
  }

  constexpr double new_share(std::int64_t steps_done) const {
    if (!num_updates) return 1 - decay;
    const double n = static_cast<double>(steps_done), early = (1 + n) / (10 + n);
    return 1 - (decay < early ? decay : early);
  }
  template <class N>
  static N follow(N shadow, N theta, N new_share) {
    return shadow - new_share * (shadow - theta);
  }
};

// The mean of the parameters at every `every`-th step from `start` on: stochastic weight averaging (Izmailov et al.
// 2018, arXiv:1803.05407; torch.optim.swa_utils.AveragedModel). Steps of the rule are counted; before `start` the
// average is the variable's initial value. Batch statistics of a model are not recomputed.
struct stochastic_weight_average {
  using policy_for = kind::average;
  static constexpr std::string_view name = "StochasticWeightAverage";
  std::int64_t start = 0;  // the first step that counts
  std::int64_t every = 1;
  static constexpr std::string_view called = "stochastic_weight_average";
  static constexpr auto settings() {
    using line = setting<stochastic_weight_average>;
    return std::array{line{"start", &stochastic_weight_average::start, setting_range::not_negative},
                      line{"every", &stochastic_weight_average::every, setting_range::one_or_more}};
  }

  // Returns the share of the newest parameters in the average after `steps_done` finished steps; 0 if this step does
  // not count.
  constexpr double new_share(std::int64_t steps_done) const {
    const std::int64_t since = steps_done - 1 - start;
    if (since < 0 || since % every != 0) return 0;
    return 1 / static_cast<double>(since / every + 1);
  }
  template <class N>
  static N follow(N shadow, N theta, N new_share) {
    return shadow - new_share * (shadow - theta);
  }
};

template <class A>
concept parameter_average = policy<A> && std::is_same_v<typename A::policy_for, kind::average> && requires(const A& a) {
  { std::string_view{A::name} };
  { a.new_share(std::int64_t{1}) } -> std::convertible_to<double>;
};

// Checks an average at compile time and reports what it lacks.
template <class A>
struct average_fits {
  static_assert(
      parameter_average<A>,
      "gradus: this average cannot follow; add `static constexpr std::string_view name`, `double "
      "new_share(std::int64_t steps_done) const` and `template <class N> static N follow(N shadow, N theta, N "
      "new_share)`.");
  static constexpr bool value = parameter_average<A>;
};

}  // namespace gradus
