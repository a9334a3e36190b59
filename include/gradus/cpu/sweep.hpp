// An update in one pass over memory: theta, g and the mirrors are read once, and theta and the mirrors written once;
// clip, rule and average meet in registers. No allocation, no exceptions but the check of row numbers, any machine.
//
// `p` is a composed update (update/composed.hpp), `c` its constants for this step (p.prepare<T>(global_step)), `scale` its
// clip_scale as T (ignored without a clip), `mirrors` one pointer per mirror in the order of p.mirrors(). The formulas
// use the same numbers everywhere, so exact and padded, dense and sparse on all rows, any register, give the same bits.
#pragma once
#include <cmath>
#include <initializer_list>
#include <span>

#include "../update/composed.hpp"
#include "number.hpp"

namespace gradus {

namespace detail {

// A step's constants in every place of a register.
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

// What is done to a gradient's values one by one: the global clip, then the clips at the head of a chain.
template <class Composed, class N>
GRADUS_INLINE N clipped(const Composed& p, const ready_step<N, Composed>& k, N g) {
  if constexpr (Composed::has_clip) g = g * k.scale;
  if constexpr (requires { p.rule().raw(g, k.rule); }) g = p.rule().raw(g, k.rule);
  return g;
}
template <class Composed>
concept follows_step = requires { requires Composed::rule_type::has_after; };

// One register at element i (its first n places): the slots read, `f` on theta and them, all written.
template <extent E, class N, std::size_t Count, class F, std::size_t... I>
GRADUS_INLINE N with_slots(typename N::value_type* theta, const mirror_pointers<typename N::value_type, Count>& mirrors,
                           std::size_t i, std::size_t n, F f, std::index_sequence<I...>) {
  N slot[sizeof...(I) + 1] = {read<N, E>(mirrors.at[I] + i, n)..., N(0)};
  const N next = f(read<N, E>(theta + i, n), slot[I]...);
  write<E>(next, theta + i, n);
  (write<E>(slot[I], mirrors.at[I] + i, n), ...);
  return next;
}

// The rule at element i; what follows it and the average if asked for. `Rest`: a row without a gradient.
template <extent E, bool Follow, bool Rest = false, class N, class Composed, std::size_t... I>
GRADUS_INLINE void step_at(const Composed& p, const ready_step<N, Composed>& k, typename N::value_type* theta, N g,
                           const mirror_pointers<typename N::value_type, Composed::mirror_count>& mirrors,
                           std::size_t i, std::size_t n, std::index_sequence<I...> slots) {
  const N next = with_slots<E, N>(
      theta, mirrors, i, n,
      [&](N at, auto&... slot) {
        N to = at;
        if constexpr (Rest && requires { p.rule().rest(at, k.rule, slot...); })
          to = p.rule().rest(at, k.rule, slot...);
        else
          to = p.rule().step(at, g, k.rule, slot...);
        if constexpr (Follow && follows_step<Composed>) to = p.rule().after(to, k.rule, slot...);
        return to;
      },
      slots);
  if constexpr (Follow && Composed::has_average) {
    auto* shadow = mirrors.at[Composed::slot_count] + i;
    write<E>(Composed::average_type::follow(read<N, E>(shadow, n), next, k.new_share), shadow, n);
  }
}

// f.operator()<extent>(i, n) for every register of n elements.
template <class N, class F>
GRADUS_INLINE void for_registers(std::size_t n, F f) {
  std::size_t i = 0;
  for (; i + N::width <= n; i += N::width) f.template operator()<extent::whole>(i, std::size_t{0});
  if (i < n) f.template operator()<extent::partial>(i, n - i);
}

}  // namespace detail

// Dense, n elements exactly: nothing outside them is touched.
template <class A, class T, class Composed, class N = pack<T, A>>
void sweep(const Composed& p, const typename Composed::template constants<T>& c, T scale, T* theta, const T* g,
           T* const* mirrors, std::size_t n) {
  const detail::ready_step<N, Composed> k(c, scale);
  const detail::mirror_pointers<T, Composed::mirror_count> m(mirrors);
  constexpr auto slots = std::make_index_sequence<Composed::slot_count>{};
  detail::for_registers<N>(n, [&]<detail::extent E>(std::size_t i, std::size_t left) {
    detail::step_at<E, true>(p, k, theta, detail::clipped(p, k, detail::read<N, E>(g + i, left)), m, i, left, slots);
  });
}

// As sweep, where each of `columns` has a factor of its own: g[row, j] * factors[j] (unit-wise clips).
template <class A, class T, class Composed, class N = pack<T, A>>
void sweep_columns(const Composed& p, const typename Composed::template constants<T>& c, T scale, const T* factors,
                   std::size_t columns, T* theta, const T* g, T* const* mirrors, std::size_t n) {
  const detail::ready_step<N, Composed> k(c, scale);
  const detail::mirror_pointers<T, Composed::mirror_count> m(mirrors);
  constexpr auto slots = std::make_index_sequence<Composed::slot_count>{};
  for (std::size_t row = 0; row < n; row += columns)
    detail::for_registers<N>(columns, [&]<detail::extent E>(std::size_t j, std::size_t left) {
      const N own = detail::read<N, E>(g + row + j, left) * detail::read<N, E>(factors + j, left);
      detail::step_at<E, true>(p, k, theta, detail::clipped(p, k, own), m, row + j, left, slots);
    });
}

// Dense, with every array padded to 64 bytes: whole registers only. The padding is read and written; what it holds
// afterwards means nothing (a rule may turn zeros into NaN there).
template <class A, class T, class Composed, class N = pack<T, A>>
void sweep_padded(const Composed& p, const typename Composed::template constants<T>& c, T scale, T* theta, const T* g,
                  T* const* mirrors, std::size_t n) {
  sweep<A, T, Composed, N>(p, c, scale, theta, g, mirrors, (n + N::width - 1) / N::width * N::width);
}

// What comes after the rule, in a pass of its own: where the rule touched rows only, or whole tensors.
template <class A, class T, class Composed, class N = pack<T, A>>
void follow(const Composed& p, const typename Composed::template constants<T>& c, T* theta, T* const* mirrors,
            std::size_t n) {
  if constexpr (detail::follows_step<Composed> || Composed::has_average) {
    const detail::ready_step<N, Composed> k(c, T(1));
    const detail::mirror_pointers<T, Composed::mirror_count> m(mirrors);
    detail::for_registers<N>(n, [&]<detail::extent E>(std::size_t i, std::size_t left) {
      using detail::read, detail::write;
      if constexpr (detail::follows_step<Composed>)
        detail::with_slots<E, N>(
            theta, m, i, left, [&](N at, auto&... slot) { return p.rule().after(at, k.rule, slot...); },
            std::make_index_sequence<Composed::slot_count>{});
      if constexpr (Composed::has_average) {
        T* const shadow = m.at[Composed::slot_count] + i;
        write<E>(Composed::average_type::follow(read<N, E>(shadow, left), read<N, E>(theta + i, left), k.new_share),
                 shadow, left);
      }
    });
  }
}

// What comes before a rule on tensors, in a pass of its own: to[i] is the gradient that the rule sees.
template <class A, class T, class Composed, class N = pack<T, A>>
void before(const Composed& p, const typename Composed::template constants<T>& c, T scale, T* theta, const T* g,
            T* const* mirrors, std::size_t n, T* to) {
  const detail::ready_step<N, Composed> k(c, scale);
  const detail::mirror_pointers<T, Composed::mirror_count> m(mirrors);
  detail::for_registers<N>(n, [&]<detail::extent E>(std::size_t i, std::size_t left) {
    N own = detail::clipped(p, k, detail::read<N, E>(g + i, left));
    if constexpr (requires { requires Composed::rule_type::has_before; })
      detail::with_slots<E, N>(
          theta, m, i, left,
          [&](N at, auto&... slot) {
            p.rule().before(at, own, k.rule, slot...);
            return at;
          },
          std::make_index_sequence<Composed::slot_count>{});
    detail::write<E>(own, to + i, left);
  });
}

// A rule's second observation (sophia's curvature): moves slots, not theta.
template <class A, class T, class Composed, class N = pack<T, A>>
void observe(const Composed& p, const typename Composed::template constants<T>& c, T* theta, const T* estimate,
             T* const* mirrors, std::size_t n) {
  const detail::ready_step<N, Composed> k(c, T(1));
  const detail::mirror_pointers<T, Composed::mirror_count> m(mirrors);
  detail::for_registers<N>(n, [&]<detail::extent E>(std::size_t i, std::size_t left) {
    detail::with_slots<E, N>(
        theta, m, i, left,
        [&](N at, auto&... slot) {
          p.rule().observe(detail::read<N, E>(estimate + i, left), k.rule, slot...);
          return at;
        },
        std::make_index_sequence<Composed::slot_count>{});
  });
}

// sums[k] += the k-th of what `at(element, places)` measures, over n elements: sixteen lanes in blocks of 4096 places,
// the blocks added in double, in order.
namespace detail {
template <class N, std::size_t K, class Measure>
void add_measures(std::size_t n, double* sums, Measure at) {
  using T = typename N::value_type;
  for (std::size_t from = 0; from < n; from += reduction_chunk) {
    const std::size_t end = n - from < reduction_chunk ? n : from + reduction_chunk;
    block<N> total[K];
    for (auto& b : total) b = block<N>::fill(T(0));
    for (std::size_t i = from; i < end; i += block<N>::lanes)
      for (std::size_t j = 0; j < block<N>::packs && i + j * N::width < end; ++j) {
        const std::size_t here = i + j * N::width, left = end - here;
        std::array<N, K> m;
        if (left >= N::width) {
          m = at.template operator()<extent::whole>(here, std::size_t{0});
        } else {  // places beyond the end count nothing, whatever the measure makes of zeros
          m = at.template operator()<extent::partial>(here, left);
          alignas(64) T places[N::width];
          for (auto& x : m) x.store(places), x = N::load_partial(places, left);
        }
        for (std::size_t k = 0; k < K; ++k) total[k].at[j] = total[k].at[j] + m[k];
      }
    for (std::size_t k = 0; k < K; ++k) sums[k] += static_cast<double>(total[k].fold(plus{}));
  }
}
template <class Composed, std::size_t Stage>
concept measures_raw = requires { requires Composed::rule_type::template stage_is_raw<Stage>; };

template <std::size_t Stage, extent E, class N, class Composed, std::size_t... I>
GRADUS_INLINE auto measure_at(const Composed& p, const ready_step<N, Composed>& k, const typename N::value_type* theta,
                              N g, const mirror_pointers<typename N::value_type, Composed::mirror_count>& mirrors,
                              std::size_t i, std::size_t n, std::index_sequence<I...>) {
  return measure_stage<Stage>(p.rule(), read<N, E>(theta + i, n), g, k.rule, read<N, E>(mirrors.at[I] + i, n)...);
}
}  // namespace detail

// sums += what stage `Stage` of the rule must know of this variable (update/rule.hpp), from one read.
template <std::size_t Stage, class A, class T, class Composed, class N = pack<T, A>>
void measure(const Composed& p, const typename Composed::template constants<T>& c, T scale, const T* theta, const T* g,
             T* const* mirrors, std::size_t n, double* sums) {
  const detail::ready_step<N, Composed> k(c, scale);
  const detail::mirror_pointers<T, Composed::mirror_count> m(mirrors);
  constexpr auto slots = std::make_index_sequence<Composed::slot_count>{};
  constexpr std::size_t measures = detail::stage_measures<typename Composed::rule_type, Stage>();
  detail::add_measures<N, measures>(n, sums, [&]<detail::extent E>(std::size_t i, std::size_t left) {
    N own = detail::read<N, E>(g + i, left);
    if constexpr (detail::measures_raw<Composed, Stage>) {
      if constexpr (Composed::has_clip) own = own * k.scale;
    } else {
      own = detail::clipped(p, k, own);
    }
    return detail::measure_at<Stage, E>(p, k, theta, own, m, i, left, slots);
  });
}
// The same of the values of a sparse gradient, duplicates one by one: for clips at the head, which see nothing else.
template <std::size_t Stage, class A, class T, class Composed, class N = pack<T, A>>
void measure_values(const Composed& p, const typename Composed::template constants<T>& c, T scale, const T* values,
                    std::size_t n, double* sums) {
  const detail::ready_step<N, Composed> k(c, scale);
  constexpr std::size_t measures = detail::stage_measures<typename Composed::rule_type, Stage>();
  detail::add_measures<N, measures>(n, sums, [&]<detail::extent E>(std::size_t i, std::size_t left) {
    N own = detail::read<N, E>(values + i, left);
    if constexpr (Composed::has_clip) own = own * k.scale;
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return detail::measure_stage<Stage>(p.rule(), N(0), own, k.rule, ((void)I, N(0))...);
    }(std::make_index_sequence<Composed::slot_count>{});
  });
}

// The rows of a sparse gradient, duplicates chained: the distinct rows in order of first occurrence, and for each the
// positions of its values in order of arrival.
struct row_chains {
  std::span<const std::int32_t> table, first, next;  // first[d]: position of row d's first value; next[position] or -1
  std::size_t distinct = 0;
  int shift = 0;

  // How many int32 of scratch n rows need.
  static constexpr std::size_t scratch(std::size_t n) { return n == 0 ? 0 : std::bit_ceil(2 * n) + 3 * n; }
  std::size_t bucket(std::uint64_t row) const {
    return static_cast<std::size_t>(row * 0x9E3779B97F4A7C15u >> shift) & (table.size() - 1);
  }
  // Position of the first value of `row`, or -1.
  template <class Index>
  std::int32_t find(const Index* rows, std::int64_t row) const {
    if (table.empty()) return -1;
    for (std::size_t b = bucket(static_cast<std::uint64_t>(row));; b = (b + 1) & (table.size() - 1)) {
      if (table[b] < 0) return -1;
      const std::int32_t position = first[static_cast<std::size_t>(table[b])];
      if (rows[position] == row) return position;
    }
  }
};

// Every row number must be in [0, row_count); nothing has been changed when this raises.
template <class Index>
void check_rows(const Index* rows, std::size_t n, std::size_t row_count) {
  if (n > (std::size_t{1} << 29))
    raise(status::invalid_argument, "a sparse gradient has at most 2^29 rows, this one has ", n);
  for (std::size_t i = 0; i < n; ++i)
    if (rows[i] < 0 || static_cast<std::uint64_t>(rows[i]) >= row_count)
      raise(status::invalid_argument, "Index ", rows[i], " at offset ", i, " in indices is out of range; expected [0, ",
            row_count, "), the rows of the variable. Nothing was changed");
}

// Chains n checked rows in `scratch`, which must hold row_chains::scratch(n) numbers and live as long as the result.
template <class Index>
row_chains chain_rows(const Index* rows, std::size_t n, std::span<std::int32_t> scratch) {
  row_chains chains;
  if (n == 0) return chains;
  const std::size_t size = std::bit_ceil(2 * n);
  const auto table = scratch.first(size), first = scratch.subspan(size, n), last = scratch.subspan(size + n, n),
             next = scratch.subspan(size + 2 * n, n);
  chains.table = table, chains.first = first, chains.next = next, chains.shift = 64 - std::countr_zero(size);
  for (auto& t : table) t = -1;
  for (std::size_t i = 0; i < n; ++i) {
    const auto position = static_cast<std::int32_t>(i);
    next[i] = -1;
    for (std::size_t b = chains.bucket(static_cast<std::uint64_t>(rows[i]));; b = (b + 1) & (size - 1)) {
      if (table[b] < 0) {
        table[b] = static_cast<std::int32_t>(chains.distinct);
        first[chains.distinct] = last[chains.distinct] = position;
        ++chains.distinct;
        break;
      }
      const auto d = static_cast<std::size_t>(table[b]);
      if (rows[first[d]] == rows[i]) {
        next[static_cast<std::size_t>(last[d])] = position;
        last[d] = position;
        break;
      }
    }
  }
  return chains;
}

namespace detail {
// The gradient of one row at element j: the sum of its values from `position` on (none: -1), each clipped.
template <extent E, class N, class Composed>
GRADUS_INLINE N row_gradient(const Composed& p, const ready_step<N, Composed>& k, const typename N::value_type* values,
                             const row_chains& chains, std::int32_t position, std::size_t width, std::size_t j,
                             std::size_t n) {
  if (position < 0) return N(0);
  const auto value = [&](std::int32_t at) {
    return clipped(p, k, read<N, E>(values + static_cast<std::size_t>(at) * width + j, n));
  };
  N g = value(position);
  for (auto at = chains.next[static_cast<std::size_t>(position)]; at >= 0;
       at = chains.next[static_cast<std::size_t>(at)])
    g = g + value(at);
  return g;
}
// One row: its gradient, then the rule.
template <bool Rest, class N, class Composed>
void step_row(const Composed& p, const ready_step<N, Composed>& k,
              const ready_step<lane<typename N::value_type, typename N::policy>, Composed>& one,
              typename N::value_type* theta, const typename N::value_type* values, const row_chains& chains,
              std::int32_t position, const mirror_pointers<typename N::value_type, Composed::mirror_count>& mirrors,
              std::size_t row, std::size_t width) {
  constexpr auto slots = std::make_index_sequence<Composed::slot_count>{};
  const auto step = [&]<extent E, class M>(const ready_step<M, Composed>& ready, std::size_t j, std::size_t n) {
    step_at<E, false, Rest>(p, ready, theta, row_gradient<E>(p, ready, values, chains, position, width, j, n), mirrors,
                            row * width + j, n, slots);
  };
  std::size_t j = 0;
  for (; j + N::width <= width; j += N::width) step.template operator()<extent::whole>(k, j, 0);
  if (const std::size_t rest = width - j; rest > 2)
    step.template operator()<extent::partial>(k, j, rest);
  else  // one or two elements are quicker one by one
    for (; j < width; ++j) step.template operator()<extent::whole>(one, j, 0);
}
}  // namespace detail

// Sparse: theta is [row_count, width], values is [n, width], and value i belongs to row rows[i], checked. Values of one
// row are summed in order of arrival, then the rule runs once per distinct row; other rows stay, unless the rule decays
// all rows. What comes after the rule is not part of this pass: call `follow`.
template <class A, class T, class Composed, class Index, class N = pack<T, A>>
void sweep_rows(const Composed& p, const typename Composed::template constants<T>& c, T scale, T* theta,
                T* const* mirrors, std::size_t row_count, std::size_t width, const Index* rows, const T* values,
                std::size_t n, std::span<std::int32_t> scratch) {
  const detail::ready_step<N, Composed> k(c, scale);
  const detail::ready_step<lane<T, A>, Composed> one(c, scale);
  const detail::mirror_pointers<T, Composed::mirror_count> m(mirrors);
  const row_chains chains = chain_rows(rows, n, scratch);
  if (Composed::may_decay_all_rows && p.decays_all_rows()) {
    for (std::size_t row = 0; row < row_count; ++row) {
      const std::int32_t position = chains.find(rows, static_cast<std::int64_t>(row));
      if (position >= 0)
        detail::step_row<false>(p, k, one, theta, values, chains, position, m, row, width);
      else if constexpr (Composed::may_decay_all_rows)
        detail::step_row<true>(p, k, one, theta, values, chains, position, m, row, width);
    }
  } else {
    for (std::size_t d = 0; d < chains.distinct; ++d) {
      const std::int32_t position = chains.first[d];
      detail::step_row<false>(p, k, one, theta, values, chains, position, m, static_cast<std::size_t>(rows[position]),
                              width);
    }
  }
}

// sums += what stage `Stage` must know, over the distinct rows of a sparse gradient, row after row.
template <std::size_t Stage, class A, class T, class Composed, class Index, class N = pack<T, A>>
void measure_rows(const Composed& p, const typename Composed::template constants<T>& c, T scale, const T* theta,
                  T* const* mirrors, std::size_t width, const Index* rows, const T* values, std::size_t n,
                  std::span<std::int32_t> scratch, double* sums) {
  const detail::ready_step<N, Composed> k(c, scale);
  const detail::mirror_pointers<T, Composed::mirror_count> m(mirrors);
  constexpr auto slots = std::make_index_sequence<Composed::slot_count>{};
  constexpr std::size_t measures = detail::stage_measures<typename Composed::rule_type, Stage>();
  const row_chains chains = chain_rows(rows, n, scratch);
  for (std::size_t d = 0; d < chains.distinct; ++d) {
    const std::int32_t position = chains.first[d];
    const std::size_t base = static_cast<std::size_t>(rows[position]) * width;
    detail::add_measures<N, measures>(width, sums, [&]<detail::extent E>(std::size_t j, std::size_t left) {
      return detail::measure_at<Stage, E>(p, k, theta,
                                          detail::row_gradient<E>(p, k, values, chains, position, width, j, left), m,
                                          base + j, left, slots);
    });
  }
}

// to += values at their rows, in order; `to` is [row_count, width], rows checked.
template <class T, class Index>
void add_rows(T* to, const T* values, const Index* rows, std::size_t n, std::size_t width) {
  for (std::size_t i = 0; i < n; ++i) {
    T* const row = to + static_cast<std::size_t>(rows[i]) * width;
    for (std::size_t j = 0; j < width; ++j) row[j] += values[i * width + j];
  }
}
// sum += g.
template <class A, class T, class N = pack<T, A>>
void add_to(T* sum, const T* g, std::size_t n) {
  detail::for_registers<N>(n, [&]<detail::extent E>(std::size_t i, std::size_t left) {
    detail::write<E>(detail::read<N, E>(sum + i, left) + detail::read<N, E>(g + i, left), sum + i, left);
  });
}
// Column sums of squares of a row-major [n / columns, columns], in T, row after row.
template <class A, class T, class N = pack<T, A>>
void column_squares(const T* x, std::size_t n, std::size_t columns, T* sums) {
  for (std::size_t j = 0; j < columns; ++j) sums[j] = T(0);
  for (std::size_t row = 0; row < n; row += columns)
    detail::for_registers<N>(columns, [&]<detail::extent E>(std::size_t j, std::size_t left) {
      const N v = detail::read<N, E>(x + row + j, left);
      detail::write<E>(fma(v, v, detail::read<N, E>(sums + j, left)), sums + j, left);
    });
}

// sqrt of the sum of squares over all arrays; the arrays' sums are added in the order given, in double. 0 for none.
template <class A, class T>
double global_norm(std::initializer_list<std::span<const T>> arrays) {
  double total = 0;
  for (const auto& x : arrays) total += static_cast<double>(sum_of_squares<A>(x.data(), x.size()));
  return std::sqrt(total);
}

// What a device offers an updater.
template <class A>
struct sweeps {
  template <class T, class Composed>
  static void sweep(const Composed& p, const typename Composed::template constants<T>& c, T scale, T* theta, const T* g,
                    T* const* mirrors, std::size_t n) {
    gradus::sweep<A, T>(p, c, scale, theta, g, mirrors, n);
  }
  template <class T, class Composed>
  static void sweep_columns(const Composed& p, const typename Composed::template constants<T>& c, T scale,
                            const T* factors, std::size_t columns, T* theta, const T* g, T* const* mirrors,
                            std::size_t n) {
    gradus::sweep_columns<A, T>(p, c, scale, factors, columns, theta, g, mirrors, n);
  }
  template <class T, class Composed, class Index>
  static void sweep_rows(const Composed& p, const typename Composed::template constants<T>& c, T scale, T* theta,
                         T* const* mirrors, std::size_t row_count, std::size_t width, const Index* rows,
                         const T* values, std::size_t n, std::span<std::int32_t> scratch) {
    gradus::sweep_rows<A, T>(p, c, scale, theta, mirrors, row_count, width, rows, values, n, scratch);
  }
  template <class T, class Composed>
  static void follow(const Composed& p, const typename Composed::template constants<T>& c, T* theta, T* const* mirrors,
                     std::size_t n) {
    gradus::follow<A, T>(p, c, theta, mirrors, n);
  }
  template <class T, class Composed>
  static void before(const Composed& p, const typename Composed::template constants<T>& c, T scale, T* theta,
                     const T* g, T* const* mirrors, std::size_t n, T* to) {
    gradus::before<A, T>(p, c, scale, theta, g, mirrors, n, to);
  }
  template <class T, class Composed>
  static void observe(const Composed& p, const typename Composed::template constants<T>& c, T* theta, const T* estimate,
                      T* const* mirrors, std::size_t n) {
    gradus::observe<A, T>(p, c, theta, estimate, mirrors, n);
  }
  template <std::size_t Stage, class T, class Composed>
  static void measure(const Composed& p, const typename Composed::template constants<T>& c, T scale, const T* theta,
                      const T* g, T* const* mirrors, std::size_t n, double* sums) {
    gradus::measure<Stage, A, T>(p, c, scale, theta, g, mirrors, n, sums);
  }
  template <std::size_t Stage, class T, class Composed>
  static void measure_values(const Composed& p, const typename Composed::template constants<T>& c, T scale,
                             const T* values, std::size_t n, double* sums) {
    gradus::measure_values<Stage, A, T>(p, c, scale, values, n, sums);
  }
  template <std::size_t Stage, class T, class Composed, class Index>
  static void measure_rows(const Composed& p, const typename Composed::template constants<T>& c, T scale,
                           const T* theta, T* const* mirrors, std::size_t width, const Index* rows, const T* values,
                           std::size_t n, std::span<std::int32_t> scratch, double* sums) {
    gradus::measure_rows<Stage, A, T>(p, c, scale, theta, mirrors, width, rows, values, n, scratch, sums);
  }
  template <class T>
  static T sum_of_squares(const T* x, std::size_t n) {
    return gradus::sum_of_squares<A>(x, n);
  }
  template <class T>
  static void column_squares(const T* x, std::size_t n, std::size_t columns, T* sums) {
    gradus::column_squares<A>(x, n, columns, sums);
  }
  template <class T>
  static void add_to(T* sum, const T* g, std::size_t n) {
    gradus::add_to<A>(sum, g, n);
  }
  template <class T, class Index>
  static void add_rows(T* to, const T* values, const Index* rows, std::size_t n, std::size_t width) {
    gradus::add_rows(to, values, rows, n, width);
  }
  template <class Index>
  static void check_rows(const Index* rows, std::size_t n, std::size_t row_count) {
    gradus::check_rows(rows, n, row_count);
  }
  static constexpr std::size_t row_scratch(std::size_t n) { return row_chains::scratch(n); }
};

}  // namespace gradus
