// A chain is a rule made of transformations and one rule, applied one after the other:
//
//   gradus::chain{gradus::clip_by_value{-1, 1}, gradus::weight_decay{0.01, gradus::matrices{}}, gradus::adam{}}
//
// The gradient passes through the parts in the given order, then the rule makes its step, then the followers
// (lookahead) run. A chain is a rule, so it can be used wherever a rule can: in an updater, a trainer, a group of
// `multi`, or another chain (which then takes over its parts). Parts that work element by element share one sweep over
// memory, however many there are; a part that needs a norm first costs one more read.
#pragma once
#include "../base/build.hpp"

#include <tuple>

#include "part_list.hpp"
#include "vary.hpp"

namespace gradus::inline GRADUS_BUILD {

template <class List>
class chain;

namespace detail {

// ---- chains in chains
template <class P>
auto flat_part(P p) {
  return std::tuple<P>(std::move(p));
}
template <class List>
auto flat_part(const chain<List>& c) {
  return c.parts();
}
template <class T>
inline constexpr bool is_tuple = false;
template <class... Parts>
inline constexpr bool is_tuple<std::tuple<Parts...>> = true;

template <class... Parts>
constexpr auto flat_parts(const Parts&... parts) {
  return std::tuple_cat(flat_part(parts)...);
}
template <class Tuple>
struct list_of;
template <class... Parts>
struct list_of<std::tuple<Parts...>> {
  using type = part_list<Parts...>;
};

// This is the placeholder for a missing rule.
struct no_rule {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "no rule";
  std::optional<double> rate = {};
  template <class N>
  struct constants {
    N rate;
  };
  constexpr constants<double> prepare(const step_info&) const { return {0}; }
  template <class N>
  N step(N theta, N, const constants<N>&) const {
    return theta;
  }
};

template <class Rule>
struct default_rate_of {};
template <class Rule>
  requires requires { Rule::default_rate; }
struct default_rate_of<Rule> {
  static constexpr double default_rate = Rule::default_rate;
};

}  // namespace detail

template <class... Parts>
class chain<part_list<Parts...>> : public detail::default_rate_of<policy_of<kind::rule, detail::no_rule, Parts...>> {
  // These assertions check a chain. They are here and not in a class of their own, since the compiler prints every
  // instantiation between an assertion and the user's line.
  using fits = detail::chain_fits<Parts...>;
  static_assert((part_fits<Parts>::known && ...),
                "gradus: this policy is no part of a chain; a chain takes clips, transforms (weight_decay), one rule, "
                "then followers (lookahead). Schedules, averages, accumulation, noise, freeze and loss scale stand "
                "beside the chain.");
  static_assert(!(part_fits<Parts>::for_groups || ...),
                "gradus: a multi is no part of a chain, since each of its groups has a rule; put a chain into each "
                "group, multi{on{mask, chain{clip, adam{}}}, adam{}}, or a clip beside: updater{multi{...}, clip}.");
  static_assert(!(part_fits<Parts>::by_columns || ...),
                "gradus: adaptive_clip is no part of a chain, since it needs the norms of all columns first; it stands "
                "beside the chain: updater{chain{...}, adaptive_clip{0.01}}.");
  static_assert(
      !(part_fits<Parts>::no_formula || ...),
      "gradus: this part of a chain has no formula; add `template <class N> void before(N& theta, N& g, const "
      "constants<N>& c, N& slot...) const` (kind::transform), `N clip(N g, const constants<N>& c) const` "
      "(kind::clip) or `N after(N theta, const constants<N>& c, N& slot...) const` (kind::follower).");
  static_assert(!fits::parts || fits::rules == 1,
                "gradus: a chain has exactly one rule, such as gradus::adam{}; rules for different variables stand in "
                "gradus::multi.");
  static_assert(!fits::parts || fits::rules != 1 || fits::in_order(),
                "gradus: the parts of a chain are in the wrong order; clips and transforms come before the rule, "
                "followers such as lookahead after it.");
  using layout = detail::chain_layout<Parts...>;
  static constexpr std::size_t count = sizeof...(Parts), rule_at = layout::first(layout::rules, true) % count;
  template <std::size_t I>
  using part = typename layout::template part<I>;
  template <std::size_t I>
  static constexpr std::size_t first_slot = layout::sum(layout::slots, I);
  template <std::size_t I>
  static constexpr std::size_t first_shared = layout::sum(layout::shared, I);

public:
  using policy_for = kind::rule;
  using rule_type = policy_of<kind::rule, detail::no_rule, Parts...>;
  static constexpr std::string_view name = rule_type::name;
  static constexpr bool copies_variable = (detail::copies_variable<Parts> || ...);

  static constexpr std::size_t longest_name = [] {
    std::size_t n = 0;
    const auto take = [&]<class P>(std::type_identity<P>) {
      if constexpr (detail::has_name<P>) n = P::name.size() > n ? P::name.size() : n;
    };
    (take(std::type_identity<Parts>{}), ...);
    return n;
  }();

  // A tuple is excluded: LLVM's standard library checks whether a chain that is an element of a tuple can be made from
  // that tuple, and would then not copy the chain.
  template <class... Given>
    requires(!detail::is_tuple<Given> && ...)
  explicit chain(const Given&... given) : parts_(detail::flat_parts(given...)), rate(rule().rate) {}

  const std::tuple<Parts...>& parts() const { return parts_; }
  // A cluster serializes a chain with these two functions.
  const std::tuple<Parts...>& sent_as() const { return parts_; }
  static chain from_sent(const std::tuple<Parts...>& parts) {
    return std::apply([](const auto&... p) { return chain(p...); }, parts);
  }
  const rule_type& rule() const { return std::get<rule_type>(parts_); }

private:
  std::tuple<Parts...> parts_;

public:
  std::optional<double> rate;  // the rule's

  // ---- what is kept beside a variable: the parts' slots in order
  static constexpr std::size_t slot_count = (std::size_t{0} + ... + detail::count_slots<Parts>());
  auto slots() const
    requires(slot_count != 0)
  {
    std::array<slot, slot_count> all{};
    each([&]<std::size_t I>() {
      if constexpr (detail::has_slots<part<I>>) {
        const auto own = std::get<I>(parts_).slots();
        for (std::size_t k = 0; k < own.size(); ++k) {
          all[first_slot<I> + k] = own[k];
          if (own[k].owner.empty()) all[first_slot<I> + k].owner = part<I>::name;
        }
      }
    });
    return all;
  }
  // True if slot I belongs to a rule on matrices: it has its own shape, and the other parts do not see it.
  template <std::size_t I>
  static constexpr bool matrix_slot = detail::steps_tensors<rule_type> && I >= first_slot<rule_at> &&
                                      I < first_slot<rule_at> + detail::count_slots<rule_type>();
  extents slot_dims(std::size_t i, const extents& variable) const
    requires(detail::has_slot_dims<Parts> || ...)
  {
    extents dims = variable;
    each([&]<std::size_t I>() {
      if constexpr (detail::has_slot_dims<part<I>>)
        if (i - first_slot<I> < detail::count_slots<part<I>>())
          dims = std::get<I>(parts_).slot_dims(i - first_slot<I>, variable);
    });
    return dims;
  }
  static constexpr auto shared_names = [] {
    std::array<std::string_view, (std::size_t{0} + ... + detail::count_shared<Parts>())> all{};
    std::size_t at = 0;
    const auto take = [&]<class P>(std::type_identity<P>) {
      if constexpr (detail::has_shared<P>)
        for (const auto& n : P::shared_names) all[at++] = n;
    };
    (take(std::type_identity<Parts>{}), ...);
    return all;
  }();
  using shared = std::array<double, shared_names.size()>;
  shared start() const {
    shared all{};
    each([&]<std::size_t I>() {
      if constexpr (detail::has_shared<part<I>>) put<I>(all, std::get<I>(parts_).start());
    });
    return all;
  }
  void finish(shared& all, const step_info& at, const chain& done) const {
    each_shared(all, [&]<std::size_t I>(auto& own) {
      detail::finish_shared(std::get<I>(parts_), own, at, std::get<I>(done.parts_));
    });
  }
  void exchange(const chain& skipped, shared& all) const {
    each_shared(all, [&]<std::size_t I>(auto& own) {
      detail::exchange_factors(std::get<I>(parts_), std::get<I>(skipped.parts_), own);
    });
  }
  void take_zeros(shared& all) const {
    each_shared(all, [&]<std::size_t I>(auto& own) { detail::take_zeros(std::get<I>(parts_), own); });
  }
  void leave_zeros(const shared& before, shared& all) const {
    each_shared(all,
                [&]<std::size_t I>(auto& own) { detail::leave_zeros(std::get<I>(parts_), shared_at<I>(before), own); });
  }
  void check() const {
    each([&]<std::size_t I>() { detail::check_settings(std::get<I>(parts_)); });
  }
  // These settings follow a schedule (update/vary.hpp).
  template <class Owner>
  static constexpr bool has_part = (std::is_base_of_v<Owner, Parts> || ...);
  template <class Owner>
  void set(const setting<Owner>& what, double x) {
    each([&]<std::size_t I>() { detail::set_in(std::get<I>(parts_), what, x); });
    rate = rule().rate;
  }

  // ---- constants
  template <class N>
  using constants = detail::chained_constants<N, 0, Parts...>;
  constants<double> prepare(const step_info& at, const shared& all) const {
    constants<double> c{};
    each([&]<std::size_t I>() {
      if constexpr (detail::prepares_shared<part<I>>)
        detail::constants_at<I>(c) = std::get<I>(parts_).prepare(at, shared_at<I>(all));
      else if constexpr (detail::has_constants<part<I>>)
        detail::constants_at<I>(c) = std::get<I>(parts_).prepare(at);
    });
    return c;
  }

  // ---- norms that are measured first: a stage for each part that adapts
  static constexpr std::size_t stages = layout::stages(count), global_stages = layout::global_stages();
  template <std::size_t Stage>
  static constexpr std::size_t measures_of = detail::count_measures<part<layout::part_of_stage(Stage)>>();
  template <std::size_t Stage>
  static constexpr bool stage_is_global = layout::global[layout::part_of_stage(Stage)];
  // True if the stage measures single values, before the duplicates of a sparse gradient are summed.
  template <std::size_t Stage>
  static constexpr bool stage_is_raw = layout::part_of_stage(Stage) < layout::first(layout::clips, false);

  template <std::size_t Stage, class N, class... Slots>
  auto measure(N theta, N g, const constants<N>& c, const Slots&... slots) const {
    constexpr std::size_t at = layout::part_of_stage(Stage);
    std::tuple<Slots...> copies(slots...);
    each([&]<std::size_t I>() {
      if constexpr (I < at && detail::is_clip<part<I>> && (I >= raw_parts || at < raw_parts))
        g = std::get<I>(parts_).clip(g, detail::constants_at<I>(c));
      else if constexpr (I < at && detail::is_transform<part<I>>)
        with_slots<I>(copies,
                      [&](auto&... own) { std::get<I>(parts_).before(theta, g, detail::constants_at<I>(c), own...); });
    });
    return with_slots<at>(copies, [&](const auto&... own) {
      return std::get<at>(parts_).measure(theta, g, detail::constants_at<at>(c), own...);
    });
  }
  template <std::size_t Stage>
  constants<double> adapt(constants<double> c, const subject& about, std::span<const double> sums) const {
    constexpr std::size_t at = layout::part_of_stage(Stage);
    subject own = about;
    own.selected = (about.selections >> at & 1u) != 0;
    detail::constants_at<at>(c) = std::get<at>(parts_).adapt(detail::constants_at<at>(c), own, sums);
    return c;
  }
  static constexpr std::uint32_t masked_parts = []<std::size_t... I>(std::index_sequence<I...>) {
    return (0u | ... | (detail::is_transform<part<I>> && detail::has_selects<part<I>> ? 1u << I : 0u));
  }(std::make_index_sequence<count>{});
  std::uint32_t selections(std::string_view variable, const extents& dims) const {
    std::uint32_t bits = 0;
    each([&]<std::size_t I>() {
      if constexpr (detail::has_selects<part<I>>) bits |= std::get<I>(parts_).selects(variable, dims) ? 1u << I : 0u;
    });
    return bits;
  }

  // ---- a step
  // The number of clips at the head of the chain; they see the single values of a sparse gradient, before duplicates
  // are summed.
  static constexpr std::size_t raw_parts = layout::first(layout::clips, false);
  template <class N>
  N raw(N g, const constants<N>& c) const
    requires(raw_parts != 0)
  {
    each([&]<std::size_t I>() {
      if constexpr (I < raw_parts) g = std::get<I>(parts_).clip(g, detail::constants_at<I>(c));
    });
    return g;
  }
  // True if other parts come before the rule; `before` runs them.
  static constexpr bool has_before = ((detail::is_transform<Parts> || ...) ||
                                      (std::size_t{0} + ... + std::size_t{detail::is_clip<Parts>}) != raw_parts);
  template <class N, class... Slots>
  void before(N& theta, N& g, const constants<N>& c, Slots&... slots) const {
    auto all = std::tie(slots...);
    each([&]<std::size_t I>() {
      if constexpr (I >= raw_parts && detail::is_clip<part<I>>)
        g = std::get<I>(parts_).clip(g, detail::constants_at<I>(c));
      else if constexpr (detail::is_transform<part<I>>)
        with_slots<I>(all,
                      [&](auto&... own) { std::get<I>(parts_).before(theta, g, detail::constants_at<I>(c), own...); });
    });
  }
  template <class N, class... Slots>
  N step(N theta, N g, const constants<N>& c, Slots&... slots) const
    requires(!detail::steps_tensors<rule_type>)
  {
    before(theta, g, c, slots...);
    auto all = std::tie(slots...);
    return with_slots<rule_at>(
        all, [&](auto&... own) { return rule().step(theta, g, detail::constants_at<rule_at>(c), own...); });
  }
  template <class T, class Math>
  void step_tensor(const tensor_step<T>& t, const constants<double>& c) const
    requires(detail::steps_tensors<rule_type>)
  {
    tensor_step<T> own = t;
    own.slots = t.slots.subspan(first_slot<rule_at>, detail::count_slots<rule_type>());
    rule().template step_tensor<T, Math>(own, detail::constants_at<rule_at>(c));
  }
  std::size_t scratch(const extents& dims) const
    requires requires(const rule_type& r) { r.scratch(dims); }
  {
    return rule().scratch(dims);
  }
  static constexpr bool has_after = (detail::is_follower<Parts> || ...);
  template <class N, class... Slots>
  N after(N theta, const constants<N>& c, Slots&... slots) const
    requires(has_after)
  {
    auto all = std::tie(slots...);
    each([&]<std::size_t I>() {
      if constexpr (detail::is_follower<part<I>>)
        theta = with_slots<I>(
            all, [&](auto&... own) { return std::get<I>(parts_).after(theta, detail::constants_at<I>(c), own...); });
    });
    return theta;
  }
  bool decays_all_rows() const
    requires requires(const rule_type& r) { r.decays_all_rows(); }
  {
    return rule().decays_all_rows();
  }
  // Updates a row without a gradient: only the rule runs, not the other parts.
  template <class N, class... Slots>
  N rest(N theta, const constants<N>& c, Slots&... slots) const {
    auto all = std::tie(slots...);
    return with_slots<rule_at>(all, [&](auto&... own) {
      const auto& k = detail::constants_at<rule_at>(c);
      if constexpr (requires { rule().rest(theta, k, own...); })
        return rule().rest(theta, k, own...);
      else
        return rule().step(theta, N(0), k, own...);
    });
  }
  template <class N, class... Slots>
  void observe(N estimate, const constants<N>& c, Slots&... slots) const
    requires(detail::has_observe<rule_type>)
  {
    auto all = std::tie(slots...);
    with_slots<rule_at>(all, [&](auto&... own) { rule().observe(estimate, detail::constants_at<rule_at>(c), own...); });
  }

private:
  template <class F>
  static constexpr void each(F f) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (f.template operator()<I>(), ...);
    }(std::make_index_sequence<count>{});
  }
  // Calls f.operator()<I>(own) with the numbers of each part that has some in the shared state.
  template <class F>
  static void each_shared(shared& all, F f) {
    each([&]<std::size_t I>() {
      if constexpr (detail::has_shared<part<I>>) {
        auto own = shared_at<I>(all);
        f.template operator()<I>(own);
        put<I>(all, own);
      }
    });
  }
  template <std::size_t I, class All, class F>
  static decltype(auto) with_slots(All& all, F f) {
    return [&]<std::size_t... K>(std::index_sequence<K...>) -> decltype(auto) {
      return f(std::get<first_slot<I> + K>(all)...);
    }(std::make_index_sequence<detail::count_slots<part<I>>()>{});
  }
  template <std::size_t I>
  static auto shared_at(const shared& all) {
    detail::shared_of<part<I>> own{};
    for (std::size_t k = 0; k < own.size(); ++k) own[k] = all[first_shared<I> + k];
    return own;
  }
  template <std::size_t I>
  static void put(shared& all, const detail::shared_of<part<I>>& own) {
    for (std::size_t k = 0; k < own.size(); ++k) all[first_shared<I> + k] = own[k];
  }
};

template <class... Parts>
chain(const Parts&...)
    -> chain<typename detail::list_of<decltype(detail::flat_parts(std::declval<const Parts&>()...))>::type>;

}  // namespace gradus
