// These policies decide what a step does when its loss, or the global norm of its gradients, is infinite or NaN. The
// step checks after the last gradient and before the first update.
//
//   gradus::make_trainer<digits>(gradus::adam{}, gradus::not_finite::skip{});
#pragma once
#include "../base/build.hpp"

#include <cmath>
#include <cstdint>
#include <limits>

#include "../base/contract.hpp"
#include "../base/error.hpp"

namespace gradus::inline GRADUS_BUILD {

// A norm is also infinite where its squares overflow: for float32 gradients beyond 1e19. The forward pass makes its own
// changes (moving averages of batch_norm) before the check.
namespace not_finite {

// The update is made without a check, as in TensorFlow's and PyTorch's training step. This is the default of a step; a
// trainer then checks the loss after the step and stops, as tf.estimator's NanTensorHook does, unless this policy is
// among its own.
struct pass {
  using policy_for = kind::not_finite;
  static constexpr bool looks = false, raises = false;
};

// The step ends in an error (invalid_argument) that names the loss, or the first variable whose gradient is at fault;
// no variable, slot, average or global_step has changed.
struct raise {
  using policy_for = kind::not_finite;
  static constexpr bool looks = true, raises = true;
};

// The update is left out: no variable, slot or average moves, global_step counts the step, and so does
// skipped_steps(), which the checkpoint keeps. With accumulate{}, the sum so far is dropped with it.
struct skip {
  using policy_for = kind::not_finite;
  static constexpr bool looks = true, raises = false;
};

}  // namespace not_finite

namespace detail {

// This is the running state of a not_finite policy.
template <class Policy>
struct not_finite_guard {
  double loss = 0;           // of this step
  bool bad = false;          // this step
  std::int64_t skipped = 0;  // steps so far: state

  void see_loss(double value) { loss = value; }
  void see_norm(double value) {
    bad = !std::isfinite(value) || !std::isfinite(loss);
    if (bad && !Policy::raises) ++skipped;
  }
  template <class List>
  void remembers(List& list) {
    if constexpr (!Policy::raises) list.scalar("skipped_steps", skipped);
  }
};
template <>
struct not_finite_guard<not_finite::pass> {
  static constexpr bool bad = false;
  static constexpr std::int64_t skipped = 0;
};

// Returns the index of the first of these numbers that is infinite or NaN; their count if all are finite.
template <class T>
std::size_t first_not_finite(const T* values, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i)
    if (!std::isfinite(values[i])) return i;
  return n;
}
inline const char* name_of_not_finite(double x) { return std::isnan(x) ? "NaN" : "infinite"; }

// Raises the error of a step that is not finite. `variable` is the one whose gradient holds `value`; it is empty where
// only the norm is not finite.
[[noreturn]] inline void raise_not_finite(double loss, std::string_view variable, double value, std::int64_t step) {
  const std::string where =
      text(" in the step after step ", step,
           "; nothing was updated. Lower the learning rate, clip gradients, or look at this batch");
  if (!std::isfinite(loss))
    gradus::raise(status::invalid_argument, text("the loss is ", name_of_not_finite(loss), where));
  if (variable.empty())
    gradus::raise(status::invalid_argument, text("the norm of the gradients has no room in its type", where));
  gradus::raise(status::invalid_argument,
                text("the gradient of \"", variable, "\" is ", name_of_not_finite(value), where));
}
// Raises the same error, naming the first gradient with a value that is not finite: each(f) calls f(variable, values,
// count) for every gradient.
template <class Each>
[[noreturn, gnu::cold, gnu::noinline]] void refuse_gradients(double loss, std::int64_t step, Each each) {
  std::string_view first;
  double found = 0;
  each([&](std::string_view variable, const auto* values, std::size_t n) {
    if (!first.empty()) return;
    if (const std::size_t at = first_not_finite(values, n); at != n)
      first = variable, found = static_cast<double>(values[at]);
  });
  raise_not_finite(loss, first, found, step);
}

}  // namespace detail

}  // namespace gradus
