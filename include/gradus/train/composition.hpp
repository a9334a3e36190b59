// This header derives, from a model and its policies, the types of which both a trainer and a supervisor are made.
#pragma once
#include "../base/build.hpp"

#include <functional>
#include <tuple>
#include <utility>

#include "../base/clock.hpp"
#include "../base/contract.hpp"
#include "../checkpoint/in_place.hpp"
#include "../checkpoint/save_when.hpp"
#include "../cpu/device.hpp"
#include "../run/stepper.hpp"
#include "hook.hpp"
#include "progress.hpp"
#include "run_config.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// The policies decide how the model is prepared.
template <auto Build>
struct by_compiler {
  static constexpr auto build = Build;
  template <class Device, class Ops, gating Gate, bool NeedsNorm, bool Reuse, dtype Compute, bool ScalesLoss,
            int Recompute, const rewriting* Rewrite>
  using model = compiled_model<Build, Device, Gate, NeedsNorm, Reuse, Compute, ScalesLoss, Recompute, Rewrite>;
  template <class Model>
  Model make() const {
    return {};
  }
};
struct by_program {
  std::function<model_spec(graph&)> build;
  template <class Device, class Ops, gating Gate, bool NeedsNorm, bool Reuse, dtype Compute, bool ScalesLoss,
            int Recompute, const rewriting* Rewrite>
  using model = interpreted_model<Device, Ops, Gate, NeedsNorm, Reuse, Compute, ScalesLoss, Recompute, Rewrite>;
  template <class Model>
  Model make() const {
    return Model(build);
  }
};

// True if the compiler can build the model's graph of this mode; `page` holds the sentence with the reason if it
// cannot. A model that the program builds is refused when it runs.
template <class Model, mode When>
struct model_fits_mode : std::true_type {
  using page = std::true_type;
};
template <class Model, mode When>
  requires requires { typename Model::template fits<When>; }
struct model_fits_mode<Model, When> : Model::template fits<When> {};

struct no_warm_start {};
// Gives a source of a warm start that detects its codec the codec of the run, which it then recognizes.
template <class WarmStart, class Codec>
auto read_with(WarmStart from, const Codec& own) {
  if constexpr (requires { from.read_with(own); })
    return from.read_with(own);
  else
    return from;
}

// Joins the ops of the interpreter: those that the program gives, and those that a policy's pass makes.
template <class Given, class Kernels>
struct join_operations;
template <class Given, const card*... Kernels>
struct join_operations<Given, op_list<Kernels...>> {
  template <const card*... Own>
  static ops<Own..., Kernels...> join(op_list<Own...>);
  using type = decltype(join(typename Given::list{}));
};
template <class... Policies>
using operations_among =
    typename join_operations<policy_of<kind::operations, ops<>, Policies...>,
                             typename policy_of<kind::pooling, separate_pools, Policies...>::kernels>::type;

// Returns the configuration among the policies, null if there is none.
template <class... Policies>
const run_config* given_config(const Policies&... policies) {
  const run_config* found = nullptr;
  const auto look = [&found](const auto& policy) {
    if constexpr (std::is_base_of_v<run_config, std::remove_cvref_t<decltype(policy)>>) found = &policy;
  };
  (look(policies), ...);
  return found;
}

// This is the decision about saves that run_config's two intervals make.
using config_decision = any_of<every_steps, every_seconds>;
template <class Decision>
Decision decision_of(const run_config& c, Decision given) {
  if (c.save_checkpoints_steps.given() || c.save_checkpoints_secs.given())
    raise(status::invalid_argument,
          "run_config has an interval of checkpoints, and there is a policy that decides when to save; keep one");
  return given;
}
template <>
inline config_decision decision_of(const run_config& c, config_decision) {
  const checkpoint_interval every = checkpoint_interval_of(c);
  return {every_steps{every.steps.active() ? static_cast<std::int64_t>(every.steps.value()) : 0},
          every_seconds{every.secs.active() ? every.secs.value() : 0}};
}

struct in_this_process {};

// The steps of a run are the stepper's own, or those that a connect policy with steps makes of them.
template <class Connection>
concept has_steps = requires { typename Connection::default_staleness; };
template <class Connection, class Alone, class Update, class Device, class... Policies>
struct steps_of {
  using type = Alone;
};
template <has_steps Connection, class Alone, class Update, class Device, class... Policies>
struct steps_of<Connection, Alone, Update, Device, Policies...> {
  using type = typename Connection::template steps<
      Alone, Update, Device, policy_of<kind::staleness, typename Connection::default_staleness, Policies...>>;
};

template <class Source, class... Policies>
struct composition {
  using update_type = update_among<Policies...>;
  using arithmetic_type = policy_of<kind::arithmetic, fast, Policies...>;
  using device_type = cpu<arithmetic_type>;
  using executor_type = policy_of<kind::executor, serial, Policies...>;
  using codec_type = policy_of<kind::codec, flat_binary, Policies...>;
  using file_system_type = policy_of<kind::file_system, posix, Policies...>;
  using clock_type = policy_of<kind::clock, system_clock, Policies...>;
  using sink_type = policy_of<kind::log_sink, warnings, Policies...>;
  using model_type = typename Source::template model<
      device_type, operations_among<Policies...>, policy_of<kind::gate, gate_op, Policies...>::value,
      update_type::needs_norm, !executor_type::concurrent,
      policy_of<kind::precision, full_precision, Policies...>::compute, update_type::scales_loss,
      policy_of<kind::recomputation, recompute_nothing, Policies...>::segments, rewriting_among<Policies...>()>;
  using subnormals_type =
      policy_of<kind::subnormals, std::conditional_t<arithmetic_type::fuses, subnormals::flush, subnormals::keep>,
                Policies...>;
  using microbatch_type = policy_of<kind::microbatch, detail::whole_batch, Policies...>;
  using connection_type = policy_of<kind::connection, in_this_process, Policies...>;
  using stepper_type =
      typename steps_of<connection_type,
                        stepper<model_type, update_type, device_type, executor_type, subnormals_type, microbatch_type>,
                        update_type, device_type, Policies...>::type;
  // The loss is checked after a step, as in tf.estimator's NanTensorHook, unless a not_finite policy decides.
  static constexpr bool looks_at_loss = policies_of<kind::not_finite, Policies...> == 0;
  using saver_type = saver<codec_type, file_system_type, clock_type>;
  using saves_type = typename policy_of<kind::snapshot, in_place, Policies...>::template saves<saver_type>;
  using decision_type = policy_of<kind::save_when, config_decision, Policies...>;
  using warm_start_type = policy_of<kind::warm_start, no_warm_start, Policies...>;
  using hooks_type = hooks_among<Policies...>;
  static constexpr bool warm_starts = !std::is_same_v<warm_start_type, no_warm_start>;
  // This is true if steps are those of a cluster's task.
  static constexpr bool in_cluster = has_steps<connection_type>;

  // Returns whether a policy of the run says how a cluster trains: any that has no value, or has one.
  template <class... All, class Staleness>
  static bool is_chosen([[maybe_unused]] const Staleness& when) {
    if constexpr (requires { when.is_given(); }) return when.is_given();
    return policies_of<kind::staleness, All...> != 0;
  }
  static stepper_type make_steps(const Source& source, const Policies&... policies) {
    const auto executor = take_policy<kind::executor, serial>(policies...);
    const auto cut = take_policy<kind::microbatch, whole_batch>(policies...);
    if constexpr (in_cluster) {
      const auto connection = take_policy<kind::connection, connection_type>(policies...);
      auto when = take_policy<kind::staleness, typename connection_type::default_staleness>(policies...);
      if (const auto said = strategy_of(take_policy<kind::configuration, run_config>(policies...)); said.has_value()) {
        if (is_chosen<Policies...>(when))
          raise(status::invalid_argument,
                "run_config: train_distribute and a policy of the run both say how the cluster trains; keep one");
        if constexpr (requires { when = said.value(); }) when = said.value();
      }
      const auto lost = take_policy<kind::recovery, typename connection_type::default_recovery>(policies...);
      return connection.template make<stepper_type>(when, lost, connection.describe(policies...),
                                                    source.template make<model_type>(), compose_update(policies...),
                                                    executor, subnormals_type{}, cut);
    } else {
      return stepper_type(source.template make<model_type>(), compose_update(policies...), executor, subnormals_type{},
                          cut);
    }
  }
};

}  // namespace gradus::detail
