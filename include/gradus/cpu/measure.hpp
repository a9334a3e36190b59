// These functions compute what an update must know of its gradients before it changes anything: norms, and what a rule
// measures. Each takes one read.
#pragma once
#include "rows.hpp"
#include "sums.hpp"

namespace gradus::inline GRADUS_BUILD {

// Adds to sums[k] the k-th of the values that `at(element, count)` measures, over n elements: on sixteen lanes in
// blocks of 4096 elements, whose sums are added in double, in order. Sums is double*, or a type that takes each
// addition separately (run/update_step.hpp).
namespace detail {
template <class N, std::size_t K, class Sums, class Measure>
void add_measures(std::size_t n, Sums sums, Measure at) {
  using T = typename N::value_type;
  for (std::size_t from = 0; from < n; from += reduction_chunk) {
    const std::size_t end = n - from < reduction_chunk ? n : from + reduction_chunk;
    sum_block<N> total[K];
    for (auto& b : total) b = sum_block<N>::fill(T(0));
    for (std::size_t i = from; i < end; i += sum_block<N>::lanes)
      for (std::size_t j = 0; j < sum_block<N>::packs && i + j * N::width < end; ++j) {
        const std::size_t here = i + j * N::width, left = end - here;
        std::array<N, K> m;
        if (left >= N::width) {
          m = at.template operator()<extent::whole>(here, std::size_t{0});
        } else {  // lanes past the end count as 0, whatever the measure makes of zeros
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
  return measure_stage<Stage>(p.rule(), read<N, E>(theta + i, n), g, k.rule,
                              read_slot<I, E, Composed, N>(mirrors, i, n)...);
}
}  // namespace detail

// Adds to sums what stage `Stage` of the rule must know of this variable (update/rule.hpp), from one read.
template <std::size_t Stage, class A, class T, class Composed, class N = detail::pack<T, A>, class Sums>
void measure(const Composed& p, const typename Composed::template constants<T>& c, T scale, const T* theta, const T* g,
             T* const* mirrors, std::size_t n, Sums sums) {
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
// Does the same for the values of a sparse gradient, with duplicates one by one. It is for clips at the head of a
// chain, which see nothing else.
template <std::size_t Stage, class A, class T, class Composed, class N = detail::pack<T, A>, class Sums>
void measure_values(const Composed& p, const typename Composed::template constants<T>& c, T scale, const T* values,
                    std::size_t n, Sums sums) {
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

// Adds to sums what stage `Stage` must know, over the distinct rows of a sparse gradient, row after row.
template <std::size_t Stage, class A, class T, class Composed, class Index, class N = detail::pack<T, A>, class Sums>
void measure_rows(const Composed& p, const typename Composed::template constants<T>& c, T scale, const T* theta,
                  T* const* mirrors, std::size_t width, const Index* rows, const T* values, std::size_t n,
                  std::span<std::int32_t> scratch, Sums sums) {
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

// Computes the column sums of squares of a row-major [n / columns, columns], in T, row after row.
template <class A, class T, class N = detail::pack<T, A>>
void column_squares(const T* x, std::size_t n, std::size_t columns, T* sums) {
  for (std::size_t j = 0; j < columns; ++j) sums[j] = T(0);
  for (std::size_t row = 0; row < n; row += columns)
    detail::for_registers<N>(columns, [&]<detail::extent E>(std::size_t j, std::size_t left) {
      const N v = detail::read<N, E>(x + row + j, left);
      detail::write<E>(fma(v, v, detail::read<N, E>(sums + j, left)), sums + j, left);
    });
}

// Returns the square root of the sum of squares over all arrays, 0 for none. The arrays' sums are added in the order
// given, in double.
template <class A, class T>
double global_norm(std::initializer_list<std::span<const T>> arrays) {
  double total = 0;
  for (const auto& x : arrays) total += static_cast<double>(sum_of_squares<A>(x.data(), x.size()));
  return std::sqrt(total);
}

}  // namespace gradus
