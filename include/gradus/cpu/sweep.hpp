// This header does an update in one pass over memory: theta, g and the mirrors are read once, and theta and the mirrors
// written once; clip, rule and average are applied in registers. It needs no allocation and no exceptions, and runs on
// any machine.
//
// `p` is a branch of an update (update/single.hpp), `c` its constants for this step (p.prepare<T>(step)), `scale` the
// factor of all gradients as T (ignored without a clip), `mirrors` one pointer per mirror in the order of p.mirrors().
// The formulas use the same numbers everywhere, so exact and padded sweeps, dense ones and sparse ones on all rows, and
// registers of any width give the same bits. cpu/rows.hpp has the rows of a sparse gradient, and cpu/measure.hpp the
// norms that must be known first.
#pragma once
#include "../base/build.hpp"

#include <cmath>
#include <initializer_list>
#include <span>

#include "../update/composed.hpp"
#include "math.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// This holds a step's constants, broadcast to every lane of a register.
template <class N, class Composed>
struct ready_step {
  using T = typename N::value_type;
  typename Composed::rule_type::template constants<N> rule;
  N new_share, scale;
  ready_step(const typename Composed::template constants<T>& c, T s)
      : rule(convert_constants<typename Composed::rule_type, N, T>(c.rule)), new_share(c.new_share), scale(s) {}
};

template <class T, std::size_t Count>
struct mirror_pointers {
  T* at[Count + 1] = {};
  explicit mirror_pointers(T* const* from) {
    for (std::size_t i = 0; i < Count; ++i) at[i] = from[i];
  }
};

enum class extent { whole, partial };

template <class N, extent E>
GRADUS_INLINE N read(const typename N::value_type* p, std::size_t n) {
  if constexpr (E == extent::whole)
    return N::load(p);
  else
    return N::load_partial(p, n);
}
template <extent E, class N>
GRADUS_INLINE void write(N x, typename N::value_type* p, std::size_t n) {
  if constexpr (E == extent::whole)
    x.store(p);
  else
    x.store_partial(p, n);
}

// Applies what is done to a gradient's values one by one: the global clip, then the clips at the head of a chain.
template <class Composed, class N>
GRADUS_INLINE N clipped(const Composed& p, const ready_step<N, Composed>& k, N g) {
  if constexpr (Composed::has_clip) g = g * k.scale;
  if constexpr (requires { p.rule().raw(g, k.rule); }) g = p.rule().raw(g, k.rule);
  return g;
}
template <class Composed>
concept follows_step = requires { requires Composed::rule_type::has_after; };

// lies_beside returns whether slot I lies beside theta, number for number: the slots of a rule on matrices have shapes
// of their own. read_slot returns slot I at element i, or 0 where it does not lie beside theta.
template <class Composed, std::size_t I>
consteval bool lies_beside() {
  using rule = typename Composed::rule_type;
  if constexpr (requires { rule::template matrix_slot<I>; })
    return !rule::template matrix_slot<I>;
  else
    return true;
}
template <std::size_t I, extent E, class Composed, class N>
GRADUS_INLINE N read_slot(const mirror_pointers<typename N::value_type, Composed::mirror_count>& mirrors, std::size_t i,
                          std::size_t n) {
  if constexpr (lies_beside<Composed, I>())
    return read<N, E>(mirrors.at[I] + i, n);
  else
    return N(0);
}

// Updates one register at element i (its first n lanes): reads the slots, calls `f` on theta and them, writes them all,
// and returns the new theta.
template <extent E, class Composed, class N, class F, std::size_t... I>
GRADUS_INLINE N with_slots(typename N::value_type* theta,
                           const mirror_pointers<typename N::value_type, Composed::mirror_count>& mirrors,
                           std::size_t i, std::size_t n, F f, std::index_sequence<I...>) {
  N slot[sizeof...(I) + 1] = {read_slot<I, E, Composed, N>(mirrors, i, n)..., N(0)};
  const N next = f(read<N, E>(theta + i, n), slot[I]...);
  write<E>(next, theta + i, n);
  [[maybe_unused]] const auto keep = [&]<std::size_t K>() {
    if constexpr (lies_beside<Composed, K>()) write<E>(slot[K], mirrors.at[K] + i, n);
  };
  (keep.template operator()<I>(), ...);
  return next;
}

// Calls f(rule) with the rule itself, or with the form of it that its settings choose (ftrl with the root as its
// power). The form is chosen before a loop, so that there is no branch in it.
template <class Composed, class F>
GRADUS_INLINE void in_form(const Composed& p, F f) {
  if constexpr (requires { p.rule().in_form(f); })
    p.rule().in_form(f);
  else
    f(p.rule());
}

// Returns the average after a step. A share of 0 leaves it as it is, also beside a variable that is not finite.
template <class Composed, class N>
GRADUS_INLINE N averaged(N shadow, N next, N share) {
  return select(share == N(0), shadow, Composed::average_type::follow(shadow, next, share));
}

// Runs the rule at element i and, with `Follow`, what follows it and the average. With `Rest`, this is a row without a
// gradient.
template <extent E, bool Follow, bool Rest = false, class N, class Composed, class Rule, std::size_t... I>
GRADUS_INLINE void step_at(const Rule& rule, const ready_step<N, Composed>& k, typename N::value_type* theta, N g,
                           const mirror_pointers<typename N::value_type, Composed::mirror_count>& mirrors,
                           std::size_t i, std::size_t n, std::index_sequence<I...> slots) {
  const N next = with_slots<E, Composed, N>(
      theta, mirrors, i, n,
      [&](N at, auto&... slot) {
        N to = at;
        if constexpr (Rest && requires { rule.rest(at, k.rule, slot...); })
          to = rule.rest(at, k.rule, slot...);
        else
          to = rule.step(at, g, k.rule, slot...);
        if constexpr (Follow && follows_step<Composed>) to = rule.after(to, k.rule, slot...);
        return to;
      },
      slots);
  if constexpr (Follow && Composed::has_average) {
    auto* shadow = mirrors.at[Composed::slot_count] + i;
    write<E>(averaged<Composed>(read<N, E>(shadow, n), next, k.new_share), shadow, n);
  }
}

// Calls f.operator()<extent>(i, n) for every register of n elements.
template <class N, class F>
GRADUS_INLINE void for_registers(std::size_t n, F f) {
  std::size_t i = 0;
  for (; i + N::width <= n; i += N::width) f.template operator()<extent::whole>(i, std::size_t{0});
  if constexpr (N::width != 1)
    if (i < n) f.template operator()<extent::partial>(i, n - i);
}

}  // namespace detail

// Sweeps a dense gradient of exactly n elements: nothing outside them is touched.
template <class A, class T, class Composed, class N = detail::pack<T, A>>
void sweep(const Composed& p, const typename Composed::template constants<T>& c, T scale, T* theta, const T* g,
           T* const* mirrors, std::size_t n) {
  const detail::ready_step<N, Composed> k(c, scale);
  const detail::mirror_pointers<T, Composed::mirror_count> m(mirrors);
  constexpr auto slots = std::make_index_sequence<Composed::slot_count>{};
  // Inlining is forced, since -Os would leave calls that read each pointer through a closure at every element.
  detail::in_form(
      p, [&](const auto& rule) __attribute__((always_inline)) {
        detail::for_registers<N>(
            n, [&]<detail::extent E>(std::size_t i, std::size_t left) __attribute__((always_inline)) {
              const N own = detail::clipped(p, k, detail::read<N, E>(g + i, left));
              detail::step_at<E, true>(rule, k, theta, own, m, i, left, slots);
            });
      });
}

// Does the same as sweep where each of `columns` columns has a factor of its own: g[row, j] * factors[j] (unit-wise
// clips).
template <class A, class T, class Composed, class N = detail::pack<T, A>>
void sweep_columns(const Composed& p, const typename Composed::template constants<T>& c, T scale, const T* factors,
                   std::size_t columns, T* theta, const T* g, T* const* mirrors, std::size_t n) {
  const detail::ready_step<N, Composed> k(c, scale);
  const detail::mirror_pointers<T, Composed::mirror_count> m(mirrors);
  constexpr auto slots = std::make_index_sequence<Composed::slot_count>{};
  for (std::size_t row = 0; row < n; row += columns)
    detail::for_registers<N>(columns, [&]<detail::extent E>(std::size_t j, std::size_t left) {
      const N own = detail::read<N, E>(g + row + j, left) * detail::read<N, E>(factors + j, left);
      detail::step_at<E, true>(p.rule(), k, theta, detail::clipped(p, k, own), m, row + j, left, slots);
    });
}

// Sweeps a dense gradient with every array padded to 64 bytes, in whole registers only. The padding is read and
// written; what it holds afterwards means nothing (a rule may turn zeros into NaN there).
template <class A, class T, class Composed, class N = detail::pack<T, A>>
void sweep_padded(const Composed& p, const typename Composed::template constants<T>& c, T scale, T* theta, const T* g,
                  T* const* mirrors, std::size_t n) {
  sweep<A, T, Composed, N>(p, c, scale, theta, g, mirrors, (n + N::width - 1) / N::width * N::width);
}

namespace detail {
// Runs what comes after the rule in a pass of its own: where the rule touched rows only, or whole tensors.
template <class A, class T, class Composed, class N = pack<T, A>>
void follow(const Composed& p, const typename Composed::template constants<T>& c, T* theta, T* const* mirrors,
            std::size_t n) {
  if constexpr (follows_step<Composed> || Composed::has_average) {
    const ready_step<N, Composed> k(c, T(1));
    const mirror_pointers<T, Composed::mirror_count> m(mirrors);
    for_registers<N>(n, [&]<extent E>(std::size_t i, std::size_t left) {
      if constexpr (follows_step<Composed>)
        with_slots<E, Composed, N>(
            theta, m, i, left, [&](N at, auto&... slot) { return p.rule().after(at, k.rule, slot...); },
            std::make_index_sequence<Composed::slot_count>{});
      if constexpr (Composed::has_average) {
        T* const shadow = m.at[Composed::slot_count] + i;
        write<E>(averaged<Composed>(read<N, E>(shadow, left), read<N, E>(theta + i, left), k.new_share), shadow, left);
      }
    });
  }
}
// Runs what comes before a rule on tensors in a pass of its own: to[i] is the gradient that the rule sees.
template <class A, class T, class Composed, class N = pack<T, A>>
void before(const Composed& p, const typename Composed::template constants<T>& c, T scale, T* theta, const T* g,
            T* const* mirrors, std::size_t n, T* to) {
  const ready_step<N, Composed> k(c, scale);
  const mirror_pointers<T, Composed::mirror_count> m(mirrors);
  for_registers<N>(n, [&]<extent E>(std::size_t i, std::size_t left) {
    N own = clipped(p, k, read<N, E>(g + i, left));
    if constexpr (requires { requires Composed::rule_type::has_before; })
      with_slots<E, Composed, N>(
          theta, m, i, left,
          [&](N at, auto&... slot) {
            p.rule().before(at, own, k.rule, slot...);
            return at;
          },
          std::make_index_sequence<Composed::slot_count>{});
    write<E>(own, to + i, left);
  });
}
// Runs a rule's second observation (sophia's curvature), which moves slots, not theta.
template <class A, class T, class Composed, class N = pack<T, A>>
void observe(const Composed& p, const typename Composed::template constants<T>& c, T* theta, const T* estimate,
             T* const* mirrors, std::size_t n) {
  const ready_step<N, Composed> k(c, T(1));
  const mirror_pointers<T, Composed::mirror_count> m(mirrors);
  for_registers<N>(n, [&]<extent E>(std::size_t i, std::size_t left) {
    with_slots<E, Composed, N>(
        theta, m, i, left,
        [&](N at, auto&... slot) {
          p.rule().observe(read<N, E>(estimate + i, left), k.rule, slot...);
          return at;
        },
        std::make_index_sequence<Composed::slot_count>{});
  });
}
}  // namespace detail

// Adds g to sum.
template <class A, class T, class N = detail::pack<T, A>>
void add_to(T* sum, const T* g, std::size_t n) {
  detail::for_registers<N>(n, [&]<detail::extent E>(std::size_t i, std::size_t left) {
    detail::write<E>(detail::read<N, E>(sum + i, left) + detail::read<N, E>(g + i, left), sum + i, left);
  });
}

}  // namespace gradus
