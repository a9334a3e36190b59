// Sparse gradients: values for some rows of a variable, in any order and with repetitions. Duplicates are summed first,
// in order of arrival, then the rule runs once per distinct row; no other row is read or written unless the rule says
// so.
#pragma once
#include <bit>

#include "sweep.hpp"

namespace gradus {

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

// to += values at their rows, in order; `to` is [row_count, width], rows checked.
template <class T, class Index>
void add_rows(T* to, const T* values, const Index* rows, std::size_t n, std::size_t width) {
  for (std::size_t i = 0; i < n; ++i) {
    T* const row = to + static_cast<std::size_t>(rows[i]) * width;
    for (std::size_t j = 0; j < width; ++j) row[j] += values[i * width + j];
  }
}

}  // namespace gradus
