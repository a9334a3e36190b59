// The rule concept: how a gradient becomes a step. A rule is settings, what it remembers by name, and one formula on
// numbers, which serves every width of register, dense arrays and gathered rows:
//
//   struct my_rule {
//     using policy_for = gradus::kind::rule;
//     static constexpr std::string_view name = "MyRule";     // in checkpoints: <variable>/MyRule, <variable>/MyRule_1
//     std::optional<double> rate = {};                        // unset: default_rate, or a schedule
//     static constexpr double default_rate = 0.01;            // leave it out if the user must give one
//     double decay = 0.9;                                     // every other setting, with its default
//
//     constexpr auto slots() const { return std::array{gradus::slot{"m", 0.0}}; }   // one array each, like the
//     variable template <class N> struct constants { N rate, decay; };                    // only members of type N
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
// State of the optimizer rather than of a variable (Adam's powers of beta) is a few doubles: name them in
// `shared_names`, start them with `start()`, take them as second argument of `prepare`, and advance them in
// `finish(shared&)`, which runs once per step, after every variable.
//
// A rule that also moves rows without a gradient (Adam as TensorFlow's kernels run it) says so with
// `bool decays_all_rows() const`; the formula then sees g = 0 for the others.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "../base/contract.hpp"

namespace gradus {

// An array that a rule keeps beside each variable, of its shape and type.
struct slot {
  std::string_view name;
  double initial = 0.0;
};

// What `prepare` may depend on.
struct step_info {
  std::int64_t global_step = 0;  // steps finished before this one
  double rate = 0.0;             // the learning rate of this step
};

namespace detail {

// What a number does, declared only: rules are checked against it before a device gives them real numbers.
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
  r.finish(s);
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
template <class R>
concept has_step = can_step<R>(std::make_index_sequence<count_slots<R>()>{});

}  // namespace detail

template <class R>
concept update_rule = policy<R> && std::is_same_v<typename R::policy_for, kind::rule> && detail::has_name<R> &&
                      detail::has_rate<R> && detail::prepares<R> && detail::has_step<R>;

// The error page of a rule.
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
