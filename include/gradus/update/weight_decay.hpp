// These parts of a chain decay weights, for any rule.
#pragma once
#include "../base/build.hpp"

#include <tuple>

#include "mask.hpp"
#include "part.hpp"

namespace gradus::inline GRADUS_BUILD {

enum class decay_mode {
  decoupled,           // theta <- theta - rate * strength * theta, then the rule: AdamW as PyTorch has it
  decoupled_unscaled,  // theta <- theta - strength * theta: tf.contrib's DecoupledWeightDecayExtension
  coupled              // g <- g + strength * theta: the L2 penalty, PyTorch's Adam(weight_decay=...) and SGD
};

// weight_decay{0.01, matrices{}}: variables that the mask chooses decay; the others are left alone. With a sparse
// gradient only the rows that it lists decay, as in tf.contrib. Loshchilov & Hutter 2019, arXiv:1711.05101.
template <variable_mask Mask = all_variables>
class weight_decay {
public:
  using policy_for = kind::transform;
  double strength = 0.01;
  decay_mode mode = decay_mode::decoupled;
  static constexpr std::string_view called = "weight_decay";
  static constexpr auto settings() {
    using line = setting<weight_decay>;
    return std::array{line{"strength", &weight_decay::strength, setting_range::not_negative}};
  }

  constexpr explicit weight_decay(double s, Mask where = {}, decay_mode m = decay_mode::decoupled)
      : strength(s), mode(m), where_(where) {}
  constexpr weight_decay(double s, decay_mode m) : strength(s), mode(m) {}

  template <class N>
  struct constants {
    N keep, couple;  // theta <- keep theta, g <- g + couple theta
  };
  constexpr constants<double> prepare(const step_info& at) const {
    switch (mode) {
    case decay_mode::decoupled: return {at.rate * strength, 0};
    case decay_mode::decoupled_unscaled: return {strength, 0};
    default: return {0, strength};
    }
  }
  bool selects(std::string_view name, const extents& dims) const
    requires(!std::is_same_v<Mask, all_variables>)
  {
    return where_(name, dims);
  }
  constants<double> adapt(const constants<double>& c, const subject& about, std::span<const double>) const
    requires(!std::is_same_v<Mask, all_variables>)
  {
    return about.selected ? c : constants<double>{0, 0};
  }
  template <class N>
  void before(N& theta, N& g, const constants<N>& c) const {
    if (mode == decay_mode::coupled)
      g = g + c.couple * theta;
    else
      theta = theta - c.keep * theta;
  }
  // A cluster serializes it with these two functions.
  std::tuple<double, Mask, decay_mode> sent_as() const { return {strength, where_, mode}; }
  static weight_decay from_sent(const std::tuple<double, Mask, decay_mode>& sent) {
    return weight_decay(std::get<0>(sent), std::get<1>(sent), std::get<2>(sent));
  }

private:
  [[no_unique_address]] Mask where_{};
};
weight_decay(double) -> weight_decay<>;
weight_decay(double, decay_mode) -> weight_decay<>;
template <variable_mask Mask>
weight_decay(double, Mask) -> weight_decay<Mask>;
template <variable_mask Mask>
weight_decay(double, Mask, decay_mode) -> weight_decay<Mask>;

}  // namespace gradus
