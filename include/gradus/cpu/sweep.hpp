// An update in one pass over memory: theta, g and the mirrors are read once, and theta and the mirrors written once;
// clip, rule and average meet in registers. No allocation, no exceptions but the check of row numbers, any machine.
//
// `p` is a composed update (update/chain.hpp), `c` its constants for this step (p.prepare<T>(global_step)), `scale` its
// clip_scale as T (ignored without a clip), `mirrors` one pointer per mirror in the order of p.mirrors(). The formulas
// use the same numbers everywhere, so exact and padded, dense and sparse on all rows, any register, give the same bits.
#pragma once
#include <cmath>
#include <initializer_list>
#include <span>

#include "../update/chain.hpp"
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

// One register at element i (its first n places): the rule, and the average if asked for.
template <extent E, bool Average, class N, class Composed, std::size_t... I>
GRADUS_INLINE void step_at(const Composed& p, const ready_step<N, Composed>& k, typename N::value_type* theta, N g,
                           const mirror_pointers<typename N::value_type, Composed::mirror_count>& mirrors,
                           std::size_t i, std::size_t n, std::index_sequence<I...>) {
  N slot[sizeof...(I) + 1] = {read<N, E>(mirrors.at[I] + i, n)..., N(0)};
  const N next = p.rule().step(read<N, E>(theta + i, n), g, k.rule, slot[I]...);
  write<E>(next, theta + i, n);
  (write<E>(slot[I], mirrors.at[I] + i, n), ...);
  if constexpr (Average && Composed::has_average) {
    auto* shadow = mirrors.at[Composed::slot_count] + i;
    write<E>(Composed::average_type::follow(read<N, E>(shadow, n), next, k.new_share), shadow, n);
  }
}

template <class Composed, class N>
GRADUS_INLINE N clipped(N g, N scale) {
  if constexpr (Composed::has_clip)
    return g * scale;
  else
    return g;
}

}  // namespace detail

// Dense, n elements exactly: nothing outside them is touched.
template <class A, class T, class Composed, class N = pack<T, A>>
void sweep(const Composed& p, const typename Composed::template constants<T>& c, T scale, T* theta, const T* g,
           T* const* mirrors, std::size_t n) {
  using detail::extent;
  const detail::ready_step<N, Composed> k(c, scale);
  const detail::mirror_pointers<T, Composed::mirror_count> m(mirrors);
  constexpr auto slots = std::make_index_sequence<Composed::slot_count>{};
  std::size_t i = 0;
  for (; i + N::width <= n; i += N::width)
    detail::step_at<extent::whole, true>(p, k, theta, detail::clipped<Composed>(N::load(g + i), k.scale), m, i, 0,
                                         slots);
  if (i < n) {
    const N last = detail::clipped<Composed>(N::load_partial(g + i, n - i), k.scale);
    detail::step_at<extent::partial, true>(p, k, theta, last, m, i, n - i, slots);
  }
}

// Dense, with every array padded to 64 bytes: whole registers only. The padding is read and written; what it holds
// afterwards means nothing (a rule may turn zeros into NaN there).
template <class A, class T, class Composed, class N = pack<T, A>>
void sweep_padded(const Composed& p, const typename Composed::template constants<T>& c, T scale, T* theta, const T* g,
                  T* const* mirrors, std::size_t n) {
  sweep<A, T, Composed, N>(p, c, scale, theta, g, mirrors, (n + N::width - 1) / N::width * N::width);
}

// The average's own pass, where the rule touched rows only.
template <class A, class T, class Composed, class N = pack<T, A>>
void follow(const Composed&, const typename Composed::template constants<T>& c, const T* theta, T* shadow,
            std::size_t n) {
  if constexpr (Composed::has_average) {
    using average = typename Composed::average_type;
    const N share(c.new_share);
    std::size_t i = 0;
    for (; i + N::width <= n; i += N::width)
      average::follow(N::load(shadow + i), N::load(theta + i), share).store(shadow + i);
    if (i < n)
      average::follow(N::load_partial(shadow + i, n - i), N::load_partial(theta + i, n - i), share)
          .store_partial(shadow + i, n - i);
  }
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
// One row: the sum of its values from `position` on (none: -1), each clipped, then the rule.
template <class N, class Composed>
void step_row(const Composed& p, const ready_step<N, Composed>& k,
              const ready_step<lane<typename N::value_type, typename N::policy>, Composed>& one,
              typename N::value_type* theta, const typename N::value_type* values, const row_chains& chains,
              std::int32_t position, const mirror_pointers<typename N::value_type, Composed::mirror_count>& mirrors,
              std::size_t row, std::size_t width) {
  constexpr auto slots = std::make_index_sequence<Composed::slot_count>{};
  const auto total = [&]<extent E, class M>(const ready_step<M, Composed>& step, std::size_t j, std::size_t n) {
    if (position < 0) return M(0);
    const auto value = [&](std::int32_t at) {
      return clipped<Composed>(read<M, E>(values + static_cast<std::size_t>(at) * width + j, n), step.scale);
    };
    M g = value(position);
    for (auto at = chains.next[static_cast<std::size_t>(position)]; at >= 0;
         at = chains.next[static_cast<std::size_t>(at)])
      g = g + value(at);
    return g;
  };
  const std::size_t base = row * width;
  std::size_t j = 0;
  for (; j + N::width <= width; j += N::width)
    step_at<extent::whole, false>(p, k, theta, total.template operator()<extent::whole>(k, j, 0), mirrors, base + j, 0,
                                  slots);
  if (const std::size_t rest = width - j; rest > 2)
    step_at<extent::partial, false>(p, k, theta, total.template operator()<extent::partial>(k, j, rest), mirrors,
                                    base + j, rest, slots);
  else  // one or two elements are quicker one by one
    for (; j < width; ++j)
      step_at<extent::whole, false>(p, one, theta, total.template operator()<extent::whole>(one, j, 0), mirrors,
                                    base + j, 0, slots);
}
}  // namespace detail

// Sparse: theta is [row_count, width], values is [n, width], and value i belongs to row rows[i], checked. Values of one
// row are summed in order of arrival, then the rule runs once per distinct row; other rows stay, unless the rule decays
// all rows. The average is not part of this pass: call `follow`.
template <class A, class T, class Composed, class Index, class N = pack<T, A>>
void sweep_rows(const Composed& p, const typename Composed::template constants<T>& c, T scale, T* theta,
                T* const* mirrors, std::size_t row_count, std::size_t width, const Index* rows, const T* values,
                std::size_t n, std::span<std::int32_t> scratch) {
  const detail::ready_step<N, Composed> k(c, scale);
  const detail::ready_step<lane<T, A>, Composed> one(c, scale);
  const detail::mirror_pointers<T, Composed::mirror_count> m(mirrors);
  const row_chains chains = chain_rows(rows, n, scratch);
  if (Composed::may_decay_all_rows && p.decays_all_rows()) {
    for (std::size_t row = 0; row < row_count; ++row)
      detail::step_row(p, k, one, theta, values, chains, chains.find(rows, static_cast<std::int64_t>(row)), m, row,
                       width);
  } else {
    for (std::size_t d = 0; d < chains.distinct; ++d) {
      const std::int32_t position = chains.first[d];
      detail::step_row(p, k, one, theta, values, chains, position, m, static_cast<std::size_t>(rows[position]), width);
    }
  }
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
  template <class T, class Composed, class Index>
  static void sweep_rows(const Composed& p, const typename Composed::template constants<T>& c, T scale, T* theta,
                         T* const* mirrors, std::size_t row_count, std::size_t width, const Index* rows,
                         const T* values, std::size_t n, std::span<std::int32_t> scratch) {
    gradus::sweep_rows<A, T>(p, c, scale, theta, mirrors, row_count, width, rows, values, n, scratch);
  }
  template <class T, class Composed>
  static void follow(const Composed& p, const typename Composed::template constants<T>& c, const T* theta, T* shadow,
                     std::size_t n) {
    gradus::follow<A, T>(p, c, theta, shadow, n);
  }
  template <class T>
  static T sum_of_squares(const T* x, std::size_t n) {
    return gradus::sum_of_squares<A>(x, n);
  }
  template <class Index>
  static void check_rows(const Index* rows, std::size_t n, std::size_t row_count) {
    gradus::check_rows(rows, n, row_count);
  }
  static constexpr std::size_t row_scratch(std::size_t n) { return row_chains::scratch(n); }
};

}  // namespace gradus
