// A chain (update/chain.hpp) has parts besides its rule: they change a gradient before the rule sees it, and the
// variable after. A part has settings and one formula on numbers; everything but the formula is optional:
//
//   struct my_part {
//     using policy_for = gradus::kind::transform;
//     double strength = 0.01;
//
//     constexpr auto slots() const { return std::array{gradus::slot{"m"}}; } // needs a `name` to store them under
//     template <class N> struct constants { N strength; };                         // only members of type N
//     constexpr constants<double> prepare(const gradus::step_info&) const { return {strength}; }
//
//     template <class N>
//     void before(N& theta, N& g, const constants<N>& c, N& m) const {             // kind::transform
//       g = g + c.strength * theta;
//     }
//   };
//
// A part of kind::clip reads the gradient alone, `N clip(N g, const constants<N>& c) const`: at the head of a chain it
// sees each value of a sparse gradient before duplicates are summed, as TensorFlow's clips do. A part of kind::follower
// runs after the rule, on every row: `N after(N theta, const constants<N>& c, N& slot...) const`.
//
// A part that needs norms first, or that treats variables differently, has `measures`, `measure`, `adapt` and
// `selects`, as rules do (update/rule.hpp). With `static constexpr bool global = true` the sums are over all variables.
#pragma once
#include "rule.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
template <class P>
concept is_clip = is_of<kind::clip, P>();
template <class P>
concept is_rule = is_of<kind::rule, P>();
template <class P>
concept is_transform = is_of<kind::transform, P>();
template <class P>
concept is_follower = is_of<kind::follower, P>();
template <class P>
concept is_global = requires { requires P::global; };

template <std::size_t I>
struct no_constants {};
template <class P, class N, std::size_t I>
struct constants_of {
  using type = no_constants<I>;
};
template <has_constants P, class N, std::size_t I>
struct constants_of<P, N, I> {
  using type = typename P::template constants<N>;
};

template <class P, std::size_t... I>
consteval bool can_be_part(std::index_sequence<I...>) {
  using N = any_number;
  using constants = typename constants_of<P, N, 0>::type;
  return requires(const P& p, N x, const constants& c, std::array<N, sizeof...(I) + 1>& s) {
    requires(is_transform<P> && requires { p.before(x, x, c, s[I]...); }) || (is_follower<P> && requires {
              { p.after(x, c, s[I]...) } -> std::same_as<N>;
            }) || (is_clip<P> && requires {
              { p.clip(x, c) } -> std::same_as<N>;
            });
  };
}
}  // namespace detail

template <class P>
concept chain_part = policy<P> && detail::can_be_part<P>(std::make_index_sequence<detail::count_slots<P>()>{});

// The checks of a part, in the order in which a chain reports them.
template <class P>
struct part_fits {
  static constexpr bool known =
      detail::is_clip<P> || detail::is_rule<P> || detail::is_transform<P> || detail::is_follower<P>;
  static constexpr bool by_columns = requires(const P& p) { p.column_scale(1.0, 1.0); };
  static constexpr bool for_groups = requires { requires P::is_for_groups; };
  static constexpr bool value = known && !by_columns && !for_groups && (detail::is_rule<P> || chain_part<P>);
  static constexpr bool no_formula = known && !by_columns && !for_groups && !value;
};

}  // namespace gradus
