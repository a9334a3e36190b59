// This header checks the arguments of a trainer: it refuses a trainer that cannot be made with one sentence, and the
// code behind the check is not compiled, so that the errors that follow from the mistake do not bury the sentence.
#pragma once
#include "../base/build.hpp"

#include <type_traits>

#include "composition.hpp"
#include "hook_fits.hpp"
#include "train_options.hpp"

namespace gradus::inline GRADUS_BUILD {
namespace detail {

// The run loop takes these policies, both in a trainer and in a supervisor.
using loop_kinds =
    kinds_and<update_kinds, kind::gate, kind::precision, kind::codec, kind::warm_start, kind::snapshot, kind::save_when,
              kind::executor, kind::arithmetic, kind::subnormals, kind::microbatch, kind::recomputation, kind::pooling,
              kind::activations, kind::clock, kind::file_system, kind::operations, kind::log_sink, kind::hook,
              kind::saving_listener, kind::connection, kind::staleness, kind::recovery>;
using trainer_kinds = kinds_and<loop_kinds, kind::configuration>;

template <class... Policies>
struct cluster_policies_fit {
  using connection = policy_of<kind::connection, in_this_process, Policies...>;
  static constexpr bool no_other_staleness = has_steps<connection> || policies_of<kind::staleness, Policies...> == 0;
  static_assert(no_other_staleness,
                "gradus: a policy that says how a cluster trains (asynchronous, ssp, sync_replicas, all_reduce) was "
                "given without the cluster; add gradus::connected{server}.");
  static constexpr bool no_other_recovery = has_steps<connection> || policies_of<kind::recovery, Policies...> == 0;
  static_assert(no_other_recovery,
                "gradus: a policy that says what becomes of a lost parameter server (recovery::roll_back, "
                "recovery::log) was given without the cluster; add gradus::connected{server}.");
  static constexpr bool value = no_other_staleness && no_other_recovery;
};
// A trainer has no sessions, so only its steps can run elsewhere.
template <class... Policies>
struct connection_fits_trainer {
  static constexpr bool value = policies_of<kind::connection, Policies...> == 0 ||
                                has_steps<policy_of<kind::connection, in_this_process, Policies...>>;
  static_assert(value,
                "gradus: a trainer takes gradus::connected{server} as its connect policy; those that give sessions, "
                "such as in_process, are for make_supervisor.");
};

// The header of a snapshot's policy declares its writer alone.
template <class... Policies>
struct snapshot_is_written {
  using saver_type =
      saver<policy_of<kind::codec, flat_binary, Policies...>, policy_of<kind::file_system, posix, Policies...>,
            policy_of<kind::clock, system_clock, Policies...>>;
  using writer = typename policy_of<kind::snapshot, in_place, Policies...>::template saves<saver_type>;
  static constexpr bool value = requires { sizeof(writer); };
  static_assert(
      value, "gradus: what writes a snapshot beside training is missing; include <gradus/checkpoint/background.hpp>.");
};

template <class... Policies>
struct rule_is_given {
  static constexpr bool value = policies_of<kind::rule, Policies...> != 0;
  static_assert(value, "gradus: no rule was given; add one, such as gradus::adam{}, to the policies.");
};

template <class Source, class... Policies>
using model_is_accepted = model_fits_mode<typename composition<Source, Policies...>::model_type, mode::train>;

// The checks run in this order, and none is instantiated after the first that refuses. They are classes, not functions:
// after a failed assertion inside a function, clang no longer treats the function as a constant expression. `Kinds`
// lists the kinds of policies that are accepted.
template <class Kinds, class... Policies>
using policies_are_accepted =
    std::conjunction<policies_fit<Kinds, Policies...>, rule_is_given<Policies...>,
                     one_rule_fits<policy_of<kind::rule, no_rule, Policies...>>,
                     schedule_fits<policy_of<kind::schedule, no_schedule, Policies...>>,
                     clip_fits<policy_of<kind::clip, no_clip, Policies...>>,
                     average_fits<policy_of<kind::average, no_average, Policies...>>,
                     log_sink_fits<policy_of<kind::log_sink, warnings, Policies...>>, snapshot_is_written<Policies...>,
                     hooks_fit<Policies...>, cluster_policies_fit<Policies...>, connection_fits_trainer<Policies...>>;
template <class Kinds, class Source, class... Policies>
using door = std::conjunction<policies_are_accepted<Kinds, Policies...>, model_is_accepted<Source, Policies...>>;

// These are the most frequent mistakes. Each has an overload of make_trainer below that must not be called: compilers
// then print the caller's line first, with the sentence on it. The message of a static_assert in a check comes only
// after the path of its header and after every instantiation that leads to it.
enum class refusal {
  none,
  stranger,
  twice,
  no_rule,
  no_cluster,
  no_parameter_server,
  of_sessions,
  no_step,
  unnamed_step,
  other_step,
  hook,
  listener,
  not_constexpr,
  model
};

template <class R>
concept lacks_only_a_step = has_name<R> && has_rate<R> && prepares<R> && !has_step<R>;
template <auto Build, class... Policies>
consteval refusal find_refusal() {
  using rule = policy_of<kind::rule, no_rule, Policies...>;
  using sink = policy_of<kind::log_sink, warnings, Policies...>;
  using connection = policy_of<kind::connection, in_this_process, Policies...>;
  if constexpr (!((policy<Policies> || step_function<Policies>)&&...))
    return refusal::stranger;
  else if constexpr (given_twice<Policies...>(static_cast<const trainer_kinds*>(nullptr)))
    return refusal::twice;
  else if constexpr (policies_of<kind::rule, Policies...> == 0)
    return refusal::no_rule;
  else if constexpr (policies_of<kind::connection, Policies...> != 0 && !has_steps<connection>)
    return refusal::of_sessions;
  else if constexpr (policies_of<kind::staleness, Policies...> != 0 && !has_steps<connection>)
    return refusal::no_cluster;
  else if constexpr (policies_of<kind::recovery, Policies...> != 0 && !has_steps<connection>)
    return refusal::no_parameter_server;
  else if constexpr (!is_multi<rule>::value && lacks_only_a_step<rule>)
    return refusal::no_step;
  else if constexpr (!names_step<sink>)
    return refusal::unnamed_step;
  else if constexpr (!takes_steps<sink>)
    return refusal::other_step;
  else if constexpr (!(hook_is_right<Policies>() && ...))
    return ((!hook_is_right<Policies>() && is_of<kind::hook, Policies>()) || ...) ? refusal::hook : refusal::listener;
  else if constexpr (!policies_are_accepted<trainer_kinds, Policies...>::value)
    return refusal::none;  // its check has printed the sentence
  else if constexpr (!built_by_compiler<Build>)
    return refusal::not_constexpr;
  else
    return model_is_accepted<by_compiler<Build>, Policies...>::value ? refusal::none : refusal::model;
}
template <auto Build, class... Policies>
inline constexpr refusal refusal_of = find_refusal<Build, Policies...>();

// This is the reason why a model was refused, as a template argument of the call.
template <refusal Why, auto Build, class... Policies>
struct reason_of {
  using type = void;
};
template <auto Build, class... Policies>
struct reason_of<refusal::model, Build, Policies...> {
  using type = typename model_is_accepted<by_compiler<Build>, Policies...>::page::reason;
};

}  // namespace detail

template <auto Model, class... Policies>
  requires(detail::refusal_of<Model, Policies...> == detail::refusal::stranger)
detail::refused_trainer make_trainer(const Policies&...) __attribute__((unavailable(
    "gradus: this argument is not a policy (a policy has `using policy_for = gradus::kind::...;`). See the table of "
    "policies in README.md.")));

template <auto Model, class... Policies>
  requires(detail::refusal_of<Model, Policies...> == detail::refusal::twice)
detail::refused_trainer make_trainer(const Policies&...)
    __attribute__((unavailable("gradus: two policies of one kind were given; keep one.")));

template <auto Model, class... Policies>
  requires(detail::refusal_of<Model, Policies...> == detail::refusal::no_rule)
detail::refused_trainer make_trainer(const Policies&...)
    __attribute__((unavailable("gradus: no rule was given; add one, such as gradus::adam{}, to the policies.")));

template <auto Model, class... Policies>
  requires(detail::refusal_of<Model, Policies...> == detail::refusal::no_cluster)
detail::refused_trainer make_trainer(const Policies&...)
    __attribute__((unavailable("gradus: a policy that says how a cluster trains (asynchronous, ssp, sync_replicas, "
                               "all_reduce) was given without the cluster; add gradus::connected{server}.")));

template <auto Model, class... Policies>
  requires(detail::refusal_of<Model, Policies...> == detail::refusal::no_parameter_server)
detail::refused_trainer make_trainer(const Policies&...) __attribute__((unavailable(
    "gradus: a policy that says what becomes of a lost parameter server (recovery::roll_back, recovery::log) was given "
    "without the cluster; add gradus::connected{server}.")));

template <auto Model, class... Policies>
  requires(detail::refusal_of<Model, Policies...> == detail::refusal::of_sessions)
detail::refused_trainer make_trainer(const Policies&...) __attribute__((unavailable(
    "gradus: a trainer takes gradus::connected{server} as its connect policy; those that give sessions, such as "
    "in_process, are for make_supervisor.")));

template <auto Model, class... Policies>
  requires(detail::refusal_of<Model, Policies...> == detail::refusal::no_step)
detail::refused_trainer make_trainer(const Policies&...) __attribute__((unavailable(
    "gradus: this rule has no step; add `template <class N> N step(N theta, N g, const constants<N>& c, N& slot...) "
    "const`, with one N& for each of slots().")));

template <auto Model, class... Policies>
  requires(detail::refusal_of<Model, Policies...> == detail::refusal::unnamed_step)
detail::refused_trainer make_trainer(const Policies&...) __attribute__((unavailable(
    "gradus: this log sink has no member `step`; add `void step(const gradus::progress_report&, bool due)`, which is "
    "called after every step.")));

template <auto Model, class... Policies>
  requires(detail::refusal_of<Model, Policies...> == detail::refusal::other_step)
detail::refused_trainer make_trainer(const Policies&...) __attribute__((unavailable(
    "gradus: this log sink's `step` cannot be called with (const gradus::progress_report&, bool), so it would never be "
    "called; write `void step(const gradus::progress_report&, bool due)`.")));

template <auto Model, class... Policies>
  requires(detail::refusal_of<Model, Policies...> == detail::refusal::hook)
detail::refused_trainer make_trainer(const Policies&...) __attribute__((unavailable(
    "gradus: this hook has a function that would never be called, or none that would; give it one or more of `void "
    "begin()`, `void after_create_session(gradus::hooked_session&)`, `void before_run(gradus::run_context&)`, `void "
    "after_run(gradus::run_context&, const gradus::run_values&)`, `void end(gradus::hooked_session&)`, and no name "
    "near "
    "to these. What is called around saves is a policy of kind::saving_listener.")));

template <auto Model, class... Policies>
  requires(detail::refusal_of<Model, Policies...> == detail::refusal::listener)
detail::refused_trainer make_trainer(const Policies&...) __attribute__((unavailable(
    "gradus: this saving listener has a function that would never be called, or none that would; give it one or more "
    "of `void begin()`, `void before_save(gradus::hooked_session&, std::int64_t step)`, `bool "
    "after_save(gradus::hooked_session&, std::int64_t step)`, `void end(gradus::hooked_session&, std::int64_t step)`, "
    "and no name near to these. What is called around steps is a policy of kind::hook.")));

template <auto Model, class... Policies>
  requires(detail::refusal_of<Model, Policies...> == detail::refusal::not_constexpr)
detail::refused_trainer make_trainer(const Policies&...) __attribute__((unavailable(
    "gradus: the compiler cannot run this model function; declare it `constexpr`, a lambda behind its parameters, and "
    "the compiler names the call that is not; or let the program run it: make_trainer(model, policies...).")));

template <auto Model, class... Policies,
          class Reason = typename detail::reason_of<detail::refusal_of<Model, Policies...>, Model, Policies...>::type>
  requires(detail::refusal_of<Model, Policies...> == detail::refusal::model)
detail::refused_trainer make_trainer(const Policies&...) __attribute__((
    unavailable("gradus: the model was refused; the reason stands in the template arguments, in pieces")));

}  // namespace gradus
