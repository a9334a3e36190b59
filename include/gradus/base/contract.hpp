// Policies are settings that are composed at compile time. They are passed as a pack, in any order, at most one per
// kind; a kind that is left out has a named default. Duplicates and arguments of other types give a compile error of
// one sentence.
//
// A policy names its kind:
//
//   struct adam { using policy_for = gradus::kind::rule; double beta1 = 0.9; ... };
#pragma once
#include "build.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace gradus::inline GRADUS_BUILD {

namespace kind {
struct rule {};                       // the rule turns a gradient into a step: gradient_descent, momentum, adam, ...
struct schedule {};                   // the schedule gives the learning rate at each step: exponential_decay, ...
struct clip {};                       // the clip limits gradients before the rule sees them: clip_by_global_norm, ...
struct transform {};                  // the part stands in a chain before its rule: weight_decay
struct follower {};                   // the part stands in a chain after its rule: lookahead
struct freeze {};                     // the variables that a mask chooses stay as they are: freeze
struct accumulation {};               // the rule makes one step for every k gradients: accumulate
struct variation {                    // a setting follows a schedule: vary
  static constexpr bool many = true;  // as many as wanted
};
struct noise {};          // noise is added to gradients: gradient_noise
struct loss_scale {};     // loss and gradients are multiplied, so that 16-bit gradients do not vanish
struct precision {};      // the operands of products are rounded to fewer bits: mixed_precision
struct gate {};           // the gate orders gradients and updates: gate_none, gate_op, gate_graph
struct average {};        // a copy of the parameters follows them: exponential_moving_average, ...
struct codec {};          // the codec gives a checkpoint its bytes: flat_binary, safetensors, ...
struct warm_start {};     // a fresh run takes its first values from elsewhere: warm_start_from, ...
struct save_when {};      // the policy decides when a checkpoint is due: every_steps, when_better, on_signal, any_of
struct snapshot {};       // the policy sets state aside for a save: in_place, copy_snapshot, rolling_snapshot, ...
struct executor {};       // the executor says how many threads compute a step: serial, threads{n}, threads_on
struct arithmetic {};     // the arithmetic says how much results may depend on the machine: fast, portable, ...
struct subnormals {};     // the policy says what becomes of subnormal numbers: subnormals::flush, subnormals::keep
struct not_finite {};     // the policy says what becomes of a step whose loss or gradients are infinite or NaN
struct recomputation {};  // activations are computed twice instead of kept: recompute<segments>
struct pooling {};        // a convolution and the pool behind it are one op: fused_pooling
struct activations {};    // what the backward pass reads again is stored in 16 bits: activations<bfloat16>
struct microbatch {};     // a batch is computed in m parts: microbatch{m}
struct configuration {};  // the policy holds the settings of a run apart from its mathematics: run_config
struct clock {};          // the clock tells the time: system_clock, or a fake one
struct tasks {};          // the task system starts threads, and waits: the operating system's, or a driver
struct connection {};     // the policy says where a session or a training run computes: in_process, connected, ...
struct staleness {};      // the policy orders a cluster's updates: asynchronous, ssp, sync_replicas, all_reduce
struct recovery {};       // the policy says what follows the loss of a parameter server: recovery::roll_back, log
struct file_system {};    // the file system holds the files: posix, or one that forgets
struct operations {};     // the interpreter gets ops of the program's own: ops<&card...>
struct log_sink {};       // the sink receives the lines of a run: warnings, log_lines, ...
struct refused {          // has been refused where it was made; no door says more about it
  static constexpr bool many = true;
};
struct hook {  // the hook is called before, after and around the steps of a run
  static constexpr bool many = true;
};
struct saving_listener {  // the listener is called before and after a run saves
  static constexpr bool many = true;
};
}  // namespace kind

template <class P>
concept policy = requires { typename std::remove_cvref_t<P>::policy_for; };

// A function of the program that turns a step into a number, such as a lambda. It is a schedule as it is.
template <class P>
concept step_function = !policy<P> && requires(const std::remove_cvref_t<P>& f, const std::int64_t& global_step) {
  { f(global_step) } -> std::convertible_to<double>;
};

namespace detail {
template <class Kind, class P>
consteval bool is_of() {
  if constexpr (policy<P>)
    return std::is_same_v<typename std::remove_cvref_t<P>::policy_for, Kind>;
  else if constexpr (std::is_same_v<Kind, kind::schedule>)
    return step_function<P>;
  else
    return false;
}
template <class Kind, class Default, class... Policies>
struct find_policy {
  using type = Default;
};
template <class Kind, class Default, class First, class... Rest>
struct find_policy<Kind, Default, First, Rest...> {
  using type = typename std::conditional_t<is_of<Kind, First>(), std::type_identity<std::decay_t<First>>,
                                           find_policy<Kind, Default, Rest...>>::type;
};
}  // namespace detail

// This is the number of policies of kind `Kind` in the pack.
template <class Kind, class... Policies>
inline constexpr std::size_t policies_of = (std::size_t{0} + ... + std::size_t{detail::is_of<Kind, Policies>()});

// This is the type of the policy of kind `Kind` in the pack, or the default.
template <class Kind, class Default, class... Policies>
using policy_of = typename detail::find_policy<Kind, Default, Policies...>::type;

template <class Kind, class Default>
constexpr Default take_policy() {
  return Default{};
}
template <class Kind, class Default, class First, class... Rest>
constexpr auto take_policy(First&& first, Rest&&... rest) {
  if constexpr (detail::is_of<Kind, First>())
    return std::decay_t<First>(std::forward<First>(first));
  else
    return take_policy<Kind, Default>(std::forward<Rest>(rest)...);
}

// `Kinds` lists the kinds of policies that a function or class takes. This static_assert checks a pack against it, and
// prints one sentence for each mistake before any other error:
//   static_assert(policies_fit<kinds<kind::rule, kind::clip>, Policies...>::value);
template <class... Kinds>
struct kinds {
  template <class P>
  static constexpr bool take = (detail::is_of<Kinds, P>() || ...) || detail::is_of<kind::refused, P>();
};

namespace detail {
template <class Kinds, class... More>
struct join_kinds;
template <class... Kinds, class... More>
struct join_kinds<kinds<Kinds...>, More...> {
  using type = kinds<Kinds..., More...>;
};
}  // namespace detail
// The kinds of another list, and some more.
template <class Kinds, class... More>
using kinds_and = typename detail::join_kinds<Kinds, More...>::type;

namespace detail {
template <class Kind>
concept many_at_once = requires { requires Kind::many; };
// True if two policies have the same kind, and it is one of these kinds, of which a list may have one.
template <class... Policies, class... Kinds>
consteval bool given_twice(const kinds<Kinds...>*) {
  return ((!many_at_once<Kinds> && policies_of<Kinds, Policies...> > 1) || ...);
}

// The message about a policy whose kind is not taken: it names the place where the policy belongs.
template <class P, class Kind>
struct no_policy_of_this_door {
  static_assert(!sizeof(P*),
                "gradus: this policy is not one that is taken here. See the table of policies in README.md.");
};
template <class P>
struct no_policy_of_this_door<P, kind::transform> {
  static_assert(!sizeof(P*),
                "gradus: this policy is not one that is taken here, because it is a part of a chain before its rule; "
                "write chain{weight_decay{0.01}, adam{}}.");
};
template <class P>
struct no_policy_of_this_door<P, kind::follower> {
  static_assert(!sizeof(P*),
                "gradus: this policy is not one that is taken here, because it is a part of a chain after its rule; "
                "write chain{adam{}, lookahead{}}.");
};
template <class P>
struct no_policy_of_this_door<P, kind::arithmetic> {
  static_assert(!sizeof(P*),
                "gradus: this policy is not one that is taken here, because an arithmetic belongs to the device; "
                "make_trainer takes it, or name the device, as updater<cpu<portable>, adam> u{adam{}}.");
};
template <class P>
struct no_policy_of_this_door<P, kind::precision> {
  static_assert(!sizeof(P*),
                "gradus: this policy is not one that is taken here, because mixed_precision rewrites a model's graph; "
                "make_trainer takes it. An updater takes arrays of bfloat or half as they are.");
};
template <class P>
struct no_policy_of_this_door<P, kind::executor> {
  static_assert(!sizeof(P*),
                "gradus: this policy is not one that is taken here, because an executor (serial, threads{n}) runs a "
                "graph; make_trainer, steppers and sessions take it.");
};
template <class P>
struct no_policy_of_this_door<P, kind::configuration> {
  static_assert(!sizeof(P*),
                "gradus: this policy is not one that is taken here, because a run_config configures a trainer; what it "
                "says is said to a supervisor by supervisor_options, its first argument.");
};
template <class P>
struct no_policy_of_this_door<P, kind::microbatch> {
  static_assert(!sizeof(P*),
                "gradus: this policy is not one that is taken here, because microbatch cuts the batches of a trainer; "
                "here accumulate{k} adds up the gradients of k calls.");
};
}  // namespace detail

template <class Kinds, class P>
struct is_a_policy_here {
  static constexpr bool known = policy<P> || step_function<P>;
  static_assert(!step_function<P> || Kinds::template take<P>,
                "gradus: this function of the step is a schedule, and no schedule is taken here. See the table of "
                "policies in README.md.");
  static_assert(known,
                "gradus: this argument is not a policy (a policy has `using policy_for = gradus::kind::...;`). "
                "See the table of policies in README.md.");
  static consteval bool stands_here() {
    if constexpr (policy<P> && !Kinds::template take<P>)
      (void)sizeof(detail::no_policy_of_this_door<P, typename std::remove_cvref_t<P>::policy_for>);
    return known && Kinds::template take<P>;
  }
  static constexpr bool value = stands_here();
};
template <class Kind, class... Policies>
struct at_most_one {
  static constexpr bool many = detail::many_at_once<Kind>;
  static_assert(many || policies_of<Kind, Policies...> <= 1,
                "gradus: two policies of one kind were given (the kind is the first template argument of at_most_one); "
                "keep one.");
  static constexpr bool value = many || policies_of<Kind, Policies...> <= 1;
};
template <class Kinds, class... Policies>
struct policies_fit;
template <class... Kinds, class... Policies>
struct policies_fit<kinds<Kinds...>, Policies...> {
  static constexpr bool value =
      (is_a_policy_here<kinds<Kinds...>, Policies>::value && ...) && (at_most_one<Kinds, Policies...>::value && ...);
};

}  // namespace gradus
