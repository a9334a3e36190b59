// The formulas of the elementwise ops, and the two ways to sweep an expression made of them: unrolled in the compiled
// step, and a chunk at a time in the interpreter. Every lane computes the same formula in the same order, so both give
// the same bits, tails included.
#pragma once
#include <type_traits>
#include <utility>

#include "kernel.hpp"
#include "math.hpp"

namespace gradus {

namespace detail {

// An integer as a number: one lane, wrapping around as hardware does.
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
  // Division by zero gives 0 (TensorFlow raises); the most negative over -1 wraps.
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

template <class N>
GRADUS_INLINE N truth(const auto& mask) {
  return select(mask, N(1), N(0));
}

}  // namespace detail

// ---- the formulas
#define GRADUS_FORMULA(card, parameters, result) \
  template <>                                    \
  struct formula<&cards::card> {                 \
    template <class N>                           \
    static GRADUS_INLINE N at parameters {       \
      return result;                             \
    }                                            \
  };
GRADUS_FORMULA(add, (N a, N b), a + b)
GRADUS_FORMULA(sub, (N a, N b), a - b)
GRADUS_FORMULA(mul, (N a, N b), a* b)
GRADUS_FORMULA(div, (N a, N b), a / b)
GRADUS_FORMULA(pow, (N a, N b), pow(a, b))
GRADUS_FORMULA(maximum, (N a, N b), max(a, b))
GRADUS_FORMULA(minimum, (N a, N b), min(a, b))
GRADUS_FORMULA(squared_difference, (N a, N b), (a - b) * (a - b))
GRADUS_FORMULA(greater, (N a, N b), detail::truth<N>(a > b))
GRADUS_FORMULA(greater_equal, (N a, N b), detail::truth<N>(a >= b))
GRADUS_FORMULA(less, (N a, N b), detail::truth<N>(a < b))
GRADUS_FORMULA(less_equal, (N a, N b), detail::truth<N>(a <= b))
GRADUS_FORMULA(equal, (N a, N b), detail::truth<N>(a == b))
GRADUS_FORMULA(not_equal, (N a, N b), detail::truth<N>(a != b))
GRADUS_FORMULA(logical_and, (N a, N b), a* b)
GRADUS_FORMULA(logical_or, (N a, N b), max(a, b))
GRADUS_FORMULA(logical_not, (N a), N(1) - a)
GRADUS_FORMULA(neg, (N a), -a)
GRADUS_FORMULA(exp, (N a), exp(a))
GRADUS_FORMULA(log, (N a), log(a))
GRADUS_FORMULA(log1p, (N a), log1p(a))
GRADUS_FORMULA(sqrt, (N a), sqrt(a))
GRADUS_FORMULA(rsqrt, (N a), N(1) / sqrt(a))
GRADUS_FORMULA(square, (N a), a* a)
GRADUS_FORMULA(abs, (N a), abs(a))
GRADUS_FORMULA(sign, (N a), sign(a))
GRADUS_FORMULA(floor, (N a), floor(a))
GRADUS_FORMULA(erf, (N a), erf(a))
GRADUS_FORMULA(tanh, (N a), tanh(a))
GRADUS_FORMULA(sigmoid, (N a), sigmoid(a))
GRADUS_FORMULA(relu, (N a), max(a, N(0)))
GRADUS_FORMULA(elu, (N a), select(a > N(0), a, exp(min(a, N(0))) - N(1)))
GRADUS_FORMULA(softplus, (N a), max(a, N(0)) + log1p(exp(-abs(a))))
GRADUS_FORMULA(cast, (N a), a)
GRADUS_FORMULA(broadcast_to, (N a), a)
GRADUS_FORMULA(select, (N c, N a, N b), select(c != N(0), a, b))
GRADUS_FORMULA(tanh_grad, (N dy, N y), dy*(N(1) - y * y))
GRADUS_FORMULA(sigmoid_grad, (N dy, N y), dy*(y*(N(1) - y)))
GRADUS_FORMULA(relu_grad, (N dy, N y), select(y > N(0), dy, N(0)))
GRADUS_FORMULA(elu_grad, (N dy, N y), select(y > N(0), dy, dy*(y + N(1))))
#undef GRADUS_FORMULA
namespace detail {
// What gelu multiplies x by: (1 + tanh u) / 2 = 1 / (1 + e^(-2 u)), u = sqrt(2/pi) (x + 0.044715 x^3).
template <class N>
GRADUS_INLINE N gelu_gate(N x, N square) {
  return N(1) /
         (N(1) + exp(x * fma(square, N::of(-2 * 0.7978845608028654 * 0.044715), N::of(-2 * 0.7978845608028654))));
}
}  // namespace detail
template <>
struct formula<&cards::gelu> {
  template <class N>
  static GRADUS_INLINE N at(N x) {
    return x * detail::gelu_gate(x, x * x);
  }
};
template <>
struct formula<&cards::gelu_grad> {
  template <class N>
  static GRADUS_INLINE N at(N dy, N x) {
    const N square = x * x, gate = detail::gelu_gate(x, square);
    const N slope = fma(square, N::of(6 * 0.7978845608028654 * 0.044715), N::of(2 * 0.7978845608028654));
    return dy * fma(gate * (N(1) - gate) * x, slope, gate);
  }
};

namespace detail {

// Memory to numbers and back, converting where the types differ.
template <class N, class U>
GRADUS_INLINE N load_as(const U* p, std::size_t n) {
  using T = typename N::value_type;
  if constexpr (std::is_same_v<T, U>) {
    return n >= N::width ? N::load(p) : N::load_partial(p, n);
  } else {
    alignas(64) T converted[N::width];
    for (std::size_t i = 0; i < N::width; ++i) converted[i] = i < n ? static_cast<T>(p[i]) : T(0);
    return N::load(converted);
  }
}
// Rounds toward zero; what does not fit gives the nearest that does, NaN gives 0 (C++ leaves both undefined).
template <class To, class From>
constexpr To to_element(From x) {
  if constexpr (std::is_same_v<To, bool>)
    return x != From(0);
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
template <class N, class R>
GRADUS_INLINE void store_as(N x, R* p, std::size_t n) {
  using T = typename N::value_type;
  if constexpr (std::is_same_v<T, R>) {
    if (n >= N::width)
      x.store(p);
    else
      x.store_partial(p, n);
  } else {
    alignas(64) T values[N::width];
    x.store(values);
    for (std::size_t i = 0; i < N::width && i < n; ++i) p[i] = to_element<R>(values[i]);
  }
}

// An expression is divided along its outermost loop; if that is the innermost too, so that parts begin on cache lines.
constexpr std::int64_t grain_of(const expression& x) { return x.loops == 1 ? 64 : 1; }

// Walks the outer loops of an expression, of a share of the outermost one; visit(result offset, operand offsets, n)
// sees each run of n elements of the innermost one.
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

// ---- compiled: the whole expression in registers
template <class A, expression X>
struct unrolled {
  using T = element_t<X.type>;
  using R = element_t<X.result_type>;
  using N = number_of<T, A>;
  static constexpr bool moves(int k) { return X.varies[k] >> (X.loops - 1) & 1; }

  template <int K>
  static GRADUS_INLINE N operand(std::byte* const* a, const std::int64_t* offset, std::int64_t j, std::size_t n) {
    return load_as<N>(at<const element_t<X.operand_type[K]>>(a, K + 1) + offset[K] + j, n);
  }
  template <int Step>
  static GRADUS_INLINE void step(N* local) {
    constexpr auto& from = X.arg[Step];
    N& out = local[X.inputs + Step];
    if constexpr (X.op[Step]->operands == 1)
      out = formula<X.op[Step]>::at(local[from[0]]);
    else if constexpr (X.op[Step]->operands == 2)
      out = formula<X.op[Step]>::at(local[from[0]], local[from[1]]);
    else
      out = formula<X.op[Step]>::at(local[from[0]], local[from[1]], local[from[2]]);
  }
  template <int... K, int... Step>
  static GRADUS_INLINE void sweep(std::byte* const* a, std::int64_t to, const std::int64_t* offset, std::int64_t n,
                                  std::integer_sequence<int, K...>, std::integer_sequence<int, Step...>) {
    N fixed_operand[X.inputs + 1];
    ((void)(!moves(K) &&
            (fixed_operand[K] = N(static_cast<T>(at<const element_t<X.operand_type[K]>>(a, K + 1)[offset[K]])), true)),
     ...);
    R* y = at<R>(a, 0) + to;
    const auto some = [&](std::int64_t j, std::size_t count) __attribute__((always_inline)) {
      N local[X.inputs + X.steps];
      ((void)(local[K] = moves(K) ? operand<K>(a, offset, j, count) : fixed_operand[K]), ...);
      (step<Step>(local), ...);
      store_as<N>(local[X.inputs + X.steps - 1], y + j, count);
    };
    constexpr std::int64_t width = N::width;
    std::int64_t j = 0;
    for (; j + width <= n; j += width) some(j, N::width);
    if (j < n) some(j, static_cast<std::size_t>(n - j));
  }
  // The loops around the innermost one, as `walk` makes them, with everything known now.
  struct bounds {
    std::int64_t rows, batch_size;
    template <int L>
    GRADUS_INLINE std::int64_t extent() const {
      return extent_at(X.extent[L], rows, batch_size);
    }
    // How far operand K moves when loop L takes a step.
    template <int K, int L, int Inner = X.loops - 1>
    GRADUS_INLINE std::int64_t stride() const {
      if constexpr (Inner == L)
        return X.varies[K] >> L & 1;
      else if constexpr ((X.varies[K] >> Inner & 1) != 0)
        return extent<Inner>() * stride<K, L, Inner - 1>();
      else
        return stride<K, L, Inner - 1>();
    }
  };
  template <int L, int... K>
  static GRADUS_INLINE void loop(const bounds& b, std::byte* const* a, std::int64_t& to, const std::int64_t* offset,
                                 std::integer_sequence<int, K...> operands) {
    const std::int64_t n = b.template extent<L>();
    if constexpr (L == X.loops - 1) {
      sweep(a, to, offset, n, operands, std::make_integer_sequence<int, X.steps>{});
      to += n;
    } else {
      std::int64_t at[] = {offset[K]..., 0};
      for (std::int64_t i = 0; i < n; ++i) {
        loop<L + 1>(b, a, to, at, operands);
        ((at[K] += b.template stride<K, L>()), ...);
      }
    }
  }
  // Part of the outermost loop.
  template <int... L, int... K>
  static GRADUS_INLINE void outermost(const bounds& b, std::byte* const* a, const index_range& mine,
                                      std::integer_sequence<int, L...>, std::integer_sequence<int, K...> operands) {
    std::int64_t to = (mine.first * ... * b.template extent<L + 1>());
    std::int64_t at[] = {mine.first * b.template stride<K, 0>()..., 0};
    if constexpr (X.loops == 1) {
      sweep(a, to, at, mine.last - mine.first, operands, std::make_integer_sequence<int, X.steps>{});
    } else {
      for (std::int64_t i = mine.first; i < mine.last; ++i) {
        loop<1>(b, a, to, at, operands);
        ((at[K] += b.template stride<K, 0>()), ...);
      }
    }
  }
  template <class S>
  static void run(const S& s, std::byte* const* a) {
    const bounds b{s.rows, s.batch_size};
    outermost(b, a, s.share(b.template extent<0>(), grain_of(X)), std::make_integer_sequence<int, X.loops - 1>{},
              std::make_integer_sequence<int, X.inputs>{});
  }
};

// ---- interpreted: one formula at a time over a chunk that stays in cache
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
    walk(x_, s.rows, s.batch_size, mine,
         [this](std::int64_t to, const std::int64_t* offset, std::int64_t n) { row(to, offset, n); });
  }

private:
  const expression& x_;
  const chunk_function* steps_;
  std::byte* const* a_;
  alignas(64) T local_[max_operands + max_steps][chunk];

  template <class F>
  static void with_type(dtype t, F f) {
    switch (t) {
    case float32: return f.template operator()<float>();
    case float64: return f.template operator()<double>();
    case int32: return f.template operator()<std::int32_t>();
    case int64: return f.template operator()<std::int64_t>();
    case uint8: return f.template operator()<std::uint8_t>();
    default: return f.template operator()<bool>();
    }
  }
  // A run of the innermost loop. Whole chunks of the computed type are read and written where they lie.
  void row(std::int64_t to, const std::int64_t* offset, std::int64_t n) {
    const T* number[max_operands + max_steps] = {};  // where each local is
    bool moves[max_operands] = {}, in_place[max_operands] = {};
    for (int k = 0; k < x_.inputs; ++k) {
      moves[k] = (x_.varies[k] >> (x_.loops - 1) & 1) != 0;
      in_place[k] = moves[k] && x_.operand_type[k] == dtype_of<T>;
      number[k] = local_[k];
      if (!moves[k] && n != 0)
        with_type(x_.operand_type[k], [&]<class U>() {
          const auto value = static_cast<T>(at<const U>(a_, k + 1)[offset[k]]);
          for (T& to_fill : local_[k]) to_fill = value;
        });
    }
    for (int s = 0; s < x_.steps; ++s) number[x_.inputs + s] = local_[x_.inputs + s];
    const bool stores_in_place = x_.result_type == dtype_of<T>;
    for (std::int64_t j = 0; j < n; j += chunk) {
      const std::int64_t many = n - j < chunk ? n - j : chunk;
      for (int k = 0; k < x_.inputs; ++k) {
        if (in_place[k] && many == chunk) {
          number[k] = at<const T>(a_, k + 1) + offset[k] + j;
        } else if (moves[k]) {
          number[k] = local_[k];
          with_type(x_.operand_type[k], [&]<class U>() {
            const U* from = at<const U>(a_, k + 1) + offset[k] + j;
            for (std::int64_t i = 0; i < chunk; ++i) local_[k][i] = i < many ? static_cast<T>(from[i]) : T(0);
          });
        }
      }
      const bool here = stores_in_place && many == chunk;
      for (int s = 0; s < x_.steps; ++s) {
        const auto& from = x_.arg[s];
        T* result = here && s == x_.steps - 1 ? at<T>(a_, 0) + to + j : local_[x_.inputs + s];
        steps_[s](result, number[from[0]], number[from[1]], number[from[2]]);
      }
      if (here) continue;
      with_type(x_.result_type, [&]<class R>() {
        R* y = at<R>(a_, 0) + to + j;
        for (std::int64_t i = 0; i < many; ++i) y[i] = to_element<R>(local_[x_.inputs + x_.steps - 1][i]);
      });
    }
  }
};

}  // namespace detail

template <>
struct kernel<&cards::fused> {
  static constexpr bool divides = true;

  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    if constexpr (S::is_fixed) {
      detail::unrolled<A, S::value.formula>::run(s, a);
    } else {
      switch (s.value.formula.type) {
      case float32: detail::interpreting<float>(s, a); break;
      case float64: detail::interpreting<double>(s, a); break;
      case int32: detail::interpreting<std::int32_t>(s, a); break;
      case int64: detail::interpreting<std::int64_t>(s, a); break;
      default: detail::interpreting<std::uint8_t>(s, a);
      }
    }
  }
};

using elementwise_ops =
    op_list<&cards::add, &cards::sub, &cards::mul, &cards::div, &cards::pow, &cards::maximum, &cards::minimum,
            &cards::squared_difference, &cards::greater, &cards::greater_equal, &cards::less, &cards::less_equal,
            &cards::equal, &cards::not_equal, &cards::logical_and, &cards::logical_or, &cards::logical_not, &cards::neg,
            &cards::exp, &cards::log, &cards::log1p, &cards::sqrt, &cards::rsqrt, &cards::square, &cards::abs,
            &cards::sign, &cards::floor, &cards::erf, &cards::tanh, &cards::sigmoid, &cards::relu, &cards::elu,
            &cards::gelu, &cards::softplus, &cards::cast, &cards::broadcast_to, &cards::select, &cards::tanh_grad,
            &cards::sigmoid_grad, &cards::relu_grad, &cards::elu_grad, &cards::gelu_grad, &cards::fused>;

}  // namespace gradus
