// The rule concept says how a gradient becomes a step. A rule has settings, named state, and one formula on numbers,
// which serves every register width, dense arrays and gathered rows:
//
//   struct my_rule {
//     using policy_for = gradus::kind::rule;
//     static constexpr std::string_view name = "MyRule";     // in checkpoints: <variable>/MyRule, <variable>/MyRule_1
//     std::optional<double> rate = {};                        // unset: default_rate, or a schedule
//     static constexpr double default_rate = 0.01;            // leave it out if the user must give one
//     double decay = 0.9;                                     // every other setting, with its default
//
//     constexpr auto slots() const { return std::array{gradus::slot{"m", 0.0}}; }  // arrays shaped like the variable
//     template <class N> struct constants { N rate, decay; };                      // only members of type N
//     constexpr constants<double> prepare(const gradus::step_info& at) const { return {at.rate, decay}; }
//
//     template <class N>
//     N step(N theta, N g, const constants<N>& c, N& m) const {  // a reference per slot, in the order of slots()
//       m = c.decay * m + g;
//       return theta - c.rate * m;
//     }
//   };
//
// `prepare` runs once per step in double; its result is rounded once to the type of the variable. Formulas use + - * /
// and the functions of numbers (sqrt, abs, max, select, ...), unqualified. Leave slots() out if there are none.
//
// State that belongs to the optimizer and not to a variable (Adam's powers of beta) consists of a few doubles: name
// them in `shared_names`, return their initial values from `start()`, take them as the second argument of `prepare`,
// and advance them in `finish(shared&)`, or `finish(shared&, const step_info&)`, which runs once per step, after the
// last variable. If settings follow a schedule, `finish` runs with those of the next step; `finish(shared&, const
// step_info&, const my_rule& done)` also receives those of the finished step. `powers()` names the settings whose
// products are kept (update/vary.hpp).
//
// A rule that also moves rows without a gradient (Adam as TensorFlow's kernels run it) returns true from `bool
// decays_all_rows() const`; for those rows `N rest(N theta, const constants<N>& c, N& slot...) const` then runs, or, if
// the rule has none, the formula with g = 0.
//
// The ranges in `settings()` (update/setting.hpp) are checked when the optimizer is made, and at each step for settings
// that follow a schedule. `void check() const`, which raises for conditions that no range expresses, runs at the same
// times.
//
// A rule that treats each tensor differently has `constants<double> adapt(const constants<double>& c, const subject&
// about, std::span<const double> sums) const`. With `static constexpr std::size_t measures = k` and `template <class N>
// std::array<N, k> measure(N theta, N g, const constants<N>& c, const N& slot...) const` `sums` are the sums of
// `measure` over the tensor, such as norms that must be known before the step; they cost one more read of the tensor
// (update/rules/lamb.hpp).
//
// A rule on matrices, which no formula on single numbers can express, has instead of `step`
//   template <class T, class Math> void step_tensor(const tensor_step<T>& t, const constants<double>& c) const;
// It also has `extents slot_dims(std::size_t i, const extents& variable) const` if the shape of its slots is not the
// variable's, and `std::size_t scratch(const extents&) const`, in elements, if it needs scratch memory
// (update/rules/muon.hpp).
#pragma once
#include "../base/build.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "../base/contract.hpp"
#include "../base/shape.hpp"
#include "setting.hpp"

namespace gradus::inline GRADUS_BUILD {

// An array that a rule keeps beside each variable, of its shape and type.
struct slot {
  std::string_view name;
  double initial = 0.0;
  bool starts_as_variable = false;  // initially a copy of the variable instead
  std::string_view owner = {};      // the optimizer whose name it carries in checkpoints; empty: the rule's
};

// The arguments on which `prepare` may depend.
struct step_info {
  std::int64_t global_step = 0;  // steps finished before this one
  double rate = 0.0;             // the learning rate of this step
};

// The variable that a step is about.
struct subject {
  std::string_view name;
  extents dims;
  std::size_t size = 0;
  bool sparse = false;           // its gradient in this step comes as rows
  bool selected = false;         // what `bool selects(std::string_view name, const extents&) const` returned for it
  std::uint32_t selections = 0;  // the same for each part of a chain, one bit each
};

// The whole of a variable, for rules on matrices. Its slots are in the order of slots(); a slot that is not kept is
// empty.
template <class T>
struct tensor_step {
  std::string_view name;
  extents dims;
  std::span<T> theta;
  std::span<const T> g;
  std::span<const std::span<T>> slots;
  std::span<T> scratch;
};

namespace detail {

// Declares the operations of a number without defining them: rules are checked against them at compile time, before a
// device supplies real numbers.
struct any_number {
  any_number();
  any_number(double);
  static any_number of(double);
  friend any_number operator+(any_number, any_number);
  friend any_number operator-(any_number, any_number);
  friend any_number operator*(any_number, any_number);
  friend any_number operator/(any_number, any_number);
  friend any_number operator-(any_number);
  friend bool operator<(any_number, any_number);
  friend bool operator>(any_number, any_number);
  friend bool operator<=(any_number, any_number);
  friend bool operator>=(any_number, any_number);
  friend bool operator==(any_number, any_number);
  friend any_number select(bool, any_number, any_number);
  friend any_number min(any_number, any_number);
  friend any_number max(any_number, any_number);
  friend any_number fma(any_number, any_number, any_number);
  friend any_number copysign(any_number, any_number);
  friend any_number pow(any_number, any_number);
  friend any_number sqrt(any_number);
  friend any_number abs(any_number);
  friend any_number sign(any_number);
  friend any_number exp(any_number);
  friend any_number log(any_number);
  friend any_number tanh(any_number);
};

// True for a rule or a part that declares it: a slot of it is a copy of the variable.
template <class R>
inline constexpr bool copies_variable = requires { requires R::copies_variable; };
// True if a slot of the rule begins as its variable, also where a rule of a program's own does not declare it; the
// parts of a chain have to.
template <class R>
consteval bool begins_as_variable() {
  if constexpr (requires { R::copies_variable; }) {
    return R::copies_variable;
  } else if constexpr (requires { typename std::bool_constant<(R{}.slots(), true)>; }) {
    for (const slot& s : R{}.slots())
      if (s.starts_as_variable) return true;
  }
  return false;
}
// True for a rule that weighs its copies of the variable by the steps behind them (schedule_free_adamw), also in a
// chain.
template <class R>
inline constexpr bool weighs_copies = [] {
  if constexpr (requires { typename R::rule_type; })  // a chain
    return weighs_copies<typename R::rule_type>;
  else
    return requires { R::evaluates_at; };
}();
// True for a rule that computes its variable from the slots alone, which it declares: what else is written into the
// variable has no effect, and rounded slots would mean rounded variables.
template <class R>
inline constexpr bool computes_variable_from_slots = [] {
  if constexpr (requires { typename R::rule_type; })  // a chain
    return computes_variable_from_slots<typename R::rule_type>;
  else
    return requires { requires R::variable_from_slots; };
}();
template <class R>
concept has_slots = requires(const R& r) { r.slots().size(); };
template <class R>
consteval std::size_t count_slots() {
  if constexpr (has_slots<R>)
    return std::tuple_size_v<decltype(std::declval<const R&>().slots())>;
  else
    return 0;
}
template <class R>
concept has_shared = requires { R::shared_names.size(); };
template <class R>
consteval std::size_t count_shared() {
  if constexpr (has_shared<R>)
    return std::tuple_size_v<std::remove_cvref_t<decltype(R::shared_names)>>;
  else
    return 0;
}
template <class R>
using shared_of = std::array<double, count_shared<R>()>;

template <class R>
concept has_name = requires { std::string_view{R::name}; };
template <class R>
concept has_rate = requires(const R& r) {
  { r.rate } -> std::convertible_to<std::optional<double>>;
};
template <class R>
concept has_constants = requires { typename R::template constants<double>; };
template <class R>
concept prepares_alone = requires(const R& r, const step_info& at) {
  { r.prepare(at) } -> std::same_as<typename R::template constants<double>>;
};
template <class R>
concept prepares_shared = requires(const R& r, const step_info& at, shared_of<R>& s) {
  { r.prepare(at, s) } -> std::same_as<typename R::template constants<double>>;
  { r.start() } -> std::convertible_to<shared_of<R>>;
  requires requires { r.finish(s); } || requires { r.finish(s, at); } || requires { r.finish(s, at, r); };
};
template <class R>
concept prepares = prepares_alone<R> || prepares_shared<R>;

template <class R, std::size_t... I>
consteval bool can_step(std::index_sequence<I...>) {
  using N = any_number;
  if constexpr (has_constants<R>)
    return requires(const R& r, N x, const typename R::template constants<N>& c, std::array<N, sizeof...(I) + 1>& s) {
      { r.step(x, x, c, s[I]...) } -> std::same_as<N>;
    };
  else
    return false;
}
// This places no requirement on Math: the rule uses it as it likes.
struct any_math {};
template <class R>
concept steps_tensors =
    requires(const R& r, const tensor_step<double>& t, const typename R::template constants<double>& c) {
      r.template step_tensor<double, any_math>(t, c);
    };
template <class R>
concept has_step = steps_tensors<R> || can_step<R>(std::make_index_sequence<count_slots<R>()>{});

// ---- what a rule, or a part of a chain, may have
template <class R, std::size_t... I>
consteval bool can_observe(std::index_sequence<I...>) {
  using N = any_number;
  return requires(const R& r, N x, const typename R::template constants<N>& c, std::array<N, sizeof...(I) + 1>& s) {
    r.observe(x, c, s[I]...);
  };
}
// True if the rule takes a second observation beside the gradient (sophia's curvature).
template <class R>
concept has_observe = can_observe<R>(std::make_index_sequence<count_slots<R>()>{});
template <class R>
concept has_selects = requires(const R& r, std::string_view name, const extents& dims) {
  { r.selects(name, dims) } -> std::convertible_to<bool>;
};
template <class R>
concept has_slot_dims = requires(const R& r, const extents& dims) {
  { r.slot_dims(std::size_t{}, dims) } -> std::convertible_to<extents>;
};
template <class R>
concept has_adapt = has_constants<R> && requires(const R& r, const typename R::template constants<double>& c,
                                                 const subject& about, std::span<const double> sums) {
  { r.adapt(c, about, sums) } -> std::same_as<typename R::template constants<double>>;
};
template <class R>
consteval std::size_t count_measures() {
  if constexpr (requires { R::measures; })
    return R::measures;
  else
    return 0;
}
// Returns the number of stages: a chain adapts stage by stage, a rule has one stage or none. See update/composed.hpp.
template <class R>
consteval std::size_t count_stages() {
  if constexpr (requires { R::stages; })
    return R::stages;
  else
    return has_adapt<R> ? 1 : 0;
}
template <class R, std::size_t I>
consteval std::size_t stage_measures() {
  if constexpr (requires { R::stages; })
    return R::template measures_of<I>;
  else
    return count_measures<R>();
}
// Returns the number of leading stages whose sums run over all variables, before the first variable is updated.
template <class R>
consteval std::size_t count_global_stages() {
  if constexpr (requires { R::global_stages; })
    return R::global_stages;
  else
    return 0;
}
template <class R>
constexpr void finish_shared(const R& r, shared_of<R>& s, const step_info& at, const R& done) {
  if constexpr (requires { r.finish(s, at, done); })
    r.finish(s, at, done);
  else if constexpr (requires { r.finish(s, at); })
    r.finish(s, at);
  else
    r.finish(s);
}
// Returns the constants with each member converted from From to To.
template <class R, class To, class From>
[[gnu::always_inline]] constexpr typename R::template constants<To> convert_constants(
    const typename R::template constants<From>& from) {
  constexpr std::size_t n = sizeof(from) / sizeof(From);
  static_assert(sizeof(typename R::template constants<To>) == n * sizeof(To),
                "gradus: `constants<N>` of a rule may only have members of type N.");
  const auto in = std::bit_cast<std::array<From, n>>(from);
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::bit_cast<typename R::template constants<To>>(std::array<To, n>{static_cast<To>(in[I])...});
  }(std::make_index_sequence<n>{});
}
template <std::size_t I, class R, class N, class... Slots>
auto measure_stage(const R& r, N theta, N g, const typename R::template constants<N>& c, const Slots&... slots) {
  if constexpr (requires { R::stages; })
    return r.template measure<I>(theta, g, c, slots...);
  else
    return r.measure(theta, g, c, slots...);
}
template <std::size_t I, class R>
auto adapt_stage(const R& r, const typename R::template constants<double>& c, const subject& about,
                 std::span<const double> sums) {
  if constexpr (requires { R::stages; })
    return r.template adapt<I>(c, about, sums);
  else
    return r.adapt(c, about, sums);
}
// The parts of a chain that choose their variables by a mask, as bits of what selections_of returns.
template <class R>
inline constexpr std::uint32_t masked_parts_of = 0;
template <class R>
  requires requires { R::masked_parts; }
inline constexpr std::uint32_t masked_parts_of<R> = R::masked_parts;
template <class R>
std::uint32_t selections_of(const R& r, std::string_view name, const extents& dims) {
  if constexpr (requires { r.selections(name, dims); })
    return r.selections(name, dims);
  else if constexpr (has_selects<R>)
    return r.selects(name, dims) ? 1u : 0u;
  else
    return 0u;
}

}  // namespace detail

template <class R>
concept update_rule = policy<R> && std::is_same_v<typename R::policy_for, kind::rule> && detail::has_name<R> &&
                      detail::has_rate<R> && detail::prepares<R> && detail::has_step<R>;

// Checks a rule at compile time and reports what it lacks.
template <class R>
struct rule_fits {
  static_assert(detail::has_name<R>,
                "gradus: this rule has no name; add `static constexpr std::string_view name = \"MyRule\";`, which its "
                "slots carry in checkpoints.");
  static_assert(
      detail::has_rate<R>,
      "gradus: this rule has no rate; add `std::optional<double> rate = {};`, so that a schedule can own it.");
  static_assert(!detail::has_name<R> || !detail::has_rate<R> || detail::prepares<R>,
                "gradus: this rule has no constants; add `template <class N> struct constants { N rate; };` and "
                "`constants<double> prepare(const gradus::step_info& at) const` (with shared_names, also start, finish "
                "and a second argument `const std::array<double, n>&`).");
  static_assert(!detail::has_name<R> || !detail::has_rate<R> || !detail::prepares<R> || detail::has_step<R>,
                "gradus: this rule has no step; add `template <class N> N step(N theta, N g, const constants<N>& c, "
                "N& slot...) const`, with one N& for each of slots().");
  static constexpr bool value = update_rule<R>;
};

}  // namespace gradus
