// A composition is one update made of a rule and, in any order, the policies beside it:
//
//   gradus::composed update{gradus::adam{}, gradus::clip_by_global_norm{1.0}};
//
// It lists the arrays that are kept beside a variable, computes the constants of a step, and holds the optimizer's own
// state; the device makes the sweep over memory (cpu/sweep.hpp). An update of several rules (multi) has a branch for
// each.
#pragma once
#include "accumulate.hpp"
#include "branches.hpp"
#include "freeze.hpp"
#include "loss_scale.hpp"
#include "mask_check.hpp"
#include "not_finite.hpp"
#include "variations.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
template <class P>
concept of_update =
    is_of<kind::rule, P>() || is_of<kind::schedule, P>() || is_of<kind::clip, P>() || is_of<kind::average, P>() ||
    is_of<kind::freeze, P>() || is_of<kind::accumulation, P>() || is_of<kind::variation, P>() ||
    is_of<kind::noise, P>() || is_of<kind::loss_scale, P>() || is_of<kind::not_finite, P>();
struct no_noise {
  using policy_for = kind::noise;
};
}  // namespace detail

// The kinds of policies that make up an update.
using update_kinds = kinds<kind::rule, kind::schedule, kind::clip, kind::average, kind::freeze, kind::accumulation,
                           kind::variation, kind::noise, kind::loss_scale, kind::not_finite>;

template <class... Policies>
class composed {
  static_assert(policies_fit<update_kinds, Policies...>::value);
  static_assert(!(policy<Policies> && ...) || policies_of<kind::rule, Policies...> != 0,
                "gradus: no rule was given; add one, such as gradus::adam{}, to the policies.");
  using given_rule = policy_of<kind::rule, detail::no_rule, Policies...>;

public:
  using schedule_type = policy_of<kind::schedule, detail::no_schedule, Policies...>;
  using clip_type = policy_of<kind::clip, detail::no_clip, Policies...>;
  using average_type = policy_of<kind::average, detail::no_average, Policies...>;
  using freeze_type = policy_of<kind::freeze, detail::freeze_nothing, Policies...>;
  using accumulation_type = policy_of<kind::accumulation, detail::no_accumulation, Policies...>;
  using noise_type = policy_of<kind::noise, detail::no_noise, Policies...>;
  using loss_scale_type = policy_of<kind::loss_scale, detail::no_loss_scale, Policies...>;
  using not_finite_type = policy_of<kind::not_finite, not_finite::pass, Policies...>;
  static constexpr bool has_schedule = policies_of<kind::schedule, Policies...> != 0;
  static constexpr bool has_average = policies_of<kind::average, Policies...> != 0;
  static constexpr bool accumulates = policies_of<kind::accumulation, Policies...> != 0;
  static constexpr bool scales_loss = policies_of<kind::loss_scale, Policies...> != 0;
  static constexpr bool looks_for_not_finite = not_finite_type::looks, raises_not_finite = not_finite_type::raises;
  static_assert(
      !looks_for_not_finite || !scales_loss,
      "gradus: a loss scale leaves out steps whose gradients are not finite already; keep it, or not_finite.");
  static_assert(!raises_not_finite || !accumulates,
                "gradus: not_finite::raise changes nothing in a step that fails, and accumulate has added the gradient "
                "by then; use not_finite::skip, which drops the sum.");
  static constexpr bool adds_noise = policies_of<kind::noise, Policies...> != 0;
  static constexpr bool varies = policies_of<kind::variation, Policies...> != 0;
  static constexpr bool freezes = policies_of<kind::freeze, Policies...> != 0;
  static_assert(detail::one_rule_fits<given_rule>::value);
  static_assert(schedule_fits<schedule_type>::value && clip_fits<clip_type>::value &&
                average_fits<average_type>::value);

private:
  template <class R>
  static consteval std::size_t longest_part_name() {
    if constexpr (requires { R::longest_name; })
      return R::longest_name;
    else
      return R::name.size();
  }
  using branching = detail::branches_of<given_rule, schedule_type, clip_type, average_type, accumulates || scales_loss>;
  using branch_tuple = typename branching::type;
  template <std::size_t I>
  using branch_type = std::tuple_element_t<I, branch_tuple>;
  using variations_type = detail::variations<branch_tuple, accumulation_type, noise_type, loss_scale_type, Policies...>;
  static_assert(variations_type::finds_all,
                "gradus: vary<&policy::setting> names a setting of a policy that is not part of this update.");
  static_assert(variations_type::one_owner,
                "gradus: the learning rate has two owners: the schedule and vary<&rule::rate>; keep one of the two.");

public:
  // True if steps have different loss scales, so that a gradient can only be divided by the scale of its own step.
  static constexpr bool loss_scale_moves =
      scales_loss && (variations_type::of_loss_scale || !requires { requires loss_scale_type::is_constant; });
  // True if the scale is state that steps move (dynamic_loss_scale), not a constant or a schedule's.
  static constexpr bool loss_scale_is_state = scales_loss && !requires { requires loss_scale_type::is_constant; };

private:
  template <class F>
  static consteval std::size_t largest(F of) {
    return []<class... B>(F f, std::type_identity<std::tuple<B...>>) {
      std::size_t n = 0;
      ((n = f(std::type_identity<B>{}) > n ? f(std::type_identity<B>{}) : n), ...);
      return n;
    }(of, std::type_identity<branch_tuple>{});
  }

public:
  // ---- branches: one, or one for each group of a multi
  static constexpr std::size_t branches = std::tuple_size_v<branch_tuple>;
  using first_type = branch_type<0>;
  using rule_type = typename first_type::rule_type;
  static constexpr std::size_t stages = largest([]<class B>(std::type_identity<B>) { return B::stages; });
  static constexpr std::size_t global_stages = largest([]<class B>(std::type_identity<B>) { return B::global_stages; });
  static constexpr bool steps_tensors = largest([]<class B>(std::type_identity<B>) {
                                          return std::size_t{detail::steps_tensors<typename B::rule_type>};
                                        }) != 0;
  static constexpr bool clips_columns = first_type::clips_columns;
  static constexpr bool may_decay_all_rows =
      largest([]<class B>(std::type_identity<B>) { return std::size_t{B::may_decay_all_rows}; }) != 0;
  static constexpr bool observes =
      largest([]<class B>(std::type_identity<B>) { return std::size_t{B::observes}; }) != 0;
  // True if a step computes some variables from their slots alone, and if some slots begin as copies of the variables.
  static constexpr bool computes_from_slots =
      largest([]<class B>(std::type_identity<B>) {
        return std::size_t{detail::computes_variable_from_slots<typename B::rule_type>};
      }) != 0;
  static constexpr bool weighs_copies = largest([]<class B>(std::type_identity<B>) {
                                          return std::size_t{detail::weighs_copies<typename B::rule_type>};
                                        }) != 0;
  static constexpr bool copies_variables = largest([]<class B>(std::type_identity<B>) {
                                             return std::size_t{detail::begins_as_variable<typename B::rule_type>()};
                                           }) != 0;
  static_assert(
      !clips_columns || global_stages == 0,
      "gradus: adaptive_clip stands beside a chain with clip_by_global_norm, which would measure the gradients "
      "before they are clipped; keep one of the two.");
  // True if every variable takes the same formula and the same constants, so that variables that are neighbours in
  // memory are updated in one sweep.
  static constexpr bool uniform = branches == 1 && stages == 0 && !steps_tensors && !clips_columns && !accumulates &&
                                  !scales_loss && !freezes && !adds_noise;
  static constexpr std::size_t longest_mirror_name = [] {
    std::size_t n = average_type::name.size() > accumulation_type::name.size() ? average_type::name.size()
                                                                               : accumulation_type::name.size();
    return n + largest([]<class B>(std::type_identity<B>) { return longest_part_name<typename B::rule_type>(); });
  }();
  // These are sums over all variables, for each branch.
  using stage_sums = std::array<std::array<double, 8>, branches>;
  static constexpr std::size_t slot_count = largest([]<class B>(std::type_identity<B>) { return B::slot_count; });
  static constexpr std::size_t rule_mirrors = largest([]<class B>(std::type_identity<B>) { return B::mirror_count; });
  static constexpr std::size_t mirror_count = rule_mirrors + accumulates;
  template <class T>
  using constants = typename first_type::template constants<T>;

  // The constructor is inlined, so that the compiler makes the checks of settings that are constants, as in a program
  // for a board.
  [[gnu::always_inline]] explicit constexpr composed(Policies... policies)
      : branches_(branching::make(
            take_policy<kind::rule, given_rule>(policies...), take_policy<kind::schedule, schedule_type>(policies...),
            take_policy<kind::clip, clip_type>(policies...), take_policy<kind::average, average_type>(policies...))),
        rule_(groups_of(take_policy<kind::rule, given_rule>(policies...))),
        variations_(policies...),
        freeze_(take_policy<kind::freeze, freeze_type>(policies...)),
        accumulation_(take_policy<kind::accumulation, accumulation_type>(policies...)),
        noise_(take_policy<kind::noise, noise_type>(policies...)),
        loss_scale_(take_policy<kind::loss_scale, loss_scale_type>(policies...)) {
    each([&]<std::size_t I>() { std::get<I>(branches_).template check_owner<variations_type::template of_rate<I>>(); });
    detail::check_settings(noise_);
    detail::check_settings(freeze_);
    detail::check_settings(accumulation_);
    detail::check_settings(loss_scale_);
    if constexpr (varies) restart();
  }

  first_type& single() { return std::get<0>(branches_); }
  const first_type& single() const { return std::get<0>(branches_); }
  const rule_type& rule() const { return single().rule(); }
  // Calls f(branch, its index as a constant) for branch b.
  template <class F>
  void visit(std::size_t b, F f) {
    each([&]<std::size_t I>() {
      if (I == b) f(std::get<I>(branches_), std::integral_constant<std::size_t, I>{});
    });
  }
  template <class F>
  void visit(std::size_t b, F f) const {
    each([&]<std::size_t I>() {
      if (I == b) f(std::get<I>(branches_), std::integral_constant<std::size_t, I>{});
    });
  }
  // ---- properties of a variable in the update, computed once
  std::size_t branch_of(std::string_view name, const extents& dims) const {
    if constexpr (branches > 1)
      return rule_.group(name, dims);
    else
      return 0;
  }
  std::uint32_t selections_of(std::size_t b, std::string_view name, const extents& dims) const {
    std::uint32_t bits = 0;
    visit(b, [&](const auto& single, auto) { bits = detail::selections_of(single.rule(), name, dims); });
    return bits;
  }
  bool frozen(std::string_view name, const extents& dims) const { return freeze_(name, dims); }
  // The parts of a chain that choose their variables by a mask, one bit each (mask_check.hpp).
  static constexpr bool masks_parts = largest([]<class B>(std::type_identity<B>) {
                                        return std::size_t{detail::masked_parts_of<typename B::rule_type> != 0};
                                      }) != 0;
  std::uint32_t masked_parts_of(std::size_t b) const {
    std::uint32_t bits = 0;
    visit(b, [&]<class B>(const B&, auto) { bits = detail::masked_parts_of<typename B::rule_type>; });
    return bits;
  }

  // The mirrors of a variable of branch b are the rule's slots in order, the average, the accumulated gradient.
  std::array<mirror, mirror_count> mirrors(std::size_t b = 0) const {
    std::array<mirror, mirror_count> all{};
    visit(b, [&](const auto& single, auto) {
      const auto own = single.mirrors();
      for (std::size_t k = 0; k < own.size(); ++k) all[k] = own[k];
    });
    if constexpr (accumulates) all[rule_mirrors] = {"accumulated", accumulation_type::name, 0, 0.0, false};
    return all;
  }
  // True if every mirror has its variable's shape.
  static constexpr bool mirrors_as_variable = branches == 1 && !detail::has_slot_dims<typename first_type::rule_type>;
  // Returns the shape of mirror k, with an extent of 0 where the mirror is not kept.
  extents mirror_dims(std::size_t b, std::size_t k, const extents& variable) const {
    extents dims = variable;
    if (k >= rule_mirrors) return dims;
    visit(b, [&](const auto& single, auto) {
      if (k < single.mirror_count)
        dims = single.mirror_dims(k, variable);
      else
        dims = extents{0};
    });
    return dims;
  }
  static constexpr bool has_evaluation_copy =
      largest([]<class B>(std::type_identity<B>) { return std::size_t{B::has_evaluation_copy}; }) != 0;
  // Returns the mirror that evaluation uses in the variable's place; mirror_count if there is none.
  std::size_t evaluation_mirror(std::size_t b) const {
    std::size_t at = mirror_count;
    visit(b, [&](const auto& single, auto) {
      if (single.has_evaluation_copy) at = single.evaluation_mirror();
    });
    return at;
  }

  // ---- a step, in type T: `prepare` once, then every variable, then `finish`
  // Returns the number of steps of the rule after `global_step` steps of training.
  std::int64_t rule_step(std::int64_t global_step) const { return variations_.rule_step(accumulation_, global_step); }
  // Returns the learning rate of the step that follows `global_step` finished ones (of a multi, that of the first
  // group).
  double rate(std::int64_t global_step) const {
    if constexpr (variations_type::template of_rate<0>)
      return variations_.rate(rule_step(global_step)) * single().rate_factor();
    else
      return single().rate(rule_step(global_step));
  }
  // Sets the settings that follow a schedule to their values in the step that follows `global_step` finished ones.
  // `prepare` calls it too. Call it before any other function of a step (clip_scale, loss_scale).
  void begin([[maybe_unused]] std::int64_t global_step) {
    if constexpr (varies) variations_.set(branches_, accumulation_, noise_, loss_scale_, global_step);
  }
  // Call this after the count of steps has been changed from outside.
  void move_to([[maybe_unused]] std::int64_t global_step) {
    if constexpr (varies) {
      const auto before = rules();
      begin(global_step);
      each([&]<std::size_t I>() { std::get<I>(branches_).pass_varied(std::get<I>(before)); });
    }
  }

  // Call this after state of the step `from` has been put back while the count of steps stays: running products hold
  // the factor of the step that comes, not of the one that came then. It raises nothing, since that step may never be
  // made.
  void stay_at([[maybe_unused]] std::int64_t from, [[maybe_unused]] std::int64_t global_step) {
    if constexpr (varies) {
      variations_.look_ahead(branches_, accumulation_, noise_, loss_scale_, from);
      const auto before = rules();
      variations_.look_ahead(branches_, accumulation_, noise_, loss_scale_, global_step);
      each([&]<std::size_t I>() { std::get<I>(branches_).pass_varied(std::get<I>(before)); });
    }
  }

  static constexpr bool has_clip = first_type::has_clip;
  // True if a step computes nothing in double for its constants.
  static constexpr bool settles = uniform && !varies && first_type::settles;
  static constexpr bool needs_norm =
      requires { requires clip_type::needs_norm; } || scales_loss || looks_for_not_finite || global_stages != 0;
  // Returns the factor for every gradient, given their global norm. Afterwards `skips()` is true if the step is left
  // out.
  double clip_scale(double norm) {
    if constexpr (scales_loss) {
      const double factor = loss_scale_.unscale(norm);
      if (loss_scale_.skips()) return 0;
      return clip_factor(norm * factor) * factor;
    } else {
      if constexpr (looks_for_not_finite) guard_.see_norm(norm);
      return skips() ? 0 : clip_factor(norm);
    }
  }
  double clip_scale(double norm) const
    requires(!scales_loss && !looks_for_not_finite)
  {
    return clip_factor(norm);
  }
  const noise_type& noise() const { return noise_; }
  bool skips() const {
    if constexpr (scales_loss)
      return loss_scale_.skips();
    else
      return guard_.bad;
  }
  // With a not_finite policy, see_loss takes the loss of this step, before clip_scale, and skipped_steps() counts the
  // updates that were left out.
  void see_loss([[maybe_unused]] double value) {
    if constexpr (looks_for_not_finite) guard_.see_loss(value);
  }
  std::int64_t skipped_steps() const { return guard_.skipped; }
  double loss_scale() const { return loss_scale_.value(); }
  // Sets the scale of the next step to that of the owner of the updates.
  void set_loss_scale(double scale) { loss_scale_.scale = scale; }
  // True if this step only adds to the accumulated gradients.
  bool only_accumulates(std::int64_t global_step) const { return variations_.only_adds(accumulation_, global_step); }
  double accumulation_share() const { return accumulation_.share(); }

  // Returns the constants, in T, of the step that follows `global_step` finished ones, where all variables take the
  // same.
  template <class T>
  constants<T> prepare(std::int64_t global_step) {
    begin(global_step);
    return std::as_const(*this).single().template prepare<T, varies>(rule_step(global_step));
  }
  template <class T>
  constants<T> prepare(std::int64_t global_step) const
    requires(!varies)
  {
    return single().template prepare<T, varies>(rule_step(global_step));
  }
  // Returns the constants of every branch, in double; the caller adapts them to each variable.
  using branch_constants = decltype([]<class... B>(std::type_identity<std::tuple<B...>>) {
    return std::tuple<typename B::template constants<double>...>{};
  }(std::type_identity<branch_tuple>{}));
  branch_constants prepare_branches(std::int64_t global_step) {
    begin(global_step);
    branch_constants all{};
    each([&]<std::size_t I>() {
      std::get<I>(all) = std::get<I>(branches_).template prepare<double, varies>(rule_step(global_step));
    });
    return all;
  }

  // Ends a step: call it once per step, after the last variable.
  void finish(std::int64_t global_step) {
    if (only_accumulates(global_step)) {  // gradients of one sum have one loss scale, and no step was left out
      if constexpr (scales_loss) loss_scale_.unscale(1);
      if constexpr (looks_for_not_finite) guard_.bad = false;
      return;
    }
    if constexpr (scales_loss) loss_scale_.finish();
    if constexpr (varies) {
      finish_varied(global_step);
    } else {
      if (skips()) return;
      each([&]<std::size_t I>() { std::get<I>(branches_).finish(rule_step(global_step)); });
    }
  }
  void finish() { finish(0); }

  // Resets the optimizer's own state to that before the first step.
  void restart() {
    begin(0);
    each([&]<std::size_t I>() { std::get<I>(branches_).template restart<varies>(); });
    if constexpr (scales_loss) loss_scale_.restart();
    guard_ = {};
  }
  // Passes a loss or metric to schedules that observe one (reduce_on_plateau).
  void watch(double value) {
    static_assert(watches, "gradus: no schedule of this update watches a value; reduce_on_plateau does.");
    each([&]<std::size_t I>() { std::get<I>(branches_).watch(value); });
  }
  bool observes_other_way(bool higher_is_better) const {
    bool some = false;
    each([&]<std::size_t I>() { some = some || std::get<I>(branches_).observes_other_way(higher_is_better); });
    return some;
  }
  static constexpr bool watches = largest([]<class B>(std::type_identity<B>) {
                                    return std::size_t{observing_schedule<typename B::schedule_type>};
                                  }) != 0;

  // Lists the optimizer's own state; the state of a variable belongs to the owner of the mirrors. State of the second
  // and later groups of a multi has a prefix, such as "group_1/beta1_power".
  template <class List>
  void remembers(List& list) {
    each_listed(list, [](auto& branch, auto& own) { branch.remembers(own); });
    if constexpr (scales_loss) loss_scale_.remembers(list);
    if constexpr (looks_for_not_finite) guard_.remembers(list);
  }
  // Lists the part of it that schedules keep of the values that they observed, under the same names.
  template <class List>
  void remembers_observed(List& list) {
    each_listed(list, [](auto& branch, auto& own) { branch.remembers_observed(own); });
  }

private:
  double clip_factor(double norm) const {
    if constexpr (detail::scales_all<clip_type>)
      return single().clip().scale(norm);
    else
      return 1;
  }
  static auto groups_of(const given_rule& r) {
    if constexpr (branches > 1)
      return r;
    else
      return detail::freeze_nothing{};
  }
  // Calls f(branch, the list with the prefix of its group).
  template <class List, class F>
  void each_listed(List& list, F f) {
    each([&]<std::size_t I>() {
      if constexpr (I == 0) {
        f(std::get<I>(branches_), list);
      } else {
        detail::group_list<List> own{list, I};
        f(std::get<I>(branches_), own);
      }
    });
  }
  template <class F>
  static constexpr void each(F f) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (f.template operator()<I>(), ...);
    }(std::make_index_sequence<branches>{});
  }
  auto rules() const {
    return std::apply([](const auto&... b) { return std::tuple(b.rule()...); }, branches_);
  }
  // Multiplies the products in the running state by the settings of the next step, so that, as for a rule with constant
  // settings, a checkpoint holds the powers of the step to come.
  void finish_varied(std::int64_t global_step) {
    const std::int64_t step = rule_step(global_step);
    const auto done = rules();
    std::array<double, branches> rates{};
    each([&]<std::size_t I>() { rates[I] = std::get<I>(branches_).rate(step); });
    variations_.look_ahead(branches_, accumulation_, noise_, loss_scale_, global_step + 1);
    each([&]<std::size_t I>() {
      if (skips())
        std::get<I>(branches_).pass_varied(std::get<I>(done));
      else
        std::get<I>(branches_).finish_varied(step, std::get<I>(done), rates[I]);
    });
  }

  branch_tuple branches_;
  [[no_unique_address]] decltype(groups_of(std::declval<given_rule>())) rule_;
  [[no_unique_address]] variations_type variations_;
  [[no_unique_address]] freeze_type freeze_;
  [[no_unique_address]] accumulation_type accumulation_;
  [[no_unique_address]] noise_type noise_;
  [[no_unique_address]] loss_scale_type loss_scale_;
  [[no_unique_address]] detail::not_finite_guard<not_finite_type> guard_;
};

namespace detail {
// Returns a tuple of p if p is part of an update, else an empty tuple.
template <class P>
constexpr auto if_of_update(const P& p) {
  if constexpr (of_update<P>)
    return std::tuple<std::decay_t<const P&>>(p);
  else
    return std::tuple<>();
}
// True unless a schedule and a vary<&rule::rate> both set the rate of a branch of the update of these policies.
template <class... Policies>
inline constexpr bool rate_has_one_owner = variations<
    typename branches_of<
        policy_of<kind::rule, no_rule, Policies...>, policy_of<kind::schedule, no_schedule, Policies...>,
        policy_of<kind::clip, no_clip, Policies...>, policy_of<kind::average, no_average, Policies...>, false>::type,
    no_accumulation, no_noise, no_loss_scale, Policies...>::one_owner;
// Picks the policies that make up an update from a list and returns them as `composed`.
template <class... Policies>
constexpr auto compose_update(const Policies&... policies) {
  return std::apply([](const auto&... p) { return composed<std::remove_cvref_t<decltype(p)>...>(p...); },
                    std::tuple_cat(if_of_update(policies)...));
}
// The type of the update that is made of the policies in a list, computed without an object, so that a failed assertion
// of `composed` is reported close to the user's line.
template <class... Policies>
composed<Policies...> composed_of(const std::tuple<Policies...>&);
template <class... Policies>
using update_among =
    decltype(composed_of(std::declval<decltype(std::tuple_cat(if_of_update(std::declval<const Policies&>())...))>()));
}  // namespace detail

}  // namespace gradus
