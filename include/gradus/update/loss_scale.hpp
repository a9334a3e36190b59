// Loss scaling computes gradients of 16-bit numbers from loss * scale, so that small ones do not vanish, and divides
// them by scale before the rule sees them. Micikevicius et al. 2018, arXiv:1710.03740.
//
// A policy of your own whose scale is the same in every step has `static constexpr bool is_constant = true`; others are
// taken for scales that change, which asynchronous updates of several workers refuse (cluster/cluster_stepper.hpp).
#pragma once
#include "../base/build.hpp"

#include <cmath>
#include <cstdint>

#include "../base/contract.hpp"
#include "setting.hpp"

namespace gradus::inline GRADUS_BUILD {

// The scale halves when a gradient is infinite or NaN, and that step is left out (no variable, slot or average moves;
// global_step still counts it); it doubles after `growth_interval` steps without one. As torch.cuda.amp.GradScaler,
// with its defaults; tf.train.experimental.DynamicLossScale starts at 2^15 and does not count a step that is left out.
// Its state is in the checkpoint.
struct dynamic_loss_scale {
  using policy_for = kind::loss_scale;
  double initial = 65536;       // 2^16; powers of two keep every gradient exact
  double growth_factor = 2;     // after growth_interval good steps
  double backoff_factor = 0.5;  // after a bad one
  std::int64_t growth_interval = 2000;
  double smallest = 1, largest = 0x1p60;  // the scale stays between these
  static constexpr std::string_view called = "dynamic_loss_scale";
  static constexpr auto settings() {
    using line = setting<dynamic_loss_scale>;
    return std::array{line{"initial", &dynamic_loss_scale::initial, setting_range::positive},
                      line{"growth_factor", &dynamic_loss_scale::growth_factor, setting_range::one_or_more},
                      line{"backoff_factor", &dynamic_loss_scale::backoff_factor, setting_range::positive_unit},
                      line{"growth_interval", &dynamic_loss_scale::growth_interval, setting_range::one_or_more},
                      line{"smallest", &dynamic_loss_scale::smallest, setting_range::not_negative},
                      line{"largest", &dynamic_loss_scale::largest, setting_range::positive}};
  }

  void check() const { check_setting(smallest <= largest, called, "smallest", smallest, "<= `largest`"); }

  double scale = 0;             // state: 0 before the first step
  std::int64_t good_steps = 0;  // state: since the scale changed
  bool bad = false;             // this step

  double value() const { return scale > 0 ? scale : initial; }
  double unscale(double norm) {
    bad = !std::isfinite(norm);
    return 1 / value();
  }
  bool skips() const { return bad; }
  void finish() {
    if (bad) {
      scale = value() * backoff_factor, good_steps = 0;
      if (scale < smallest) scale = smallest;
    } else if (++good_steps >= growth_interval) {  // the interval may vary
      scale = value() * growth_factor, good_steps = 0;
      if (scale > largest) scale = largest;
    }
  }
  void restart() { scale = 0, good_steps = 0, bad = false; }
  template <class List>
  void remembers(List& list) {
    list.scalar("loss_scale", scale);
    list.scalar("loss_scale_good_steps", good_steps);
  }
};

// The scale is constant; a step with an infinite or NaN gradient is left out too.
struct static_loss_scale {
  using policy_for = kind::loss_scale;
  double scale = 128;
  bool bad = false;  // this step

  static constexpr bool is_constant = true;
  static constexpr std::string_view called = "static_loss_scale";
  static constexpr auto settings() {
    using line = setting<static_loss_scale>;
    return std::array{line{"scale", &static_loss_scale::scale, setting_range::positive}};
  }
  double value() const { return scale; }
  double unscale(double norm) {
    bad = !std::isfinite(norm);
    return 1 / scale;
  }
  bool skips() const { return bad; }
  void finish() {}
  void restart() { bad = false; }
  template <class List>
  void remembers(List&) {}
};

namespace detail {
struct no_loss_scale {
  using policy_for = kind::loss_scale;
  constexpr double value() const { return 1; }
};
}  // namespace detail

}  // namespace gradus
