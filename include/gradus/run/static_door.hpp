// This header checks the arguments of make_static_stepper (run/static_step.hpp): policies must fit each other, the
// update must need no heap, and the model must compile. Others are refused with a sentence that names the remedy.
#pragma once
#include "../base/build.hpp"

#include <type_traits>

#include "../base/subnormals.hpp"
#include "../update/composed.hpp"
#include "freeze.hpp"
#include "static_layout.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// The checks, in order; the first that refuses is the last that is made.
template <class... Policies>
struct static_batch_is_given {
  static constexpr bool value = policies_of<kind::memory, Policies...> != 0;
  static_assert(value, "gradus: the batch size is not known; add gradus::static_batch<N>{} to the policies.");
};
template <class... Policies>
struct static_rule_is_given {
  static constexpr bool value = policies_of<kind::rule, Policies...> != 0;
  static_assert(value, "gradus: no rule was given; add one, such as gradus::adam{}, to the policies.");
};
template <class... Policies>
using static_policies_fit =
    std::conjunction<policies_fit<kinds_and<update_kinds, kind::memory, kind::gate, kind::precision, kind::arithmetic,
                                            kind::subnormals, kind::recomputation, kind::pooling, kind::activations,
                                            kind::gradient_life, kind::slot_storage, kind::memory_limit>,
                                  Policies...>,
                     static_batch_is_given<Policies...>, static_rule_is_given<Policies...>,
                     one_rule_fits<policy_of<kind::rule, no_rule, Policies...>>,
                     schedule_fits<policy_of<kind::schedule, no_schedule, Policies...>>,
                     clip_fits<policy_of<kind::clip, no_clip, Policies...>>,
                     average_fits<policy_of<kind::average, no_average, Policies...>>>;
// Rules on whole tensors and parts that copy a gradient need memory that only the heap gives.
template <class... Policies>
struct static_update_fits {
  using update = update_among<Policies...>;
  static constexpr bool value = !update::steps_tensors && !update::clips_columns && !update::adds_noise;
  static_assert(value,
                "gradus: this rule, or clip, or noise needs a copy of the gradient, which a static stepper has no room "
                "for; use a trainer, or an elementwise rule.");
};
// Two of the policies of a kind have a reason of their own.
template <class... Policies>
struct static_lives_fit {
  static constexpr bool value =
      !((std::is_same_v<Policies, one_by_one> || ...) && (std::is_same_v<Policies, release_gradients> || ...));
  static_assert(value,
                "gradus: one_by_one adds up the gradients of all examples, which are whole only after the last one, so "
                "release_gradients has none to release; leave one of the two out.");
};
// A policy that needs all gradients at once excludes their release one by one.
template <class... Policies>
inline constexpr bool needs_norm_of_all = update_among<Policies...>::needs_norm;
template <class... Policies>
inline constexpr bool gates_graph = policy_of<kind::gate, gate_op, Policies...>::value == gating::graph;
template <class... Policies>
struct static_release_fits {
  static constexpr bool without_norm = !releases<Policies...> || !needs_norm_of_all<Policies...>;
  static constexpr bool without_gate = !releases<Policies...> || !gates_graph<Policies...>;
  static constexpr bool value = without_norm && without_gate;
  static_assert(without_norm,
                "gradus: release_gradients updates a variable before the other gradients are there, and this clip by "
                "the global norm, loss scale or not_finite needs all of them; leave one of the two out.");
  static_assert(without_gate,
                "gradus: release_gradients updates a variable before the other gradients are there, and gate_graph "
                "waits for all of them; leave one of the two out.");
};
// Whether slots of these policies may be stored as bfloat16, and as int8.
template <class... Policies>
inline constexpr bool updates_numbers = [] {
  using update = update_among<Policies...>;
  return update::uniform && (!update::has_evaluation_copy || update::first_type::has_average);
}();
template <class... Policies>
inline constexpr bool slots_may_be_codes = !computes_variable_from_slots<policy_of<kind::rule, no_rule, Policies...>>;
template <class... Policies>
inline constexpr bool slots_copy_variables = copies_variable<policy_of<kind::rule, no_rule, Policies...>>;
template <class... Policies>
struct static_slots_fit {
  static constexpr dtype type = stored_slot_type<Policies...>;
  static constexpr bool on_numbers = type == float32 || updates_numbers<Policies...>;
  static constexpr bool exact = type != int8 || slots_may_be_codes<Policies...>;
  static constexpr bool no_copy = type == float32 || !slots_copy_variables<Policies...>;
  static constexpr bool value = on_numbers && exact && no_copy;
  static_assert(
      no_copy,
      "gradus: slots<bfloat16> and slots<int8> would round the copies of the weights that a part of this rule "
      "keeps in a slot (lookahead); leave the slots policy out, or that part.");
  static_assert(
      on_numbers,
      "gradus: slots<bfloat16> and slots<int8> take rules on numbers, beside which a clip by the global norm "
      "and an average may stand: no groups, no norms of tensors, no clip by a norm in a chain, no accumulate, no loss "
      "scale, no freeze, no rule that evaluates elsewhere; leave the slots policy out, or them, and give "
      "clip_by_global_norm beside the rule (adam{}, clip_by_global_norm{1}), not in a chain.");
  static_assert(exact,
                "gradus: slots<int8> would round the weights of this rule (ftrl, adagrad_da), which computes them from "
                "its slots alone; use slots<bfloat16>, or another rule.");
};
template <class... Policies>
using static_door_opens =
    std::conjunction<static_lives_fit<Policies...>, static_policies_fit<Policies...>, static_update_fits<Policies...>,
                     static_release_fits<Policies...>, static_slots_fit<Policies...>>;
template <auto Build, class... Policies>
struct static_model_fits
    : std::conditional_t<static_options<mode::predict, Policies...>.one_by_one,
                         std::conjunction<model_fits<Build, static_options<mode::train, Policies...>>,
                                          model_fits<Build, static_options<mode::predict, Policies...>>>,
                         model_fits<Build, static_options<mode::train, Policies...>>> {};
// Slots of 16 and 8 bits are those of whole float32 variables without constraints.
template <class Train>
consteval bool updates_are_plain() {
  for (int i = 0; i < Train::graph.size.nodes; ++i)
    if (const node& n = Train::graph.nodes[i];
        n.op == &cards::apply && (n.attrs != 0 || n.inputs != 2 || n.type != float32))
      return false;
  return true;
}
template <auto Build, class... Policies>
struct static_slots_fit_model {
  static constexpr bool value =
      stored_slot_type<Policies...> == float32 ||
      updates_are_plain<placed_graph<frozen_model<Build, static_options<mode::train, Policies...>>>>();
  static_assert(
      value,
      "gradus: slots<bfloat16> and slots<int8> take variables of float32 without constraints, and no "
      "embeddings, whose gradients come as rows; leave the slots policy out, or the embedding, the constraint "
      "or the other type.");
};
// It has the members that a program uses as constants too, so that the compiler reports only why it was refused.
struct refused_stepper {
  static constexpr std::size_t variable_bytes = 1, memory_bytes = 1;
  static constexpr static_memory memory_parts{};
};

}  // namespace detail

}  // namespace gradus
