// This header has the interpreter's sweep of an elementwise expression: one formula at a time, over a chunk that stays
// in cache. It also has what the interpreter shares with the compiled step (cpu/elementwise.hpp): integers as numbers,
// and how an expression is walked and divided.
#pragma once
#include "../base/build.hpp"

#include <limits>
#include <type_traits>

#include "kernel.hpp"
#include "number.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// This number type of formulas holds one integer, which wraps around as hardware does.
template <class T>
struct integer {
  using value_type = T;
  static constexpr std::size_t width = 1;
  T v;
  integer() = default;
  constexpr integer(T x) : v(x) {}
  static constexpr integer load(const T* p) { return *p; }
  constexpr void store(T* p) const { *p = v; }
  static constexpr integer load_partial(const T* p, std::size_t, T = T(0)) { return *p; }
  constexpr void store_partial(T* p, std::size_t) const { *p = v; }
  template <class F>
  static constexpr integer wrap(integer a, integer b, F f) {
    using U = std::make_unsigned_t<std::conditional_t<sizeof(T) < 4, int, T>>;
    return static_cast<T>(f(static_cast<U>(a.v), static_cast<U>(b.v)));
  }
  friend constexpr integer operator+(integer a, integer b) {
    return wrap(a, b, [](auto x, auto y) { return x + y; });
  }
  friend constexpr integer operator-(integer a, integer b) {
    return wrap(a, b, [](auto x, auto y) { return x - y; });
  }
  friend constexpr integer operator*(integer a, integer b) {
    return wrap(a, b, [](auto x, auto y) { return x * y; });
  }
  // Division by zero gives 0 (TensorFlow raises); the most negative number divided by -1 wraps.
  friend constexpr integer operator/(integer a, integer b) {
    if (b.v == 0) return T(0);
    if constexpr (std::is_signed_v<T>)
      if (b.v == T(-1)) return integer(T(0)) - a;
    return static_cast<T>(a.v / b.v);
  }
  friend constexpr integer operator-(integer a) { return integer(T(0)) - a; }
  friend constexpr bool operator<(integer a, integer b) { return a.v < b.v; }
  friend constexpr bool operator<=(integer a, integer b) { return a.v <= b.v; }
  friend constexpr bool operator>(integer a, integer b) { return a.v > b.v; }
  friend constexpr bool operator>=(integer a, integer b) { return a.v >= b.v; }
  friend constexpr bool operator==(integer a, integer b) { return a.v == b.v; }
  friend constexpr bool operator!=(integer a, integer b) { return a.v != b.v; }
  friend constexpr integer select(bool m, integer a, integer b) { return m ? a : b; }
  friend constexpr integer min(integer a, integer b) { return a.v < b.v ? a : b; }
  friend constexpr integer max(integer a, integer b) { return a.v > b.v ? a : b; }
  friend constexpr integer abs(integer a) { return a.v < T(0) ? -a : a; }
  friend constexpr integer sign(integer a) { return T((a.v > T(0)) - (a.v < T(0))); }
};

template <class T, class A>
struct number_for {
  using type = integer<T>;
};
template <std::floating_point T, class A>
struct number_for<T, A> {
  using type = pack<T, A>;
};
template <class T, class A>
using number_of = typename number_for<T, A>::type;

// Rounds toward zero. A number that does not fit gives the nearest that does, and NaN gives 0 (C++ leaves both
// undefined).
template <class To, class From>
constexpr To to_element(From x) {
  if constexpr (std::is_same_v<To, bool>)
    return x != From(0);
  else if constexpr (is_16_bit_float(dtype_of<To>))
    return To(static_cast<float>(x));
  else if constexpr (std::is_floating_point_v<From> && !std::is_floating_point_v<To>) {
    constexpr From low = static_cast<From>(std::numeric_limits<To>::min());
    constexpr From high = static_cast<From>(std::numeric_limits<To>::max());
    return x != x      ? To(0)
           : x <= low  ? std::numeric_limits<To>::min()
           : x >= high ? std::numeric_limits<To>::max()
                       : static_cast<To>(x);
  } else
    return static_cast<To>(x);
}
// Returns the grain for dividing an expression along its outermost loop; if that is the innermost too, parts begin on
// cache lines.
constexpr std::int64_t grain_of(const expression& x) { return x.loops == 1 ? 64 : 1; }

// Walks the outer loops of an expression, in a share of the outermost one. It calls visit(result offset, operand
// offsets, n) for each run of n elements of the innermost one.
template <class Visit>
GRADUS_INLINE void walk(const expression& x, std::int64_t rows, std::int64_t batch_size, const index_range& mine,
                        Visit visit) {
  std::int64_t extent[max_loops] = {}, stride[max_operands][max_loops] = {}, offset[max_operands] = {},
               index[max_loops] = {};
  for (int l = 0; l < x.loops; ++l) extent[l] = extent_at(x.extent[l], rows, batch_size);
  for (int k = 0; k < x.inputs; ++k) {
    std::int64_t step = 1;
    for (int l = x.loops - 1; l >= 0; --l)
      if (x.varies[k] >> l & 1) stride[k][l] = step, step *= extent[l];
  }
  const int inner = x.loops - 1;
  std::int64_t runs = 1, at = mine.first;
  for (int l = 1; l < x.loops; ++l) at *= extent[l];
  for (int k = 0; k < x.inputs; ++k) offset[k] = stride[k][0] * mine.first;
  extent[0] = mine.last - mine.first;
  const std::int64_t n = extent[inner];
  for (int l = 0; l < inner; ++l) runs *= extent[l];
  for (std::int64_t r = 0; r < runs; ++r, at += n) {
    visit(at, offset, n);
    for (int l = inner - 1; l >= 0; --l) {
      for (int k = 0; k < x.inputs; ++k) offset[k] += stride[k][l];
      if (++index[l] < extent[l]) break;
      for (int k = 0; k < x.inputs; ++k) offset[k] -= stride[k][l] * extent[l];
      index[l] = 0;
    }
  }
}

// The interpreter computes one formula at a time over a chunk that stays in cache.
inline constexpr std::int64_t chunk = 128;  // a multiple of every register's width
using chunk_function = void (*)(void* y, const void* a, const void* b, const void* c);

template <const card* Op, class T, class A>
void run_chunk(void* y, const void* a, const void* b, const void* c) {
  using N = number_of<T, A>;
  const T *p = static_cast<const T*>(a), *q = static_cast<const T*>(b), *r = static_cast<const T*>(c);
  T* out = static_cast<T*>(y);
  for (std::size_t i = 0; i < static_cast<std::size_t>(chunk); i += N::width) {
    if constexpr (Op->operands == 1)
      formula<Op>::at(N::load(p + i)).store(out + i);
    else if constexpr (Op->operands == 2)
      formula<Op>::at(N::load(p + i), N::load(q + i)).store(out + i);
    else
      formula<Op>::at(N::load(p + i), N::load(q + i), N::load(r + i)).store(out + i);
  }
}

template <class T>
class interpreting {
public:
  template <class S>
  interpreting(const S& s, std::byte* const* a)
      : x_(s.value.formula), steps_(static_cast<const chunk_function*>(s.steps)), a_(a) {
    const index_range mine = s.share(extent_at(x_.extent[0], s.rows, s.batch_size), grain_of(x_));
    const std::int64_t n = extent_at(x_.extent[x_.loops - 1], s.rows, s.batch_size);
    if (x_.loops > 1 && n != 0 && 2 * n <= chunk)
      short_runs(s, mine, n);
    else
      walk(x_, s.rows, s.batch_size, mine,
           [this](std::int64_t to, const std::int64_t* offset, std::int64_t many) { row(to, offset, many); });
  }

private:
  const expression& x_;
  const chunk_function* steps_;
  std::byte* const* a_;
  alignas(64) T local_[max_operands + max_steps][chunk];

  // Computes short runs of the innermost loop, as many as a chunk holds at once. What is the same for every run is read
  // once; what varies with all loops lies in memory as the result does.
  template <class S>
  void short_runs(const S& s, const index_range& mine, std::int64_t n) {
    const std::int64_t together = chunk / n;
    const int inner = 1 << (x_.loops - 1), all = 2 * inner - 1;
    const auto fill = [&](int k, std::int64_t offset, std::int64_t first, std::int64_t runs) {
      with_element_type(x_.operand_type[k], [&]<class U>() {
        const U* from = at<const U>(a_, k + 1) + offset;
        const bool moves = (x_.varies[k] & inner) != 0;
        for (T* to = local_[k] + first * n; runs > 0; --runs, to += n)
          for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(from[moves ? i : 0]);
      });
    };
    bool with_runs[max_operands] = {}, any = false;
    const T* number[max_operands + max_steps] = {};
    for (int k = 0; k < x_.inputs + x_.steps; ++k) number[k] = local_[k];
    for (int k = 0; k < x_.inputs; ++k) {
      for (T& x : local_[k]) x = T(0);
      if ((x_.varies[k] & ~inner) == 0)
        fill(k, 0, 0, together);
      else if (x_.varies[k] != all)
        any = with_runs[k] = true;
    }
    std::int64_t end = mine.last * n;
    for (int l = 1; l < x_.loops - 1; ++l) end *= extent_at(x_.extent[l], s.rows, s.batch_size);
    const auto compute = [&](std::int64_t to, std::int64_t many) {
      for (int k = 0; k < x_.inputs; ++k) {
        if (x_.varies[k] != all) continue;
        number[k] = x_.operand_type[k] == dtype_of<T> && end - to >= chunk ? at<const T>(a_, k + 1) + to : local_[k];
        if (number[k] == local_[k]) read(k, to, many);
      }
      steps(number, to, many);
    };
    if (!any) {
      for (std::int64_t to = mine.last == 0 ? 0 : end / mine.last * mine.first; to < end; to += together * n)
        compute(to, end - to < together * n ? end - to : together * n);
      return;
    }
    std::int64_t here = 0;  // how many runs are in the chunk
    walk(x_, s.rows, s.batch_size, mine, [&](std::int64_t to, const std::int64_t* offset, std::int64_t) {
      for (int k = 0; k < x_.inputs; ++k)
        if (with_runs[k]) fill(k, offset[k], here, 1);
      if (++here < together && to + n < end) return;
      compute(to + n - here * n, here * n);
      here = 0;
    });
  }
  // Reads `many` numbers of operand k into its local array, with zeros after them.
  void read(int k, std::int64_t from, std::int64_t many) {
    with_element_type(x_.operand_type[k], [&]<class U>() {
      const U* p = at<const U>(a_, k + 1) + from;
      for (std::int64_t i = 0; i < chunk; ++i) local_[k][i] = i < many ? static_cast<T>(p[i]) : T(0);
    });
  }
  // Computes the formulas, on numbers that are all at hand, and stores the result in its place.
  void steps(const T* const* number, std::int64_t to, std::int64_t many) {
    const bool here = many == chunk && x_.result_type == dtype_of<T>;
    for (int s = 0; s < x_.steps; ++s) {
      const auto& from = x_.arg[s];
      T* result = here && s == x_.steps - 1 ? at<T>(a_, 0) + to : local_[x_.inputs + s];
      steps_[s](result, number[from[0]], number[from[1]], number[from[2]]);
    }
    if (here) return;
    with_element_type(x_.result_type, [&]<class R>() {
      R* y = at<R>(a_, 0) + to;
      for (std::int64_t i = 0; i < many; ++i) y[i] = to_element<R>(local_[x_.inputs + x_.steps - 1][i]);
    });
  }
  // Computes a run of the innermost loop. Whole chunks of the computed type are read and written where they lie.
  void row(std::int64_t to, const std::int64_t* offset, std::int64_t n) {
    const T* number[max_operands + max_steps] = {};  // where the numbers of each operand and formula are
    bool moves[max_operands] = {}, in_place[max_operands] = {};
    for (int k = 0; k < x_.inputs; ++k) {
      moves[k] = (x_.varies[k] >> (x_.loops - 1) & 1) != 0;
      in_place[k] = moves[k] && x_.operand_type[k] == dtype_of<T>;
      number[k] = local_[k];
      if (!moves[k] && n != 0)
        with_element_type(x_.operand_type[k], [&]<class U>() {
          const auto value = static_cast<T>(at<const U>(a_, k + 1)[offset[k]]);
          for (T& to_fill : local_[k]) to_fill = value;
        });
    }
    for (int s = 0; s < x_.steps; ++s) number[x_.inputs + s] = local_[x_.inputs + s];
    for (std::int64_t j = 0; j < n; j += chunk) {
      const std::int64_t many = n - j < chunk ? n - j : chunk;
      for (int k = 0; k < x_.inputs; ++k) {
        if (in_place[k] && many == chunk) {
          number[k] = at<const T>(a_, k + 1) + offset[k] + j;
        } else if (moves[k]) {
          number[k] = local_[k];
          read(k, offset[k] + j, many);
        }
      }
      steps(number, to + j, many);
    }
  }
};

}  // namespace detail

}  // namespace gradus
