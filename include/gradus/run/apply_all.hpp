// A step of all variables whose updates differ: what must be known of all gradients before the first update (norms over
// all of them, accumulated gradients), then each variable's own step (run/apply.hpp).
#pragma once
#include "apply.hpp"

namespace gradus::inline GRADUS_BUILD {

// The stages over all variables, one after the other: `each(f)` calls f(step) with every variable_step, in a fixed
// order.
template <class Update, class Each>
void measure_all(Each each) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    [[maybe_unused]] const auto stage = [&]<std::size_t S>() {
      typename Update::stage_sums sums{};
      each([&](auto& step) { step.template measure<S>(sums); });
      each([&](auto& step) { step.template settle<S>(sums); });
    };
    (stage.template operator()<I>(), ...);
  }(std::make_index_sequence<Update::global_stages>{});
}

// Before the first update of a step: takes every gradient, and learns what must be known of all of them. Gives their
// global norm (of what is accumulated so far, in a step that only accumulates), and in `scale` the factor for all.
template <class Update, class Each>
double know_all(Update& update, const typename Update::branch_constants& constants, std::int64_t global_step,
                double& scale, Each each) {
  const bool only_adds = update.only_accumulates(global_step);
  double squares = 0;
  each([&](auto& step) {
    step.begin(constants);
    step.accumulate();
    if (!only_adds) step.use_accumulated();
    if constexpr (Update::needs_norm) squares += step.squares();
  });
  if (only_adds) return std::sqrt(squares);
  const double norm = std::sqrt(squares) * update.accumulation_share();
  if constexpr (Update::needs_norm) {
    scale = update.clip_scale(norm);
    if (update.skips()) return norm;
  }
  measure_all<Update>([&](auto f) {
    each([&](auto& step) {
      step.use_accumulated();
      f(step);
    });
  });
  return norm;
}

// One variable's part of the step, after know_all.
template <class Update, class Step>
void finish_one(const Update& update, Step& step, std::int64_t global_step) {
  if (update.only_accumulates(global_step)) return;
  if (update.skips()) return step.drop_accumulated();
  step.use_accumulated();
  step.apply();
}

}  // namespace gradus
