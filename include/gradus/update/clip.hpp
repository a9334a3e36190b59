// Clipping: gradients are scaled before the rule sees them.
#pragma once
#include <cmath>
#include <limits>

#include "../base/contract.hpp"

namespace gradus {

// Scales all gradients of a step together so that their global norm is at most max_norm.
//
//   norm = sqrt(sum of squares over every gradient)       duplicate rows of a sparse gradient count one by one
//   g <- g * max_norm * min(1 / norm, 1 / max_norm)
//
// As tf.clip_by_global_norm (1.15): every gradient becomes NaN where the norm is infinite or NaN, so that a broken step
// shows; a norm of 0 leaves gradients alone; max_norm = 0 makes them 0. PyTorch's clip_grad_norm_ adds 1e-6 to the
// norm.
struct clip_by_global_norm {
  using policy_for = kind::clip;
  static constexpr bool needs_norm = true;
  double max_norm = 1.0;  // in units of the gradient; 1 to 5 is common, log the norm to choose

  // The factor for every gradient.
  double scale(double norm) const {
    if (!std::isfinite(norm)) return std::numeric_limits<double>::quiet_NaN();
    const double by_norm = 1 / norm, by_limit = 1 / max_norm;
    return max_norm * (by_norm < by_limit ? by_norm : by_limit);
  }
};

template <class C>
concept gradient_clip = policy<C> && std::is_same_v<typename C::policy_for, kind::clip> && requires(const C& c) {
  { C::needs_norm } -> std::convertible_to<bool>;
  { c.scale(1.0) } -> std::convertible_to<double>;
};

// The error page of a clip.
template <class C>
struct clip_fits {
  static_assert(gradient_clip<C>,
                "gradus: this clip gives no factor; add `static constexpr bool needs_norm = true;` and `double "
                "scale(double norm) const`.");
  static constexpr bool value = gradient_clip<C>;
};

}  // namespace gradus
