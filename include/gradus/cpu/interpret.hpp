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

// The interpreter computes one formula at a time over a chunk that stays in cache: at most `chunk` numbers, and always
// a multiple of chunk_grain, which is one of every register's width.
inline constexpr std::int64_t chunk = 128, chunk_grain = 16;
constexpr std::int64_t in_grains(std::int64_t n) { return (n + chunk_grain - 1) / chunk_grain * chunk_grain; }
using chunk_function = void (*)(void* y, const void* a, const void* b, const void* c, std::int64_t n);

template <const card* Op, class T, class A>
void run_chunk(void* y, const void* a, const void* b, const void* c, std::int64_t n) {
  using N = number_of<T, A>;
  static_assert(chunk_grain % static_cast<std::int64_t>(N::width) == 0);
  const T *p = static_cast<const T*>(a), *q = static_cast<const T*>(b), *r = static_cast<const T*>(c);
  T* out = static_cast<T*>(y);
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); i += N::width) {
    if constexpr (Op->operands == 1)
      formula<Op>::at(N::load(p + i)).store(out + i);
    else if constexpr (Op->operands == 2)
      formula<Op>::at(N::load(p + i), N::load(q + i)).store(out + i);
    else
      formula<Op>::at(N::load(p + i), N::load(q + i), N::load(r + i)).store(out + i);
  }
}

// The numbers of one chunk of an expression: where those of each operand and formula are. They are in memory of their
// own, or where the operand or the result lies if that has whole grains of the computed type.
template <class T>
class chunk_numbers {
public:
  chunk_numbers(const expression& x, const void* steps) : x_(x), steps_(static_cast<const chunk_function*>(steps)) {
    for (int k = 0; k < x_.inputs + x_.steps; ++k) number_[k] = local_[k];
  }
  chunk_numbers(const chunk_numbers&) = delete;
  // Returns memory for the numbers of operand k.
  T* own(int k) {
    number_[k] = local_[k];
    return local_[k];
  }
  // Takes n numbers of operand k, or n times one that does not move, from element `first` of its memory on.
  void take(int k, const std::byte* operand, std::int64_t first, bool moves, std::int64_t n) {
    if (moves && n % chunk_grain == 0 && x_.operand_type[k] == dtype_of<T>) {
      number_[k] = reinterpret_cast<const T*>(operand) + first;
      return;
    }
    with_element_type(x_.operand_type[k], [&, n]<class U>() mutable {
      const U* p = reinterpret_cast<const U*>(operand) + first;
      T* to = own(k);
      if (!moves) {
        const auto same = static_cast<T>(p[0]);
        for (; n > 0; n -= chunk_grain, to += chunk_grain)
          for (int i = 0; i < chunk_grain; ++i) to[i] = same;
        return;
      }
      for (; n >= chunk_grain; n -= chunk_grain, to += chunk_grain, p += chunk_grain)
        for (int i = 0; i < chunk_grain; ++i) to[i] = static_cast<T>(p[i]);
      for (int i = 0; n > 0 && i < chunk_grain; ++i) to[i] = i < n ? static_cast<T>(p[i]) : T(0);
    });
  }
  // Computes n numbers, in `result` if there are whole grains, and returns where they are.
  const T* compute(std::int64_t n, T* result) {
    const std::int64_t all = in_grains(n);
    for (int s = 0; s < x_.steps; ++s) {
      const auto& from = x_.arg[s];
      T* const to = s == x_.steps - 1 && result != nullptr && all == n ? result : local_[x_.inputs + s];
      steps_[s](to, number_[from[0]], number_[from[1]], number_[from[2]], all);
      if (s == x_.steps - 1) return to;
    }
    return nullptr;  // an expression has a formula
  }

private:
  const expression& x_;
  const chunk_function* steps_;
  const T* number_[max_operands + max_steps];
  // Is written before it is read: filling it with zeros would take longest.
  alignas(64) T local_[max_operands + max_steps][chunk];
};

// Returns where operand k of an expression over a matrix is read for an element of the result.
constexpr std::int64_t offset_in_matrix(const expression& x, int k, std::int64_t row, std::int64_t column,
                                        std::int64_t columns) {
  const bool down = (x.varies[k] & along_rows) != 0, along = (x.varies[k] & along_columns) != 0;
  return (down ? row * (along ? columns : 1) : 0) + (along ? column : 0);
}

template <class T>
class interpreting {
public:
  // The result lies at a[0] and operand k at a[k + 1]; the outermost loop has `rows` steps.
  interpreting(const expression& x, const void* steps, std::byte* const* a, std::int64_t rows, std::int64_t batch_size)
      : x_(x), a_(a), rows_(rows), batch_size_(batch_size), numbers_(x, steps) {}

  // Computes these steps of the outermost loop.
  void run(const index_range& mine) {
    const std::int64_t n = extent_at(x_.extent[x_.loops - 1], rows_, batch_size_);
    if (x_.loops == 1)
      part_of_row(0, mine.first, mine.last - mine.first, n);
    else if (x_.loops == 2 && mine.last - mine.first == 1)
      part_of_row(mine.first, 0, n, n);
    else if (n != 0 && 2 * n <= chunk)
      short_runs(mine, n);
    else
      walk(x_, rows_, batch_size_, mine,
           [this](std::int64_t to, const std::int64_t* offset, std::int64_t many) { run_of(to, offset, many); });
  }
  // Computes n columns of a row, from `column` on, where the loops are those of a matrix of so many columns, or of a
  // row.
  void part_of_row(std::int64_t row, std::int64_t column, std::int64_t n, std::int64_t columns) {
    std::int64_t offset[max_operands];
    const bool is_row = x_.loops == 1;
    for (int k = 0; k < x_.inputs; ++k)
      offset[k] = is_row ? (x_.varies[k] != 0 ? column : 0) : offset_in_matrix(x_, k, row, column, columns);
    run_of(row * columns + column, offset, n);
  }

private:
  const expression& x_;
  std::byte* const* a_;
  std::int64_t rows_, batch_size_;
  chunk_numbers<T> numbers_;

  // Computes short runs of the innermost loop, as many as a chunk holds at once. What is the same for every run is read
  // once; what varies with all loops lies in memory as the result does.
  void short_runs(const index_range& mine, std::int64_t n) {
    std::int64_t end = mine.last * n;
    for (int l = 1; l < x_.loops - 1; ++l) end *= extent_at(x_.extent[l], rows_, batch_size_);
    const std::int64_t begin = mine.last == 0 ? 0 : end / mine.last * mine.first;
    const std::int64_t together = chunk / n < (end - begin) / n ? chunk / n : (end - begin) / n;
    const int inner = 1 << (x_.loops - 1), all = 2 * inner - 1;
    const auto fill = [&](int k, std::int64_t offset, std::int64_t first, std::int64_t runs) {
      T* to = numbers_.own(k) + first * n;
      with_element_type(x_.operand_type[k], [&]<class U>() {
        const U* from = at<const U>(a_, k + 1) + offset;
        const bool moves = (x_.varies[k] & inner) != 0;
        for (; runs > 0; --runs, to += n)
          for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(from[moves ? i : 0]);
      });
    };
    bool with_runs[max_operands] = {}, any = false;
    for (int k = 0; k < x_.inputs; ++k) {
      if (x_.varies[k] == all) continue;
      T* const own = numbers_.own(k);
      for (std::int64_t i = 0; i < in_grains(together * n); ++i) own[i] = T(0);
      if ((x_.varies[k] & ~inner) == 0)
        fill(k, 0, 0, together);
      else
        any = with_runs[k] = true;
    }
    const auto compute = [&](std::int64_t to, std::int64_t many) {
      for (int k = 0; k < x_.inputs; ++k)
        if (x_.varies[k] == all) numbers_.take(k, a_[k + 1], to, true, many);
      store(to, many);
    };
    if (!any) {
      for (std::int64_t to = begin; to < end; to += together * n)
        compute(to, end - to < together * n ? end - to : together * n);
      return;
    }
    std::int64_t here = 0;  // how many runs are in the chunk
    walk(x_, rows_, batch_size_, mine, [&](std::int64_t to, const std::int64_t* offset, std::int64_t) {
      for (int k = 0; k < x_.inputs; ++k)
        if (with_runs[k]) fill(k, offset[k], here, 1);
      if (++here < together && to + n < end) return;
      compute(to + n - here * n, here * n);
      here = 0;
    });
  }
  // Computes the formulas, on numbers that are all at hand, and stores the results in their place.
  void store(std::int64_t to, std::int64_t many) {
    T* const place = x_.result_type == dtype_of<T> ? at<T>(a_, 0) + to : nullptr;
    const T* const result = numbers_.compute(many, place);
    if (place != nullptr && result == place) return;
    with_element_type(x_.result_type, [&]<class R>() {
      R* y = at<R>(a_, 0) + to;
      for (std::int64_t i = 0; i < many; ++i) y[i] = to_element<R>(result[i]);
    });
  }
  // Computes a run of the innermost loop.
  void run_of(std::int64_t to, const std::int64_t* offset, std::int64_t n) {
    const auto moves = [&](int k) { return (x_.varies[k] >> (x_.loops - 1) & 1) != 0; };
    for (int k = 0; n != 0 && k < x_.inputs; ++k)
      if (!moves(k)) numbers_.take(k, a_[k + 1], offset[k], false, n < chunk ? n : chunk);
    for (std::int64_t j = 0; j < n; j += chunk) {
      const std::int64_t many = n - j < chunk ? n - j : chunk;
      for (int k = 0; k < x_.inputs; ++k)
        if (moves(k)) numbers_.take(k, a_[k + 1], offset[k] + j, true, many);
      store(to + j, many);
    }
  }
};

}  // namespace detail

}  // namespace gradus
