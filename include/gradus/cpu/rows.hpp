// A sparse gradient has values for some rows of a variable, in any order and with repetitions. Duplicates are summed
// first, in order of arrival, and then the rule runs once per distinct row; no other row is read or written unless the
// rule says so.
#pragma once
#include "../base/build.hpp"

#include <bit>
#include <cstring>
#include <type_traits>

#include "../base/deferred.hpp"
#include "sweep.hpp"

namespace gradus::inline GRADUS_BUILD {

// This holds the rows of a sparse gradient with duplicates chained: the distinct rows in order of first occurrence, and
// for each of them the positions of its values in order of arrival.
struct row_chains {
  std::span<const std::int32_t> first, next;  // first[d]: row d's first position; next[position]: next one, or -1
  std::size_t distinct = 0;

  // Positions whose rows have one hash are linked from the latest to the earliest, with the latest position of each row
  // alone: head[hash] and link[position] are a position + 1, or 0 at the end. The topmost bit of a link says that its
  // row also has an earlier position; origin[position] is then the first one.
  std::span<const std::uint32_t> head, link;
  std::span<const std::int32_t> origin;
  int shift = 0;  // shifts a hash to its index in head
  static constexpr std::uint32_t again = 1u << 31;

  // Returns how many int32 of scratch n rows need.
  static constexpr std::size_t scratch(std::size_t n) { return n == 0 ? 0 : table_size(n) + 4 * n; }
  // Returns the size of the hash table. Collisions cost little, so many rows take a small table; a few rows take a
  // larger one for their number, which is cheap anyway.
  static constexpr std::size_t table_size(std::size_t n) { return std::bit_ceil(n <= 256 ? 4 * n : 2 * n); }
  static std::uint64_t hash(std::uint64_t row) { return row * 0x9E3779B97F4A7C15u; }
  // Returns whether every row is listed once: the distinct rows are then in the order in which they are listed.
  bool all_distinct() const { return distinct == next.size(); }
  // Returns the position of the first value of `row`, or -1.
  template <class Index>
  std::int32_t find(const Index* rows, std::int64_t row) const {
    if (head.empty()) return -1;
    std::uint32_t at = head[static_cast<std::size_t>(hash(static_cast<std::uint64_t>(row)) >> shift)];
    for (; at != 0; at = link[at - 1] & ~again)
      if (rows[at - 1] == row) return (link[at - 1] & again) != 0 ? origin[at - 1] : static_cast<std::int32_t>(at - 1);
    return -1;
  }
};

// Raises unless every row number is in [0, row_count) and there are at most 2^29 of them; nothing has been changed
// when it raises.
template <class Index>
void check_rows(const Index* rows, std::size_t n, std::size_t row_count) {
  if (n > (std::size_t{1} << 29))
    raise(status::invalid_argument, "a sparse gradient has at most 2^29 rows, this one has ", n);
  // As unsigned numbers, negative ones are the largest. The largest number is found first, without a branch, so the
  // loop vectorizes.
  using bits = std::make_unsigned_t<Index>;
  bits most = 0;
  for (std::size_t i = 0; i < n; ++i) most = static_cast<bits>(rows[i]) > most ? static_cast<bits>(rows[i]) : most;
  if (n == 0 || most < row_count) return;
  for (std::size_t i = 0; i < n; ++i)
    if (rows[i] < 0 || static_cast<std::uint64_t>(rows[i]) >= row_count)
      raise(status::invalid_argument, "Index ", rows[i], " at offset ", i, " in indices is out of range; expected [0, ",
            row_count, "), the rows of the variable. Nothing was changed");
}

// Chains n checked rows in `scratch`, which must hold row_chains::scratch(n) numbers and live as long as the result. It
// calls `meet(row)` for each row on its way.
//
// First every row is linked to the earlier ones of its hash, without a branch; then the few whose hash occurred before
// look whether their row did.
template <class Index, class Meet>
row_chains chain_rows(const Index* rows, std::size_t n, std::span<std::int32_t> scratch, Meet meet) {
  row_chains chains;
  if (n == 0) return chains;
  constexpr std::uint32_t again = row_chains::again;
  const std::size_t size = row_chains::table_size(n);
  std::uint32_t* const head = reinterpret_cast<std::uint32_t*>(scratch.data());
  std::uint32_t* const link = head + size;
  std::int32_t *const next = scratch.data() + size + n, *const first = next + n, *const origin = first + n;
  std::int32_t* const met = first;  // holds positions whose hash occurred before, until `first` is filled
  std::memset(head, 0, size * sizeof(std::uint32_t));
  std::memset(next, 0xff, n * sizeof(std::int32_t));  // -1 everywhere
  chains.head = detail::const_span(head, size), chains.link = detail::const_span(link, n);
  chains.origin = detail::const_span(origin, n), chains.first = detail::const_span(first, n);
  chains.next = detail::const_span(next, n), chains.shift = 64 - std::countr_zero(size);
  const int shift = chains.shift;
  std::size_t meetings = 0;
  for (std::size_t i = 0; i < n; ++i) {
    meet(static_cast<std::size_t>(rows[i]));
    std::uint32_t& latest = head[row_chains::hash(static_cast<std::uint64_t>(rows[i])) >> shift];
    const std::uint32_t before = latest;
    link[i] = before, latest = static_cast<std::uint32_t>(i) + 1;
    met[meetings] = static_cast<std::int32_t>(i), meetings += before != 0;
  }
  std::size_t repeated = 0;
  for (std::size_t k = 0; k < meetings; ++k) {
    const auto i = static_cast<std::size_t>(met[k]);
    for (std::uint32_t* from = link + i; (*from & ~again) != 0;) {
      const std::size_t j = (*from & ~again) - 1;
      if (rows[j] != rows[i]) {
        from = link + j;
        continue;
      }
      next[j] = static_cast<std::int32_t>(i);
      origin[i] = (link[j] & again) != 0 ? origin[j] : static_cast<std::int32_t>(j);
      *from = (*from & again) | (link[j] & ~again);  // i stands for its row from now on
      link[i] |= again, ++repeated;
      break;
    }
  }
  chains.distinct = n - repeated;
  std::size_t d = 0;
  if (repeated == 0)
    for (; d < n; ++d) first[d] = static_cast<std::int32_t>(d);
  else
    for (std::size_t i = 0; i < n; ++i) first[d] = static_cast<std::int32_t>(i), d += (link[i] & again) == 0;
  return chains;
}
template <class Index>
row_chains chain_rows(const Index* rows, std::size_t n, std::span<std::int32_t> scratch) {
  return chain_rows(rows, n, scratch, [](std::size_t) {});
}

namespace detail {
// This tells which value belongs to a position if `per` positions share one. Positions come in ascending order, so that
// counting takes the place of a division.
class value_counter {
public:
  value_counter(std::size_t per, std::int32_t start)
      : per_(per), value_(static_cast<std::size_t>(start) / per), end_((value_ + 1) * per) {}
  std::size_t at(std::int32_t position) {
    const auto i = static_cast<std::size_t>(position);
    if (per_ == 1) return i;
    while (i >= end_) ++value_, end_ += per_;
    return value_;
  }

private:
  std::size_t per_, value_, end_;
};

// Returns the gradient of one row at element j: the sum of value `which`, which belongs to its first position, and of
// the values of the positions after it, each clipped.
template <extent E, class N, class Composed>
GRADUS_INLINE N row_gradient(const Composed& p, const ready_step<N, Composed>& k, const typename N::value_type* values,
                             const row_chains& chains, std::int32_t position, std::size_t which, std::size_t width,
                             std::size_t j, std::size_t n, std::size_t per) {
  const auto value = [&](std::size_t i) { return clipped(p, k, read<N, E>(values + i * width + j, n)); };
  N g = value(which);
  for (auto at = chains.next[static_cast<std::size_t>(position)]; at >= 0;
       at = chains.next[static_cast<std::size_t>(at)])
    g = g + value(static_cast<std::uint32_t>(at) / static_cast<std::uint32_t>(per));
  return g;
}
// Returns the same where each position has a value of its own. Where there is no position (-1), the gradient is 0.
template <extent E, class N, class Composed>
GRADUS_INLINE N row_gradient(const Composed& p, const ready_step<N, Composed>& k, const typename N::value_type* values,
                             const row_chains& chains, std::int32_t position, std::size_t width, std::size_t j,
                             std::size_t n) {
  if (position < 0) return N(0);
  return row_gradient<E>(p, k, values, chains, position, static_cast<std::size_t>(position), width, j, n, 1);
}
// Computes one row's gradient and runs the rule on the row. With `Rest`, the row has no gradient.
template <bool Rest, class N, class Composed>
GRADUS_INLINE void step_row(const Composed& p, const ready_step<N, Composed>& k,
                            const ready_step<lane<typename N::value_type, typename N::policy>, Composed>& one,
                            typename N::value_type* theta, const typename N::value_type* values,
                            const row_chains& chains, std::int32_t position, std::size_t which,
                            const mirror_pointers<typename N::value_type, Composed::mirror_count>& mirrors,
                            std::size_t row, std::size_t width, std::size_t per) {
  constexpr auto slots = std::make_index_sequence<Composed::slot_count>{};
  const auto step = [&]<extent E, class M>(const ready_step<M, Composed>& ready, std::size_t j, std::size_t n) {
    M g(0);
    if constexpr (!Rest) g = row_gradient<E>(p, ready, values, chains, position, which, width, j, n, per);
    step_at<E, false, Rest>(p.rule(), ready, theta, g, mirrors, row * width + j, n, slots);
  };
  std::size_t j = 0;
  for (; j + N::width <= width; j += N::width) step.template operator()<extent::whole>(k, j, 0);
  if (const std::size_t rest = width - j; rest > 2)
    step.template operator()<extent::partial>(k, j, rest);
  else  // one or two elements are quicker one by one
    for (; j < width; ++j) step.template operator()<extent::whole>(one, j, 0);
}

// Of a long row only the first lines are prefetched: the processor guesses the rest.
template <class T>
constexpr std::size_t prefetched_lines(std::size_t width) {
  const std::size_t lines = (width * sizeof(T) + 63) / 64;
  return lines < 4 ? lines : 4;
}
// Prefetches a row's cache lines before they are needed. The empty asm is an effect: g++ takes a function that only
// prefetches for one without any, and leaves out its calls.
template <class T>
GRADUS_INLINE void prefetch_row(const T* row, std::size_t width) {
  const std::size_t lines = prefetched_lines<T>(width);
  for (std::size_t i = 0; i < lines; ++i) __builtin_prefetch(row + i * (64 / sizeof(T)), 1);
  asm volatile("");
}
template <class Composed, class T>
GRADUS_INLINE void prefetch_slots_at(const mirror_pointers<T, Composed::mirror_count>& mirrors, std::size_t row,
                                     std::size_t width) {
  for (std::size_t k = 0; k < Composed::slot_count; ++k) prefetch_row(mirrors.at[k] + row * width, width);
}
template <class Composed, class T>
GRADUS_INLINE void prefetch_rows_at(const T* theta, const mirror_pointers<T, Composed::mirror_count>& mirrors,
                                    std::size_t row, std::size_t width) {
  prefetch_row(theta + row * width, width);
  prefetch_slots_at<Composed>(mirrors, row, width);
}
// Rows are prefetched this many rows ahead: as many as keep the processor's line buffers busy.
inline constexpr std::size_t narrow_rows_ahead = 64, wide_rows_ahead = 12;
// While many rows are chained, one is prefetched for every so many, up to so many lines in all: memory takes longer
// than chaining, and they must still be in the second cache when their turn comes.
inline constexpr std::size_t chained_to_prefetched = 8, chained_lines = 4096;

// Runs the rule on rows narrower than a register, in blocks: theta, slots and gradients of many rows are gathered side
// by side, swept densely and written back. The rule sees every number once, as it would row by row. With `Once`, every
// row is listed once and has a value of its own.
template <bool Once, class N, class Composed, class Index, class Width>
void step_narrow_rows(const Composed& p, const ready_step<N, Composed>& k,
                      const ready_step<lane<typename N::value_type, typename N::policy>, Composed>& one,
                      typename N::value_type* theta, const typename N::value_type* values, const row_chains& chains,
                      const Index* rows, const mirror_pointers<typename N::value_type, Composed::mirror_count>& mirrors,
                      Width width, std::size_t per, std::size_t first, std::size_t last) {
  using T = typename N::value_type;
  constexpr std::size_t room = 64, count = Composed::slot_count, ahead = narrow_rows_ahead;
  constexpr auto slots = std::make_index_sequence<count>{};
  alignas(64) T own[room], gradient[room], slot[count + 1][room];
  std::size_t start[128];  // where rows begin, indexed by the low bits of d
  static_assert(room + ahead <= 128);
  T* beside[Composed::mirror_count + 1] = {};
  for (std::size_t i = 0; i < count; ++i) beside[i] = slot[i];
  const mirror_pointers<T, Composed::mirror_count> near(beside);
  const std::size_t block = room / width;
  const auto look_at = [&](std::size_t d) {
    const std::size_t row =
        static_cast<std::size_t>(rows[Once ? d : static_cast<std::size_t>(chains.first[d])]) * width;
    start[d % 128] = row;
    __builtin_prefetch(theta + row, 1);
    for (std::size_t s = 0; s < count; ++s) __builtin_prefetch(mirrors.at[s] + row, 1);
  };
  for (std::size_t d = first; d < last && d < first + ahead; ++d) look_at(d);
  value_counter counter(per, chains.first[first]);
  while (first < last) {
    const std::size_t n = last - first < block ? last - first : block;
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t d = first + i;
      if (d + ahead < last) look_at(d + ahead);
      const std::size_t from = start[d % 128], to = i * width;
      if constexpr (!Once) {
        const std::size_t which = counter.at(chains.first[d]);
        for (std::size_t j = 0; j < width; ++j)
          gradient[to + j] =
              row_gradient<extent::whole>(p, one, values, chains, chains.first[d], which, width, j, 0, per).v;
      }
      for (std::size_t j = 0; j < width; ++j) {
        own[to + j] = theta[from + j];
        for (std::size_t s = 0; s < count; ++s) slot[s][to + j] = mirrors.at[s][from + j];
      }
    }
    in_form(p, [&](const auto& rule) {
      for_registers<N>(n * width, [&]<extent E>(std::size_t i, std::size_t left) {
        N g(0);
        if constexpr (Once)
          g = clipped(p, k, read<N, E>(values + first * width + i, left));
        else
          g = read<N, E>(gradient + i, left);
        step_at<E, false>(rule, k, own, g, near, i, left, slots);
      });
    });
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t to = start[(first + i) % 128], from = i * width;
      for (std::size_t j = 0; j < width; ++j) {
        theta[to + j] = own[from + j];
        for (std::size_t s = 0; s < count; ++s) mirrors.at[s][to + j] = slot[s][from + j];
      }
    }
    first += n;
  }
}
}  // namespace detail

// Prefetches rows before a step needs them; a row out of range is passed over. Theta's rows come first: the forward
// pass waits for these, and the slots arrive while it computes.
template <class Composed, class T, class Index>
void prefetch_rows(const T* theta, T* const* mirrors, std::size_t row_count, std::size_t width, const Index* rows,
                   std::size_t n) {
  if (GRADUS_SIMD == 0) return;  // a board has no cache to fill
  const auto prefetch = [&](const T* of) {
    for (std::size_t i = 0; i < n; ++i)
      if (static_cast<std::uint64_t>(rows[i]) < row_count)  // a negative number is above every row
        detail::prefetch_row(of + static_cast<std::size_t>(rows[i]) * width, width);
  };
  prefetch(theta);
  for (std::size_t k = 0; k < Composed::slot_count; ++k) prefetch(mirrors[k]);
}

// Runs the rule on the distinct rows first <= d < last of a sparse gradient. Rows share nothing, so that different
// threads may sweep ranges of them with the same bits.
template <class A, class T, class Composed, class Index, class N = detail::pack<T, A>>
void sweep_chains(const Composed& p, const typename Composed::template constants<T>& c, T scale, T* theta,
                  T* const* mirrors, std::size_t width, const Index* rows, const T* values, const row_chains& chains,
                  std::size_t first, std::size_t last, std::size_t per = 1) {
  if (first == last) return;
  const detail::ready_step<N, Composed> k(c, scale);
  const detail::ready_step<detail::lane<T, A>, Composed> one(c, scale);
  const detail::mirror_pointers<T, Composed::mirror_count> m(mirrors);
  if (width < N::width && width != 0) {
    const auto step = [&]<bool Once>(auto wide) {
      detail::step_narrow_rows<Once>(p, k, one, theta, values, chains, rows, m, wide, per, first, last);
    };
    const bool once = per == 1 && chains.all_distinct();
    if (constexpr std::integral_constant<std::size_t, 1> alone{}; width != 1)
      once ? step.template operator()<true>(width) : step.template operator()<false>(width);
    else
      once ? step.template operator()<true>(alone) : step.template operator()<false>(alone);
    return;
  }
  const auto row_of = [&](std::size_t d) { return static_cast<std::size_t>(rows[chains.first[d]]); };
  constexpr std::size_t ahead = detail::wide_rows_ahead;
  detail::value_counter counter(per, chains.first[first]);
  for (std::size_t d = first; GRADUS_SIMD != 0 && d < last && d < first + ahead; ++d)
    detail::prefetch_rows_at<Composed>(theta, m, row_of(d), width);
  for (std::size_t d = first; d < last; ++d) {
    if (GRADUS_SIMD != 0 && d + ahead < last) detail::prefetch_rows_at<Composed>(theta, m, row_of(d + ahead), width);
    const std::int32_t position = chains.first[d];
    detail::step_row<false>(p, k, one, theta, values, chains, position, counter.at(position), m, row_of(d), width, per);
  }
}

// Runs the rule on a sparse gradient: theta is [row_count, width], values is [n / per, width], and value i / per
// belongs to row rows[i], which is checked already. Values of one row are summed in order of arrival, then the rule
// runs once per distinct row; other rows stay, unless the rule decays all rows. What comes after the rule is not part
// of this pass: call `follow`.
template <class A, class T, class Composed, class Index, class N = detail::pack<T, A>>
void sweep_rows(const Composed& p, const typename Composed::template constants<T>& c, T scale, T* theta,
                T* const* mirrors, std::size_t row_count, std::size_t width, const Index* rows, const T* values,
                std::size_t n, std::span<std::int32_t> scratch, std::size_t per = 1) {
  // Memory is idle while rows are chained, so the slots of the first rows are prefetched meanwhile (the forward pass
  // has just read the rows themselves); the others follow shortly before their turn.
  const detail::mirror_pointers<T, Composed::mirror_count> at(mirrors);
  const std::size_t apart = n <= detail::narrow_rows_ahead ? 1 : detail::chained_to_prefetched,
                    most = detail::chained_lines / (Composed::slot_count + 1) /
                           (detail::prefetched_lines<T>(width) + (width == 0));
  std::size_t next = 0, countdown = apart;
  const row_chains chains = chain_rows(rows, n, scratch, [&](std::size_t) {
    if (--countdown != 0) return;
    countdown = apart;
    if (next < most) detail::prefetch_slots_at<Composed>(at, static_cast<std::size_t>(rows[next++]), width);
  });
  if constexpr (Composed::may_decay_all_rows) {
    if (p.decays_all_rows()) {
      const detail::ready_step<N, Composed> k(c, scale);
      const detail::ready_step<detail::lane<T, A>, Composed> one(c, scale);
      for (std::size_t row = 0; row < row_count; ++row) {
        const std::int32_t position = chains.find(rows, static_cast<std::int64_t>(row));
        if (position >= 0)
          detail::step_row<false>(p, k, one, theta, values, chains, position, static_cast<std::size_t>(position) / per,
                                  at, row, width, per);
        else
          detail::step_row<true>(p, k, one, theta, values, chains, position, 0, at, row, width, per);
      }
      return;
    }
  }
  sweep_chains<A, T, Composed, Index, N>(p, c, scale, theta, mirrors, width, rows, values, chains, 0, chains.distinct,
                                         per);
}

// Adds values to `to` at their rows, in order; `to` is [row_count, width], and the rows are checked already.
template <class T, class Index>
void add_rows(T* to, const T* values, const Index* rows, std::size_t n, std::size_t width) {
  for (std::size_t i = 0; i < n; ++i) {
    T* const row = to + static_cast<std::size_t>(rows[i]) * width;
    for (std::size_t j = 0; j < width; ++j) row[j] += values[i * width + j];
  }
}

}  // namespace gradus
