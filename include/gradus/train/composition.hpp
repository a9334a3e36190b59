// What a model and its policies come to: the types that a trainer and a supervisor are both made of.
#pragma once
#include <functional>
#include <tuple>
#include <utility>

#include "../base/clock.hpp"
#include "../base/contract.hpp"
#include "../checkpoint/saver.hpp"
#include "../cpu/device.hpp"
#include "../run/stepper.hpp"
#include "progress.hpp"

namespace gradus::detail {

// The policies that an update is made of, as `composed`.
template <class P>
auto update_part(const P& p) {
  if constexpr (of_update<P>)
    return std::tuple<P>(p);
  else
    return std::tuple<>();
}
template <class... Policies>
auto compose_update(const Policies&... policies) {
  return std::apply([](auto... parts) { return composed<decltype(parts)...>(parts...); },
                    std::tuple_cat(update_part(policies)...));
}
template <class... Policies>
using update_of = decltype(compose_update(std::declval<const Policies&>()...));

// How the model is made ready, given the policies.
template <auto Build>
struct by_compiler {
  static constexpr auto build = Build;
  template <class Device, class Ops, gating Gate, bool NeedsNorm, bool Reuse, dtype Compute, bool ScalesLoss>
  using model = compiled_model<Build, Device, Gate, NeedsNorm, Reuse, Compute, ScalesLoss>;
  template <class Model>
  Model make() const {
    return {};
  }
};
struct by_program {
  std::function<model_spec(graph&)> build;
  template <class Device, class Ops, gating Gate, bool NeedsNorm, bool Reuse, dtype Compute, bool ScalesLoss>
  using model = interpreted_model<Device, Ops, Gate, NeedsNorm, Reuse, Compute, ScalesLoss>;
  template <class Model>
  Model make() const {
    return Model(build);
  }
};

template <class Source, class... Policies>
struct composition {
  using update_type = update_of<Policies...>;
  using arithmetic_type = policy_of<kind::arithmetic, fast, Policies...>;
  using device_type = cpu<arithmetic_type>;
  using executor_type = policy_of<kind::executor, serial, Policies...>;
  using codec_type = policy_of<kind::codec, flat_binary, Policies...>;
  using file_system_type = policy_of<kind::file_system, posix, Policies...>;
  using clock_type = policy_of<kind::clock, system_clock, Policies...>;
  using sink_type = policy_of<kind::log_sink, silent, Policies...>;
  using model_type = typename Source::template model<
      device_type, policy_of<kind::operations, ops<>, Policies...>, policy_of<kind::gate, gate_op, Policies...>::value,
      update_type::needs_norm, !executor_type::concurrent,
      policy_of<kind::precision, full_precision, Policies...>::compute, update_type::scales_loss>;
  using stepper_type = stepper<model_type, update_type, device_type, executor_type>;
  using saver_type = saver<codec_type, file_system_type, clock_type>;
};

}  // namespace gradus::detail
