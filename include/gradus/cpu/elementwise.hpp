// This header has the formulas of the elementwise ops, and the unrolled sweep by which the compiled step computes an
// expression made of them. (The interpreter's sweep is in cpu/interpret.hpp.) Every lane computes the same formula in
// the same order, so both give the same bits, tails included.
#pragma once
#include "../base/build.hpp"

#include <type_traits>
#include <utility>

#include "interpret.hpp"
#include "math.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

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
GRADUS_FORMULA(relu, (N a), select(a <= N(0), N(0), a))  // a NaN stays a NaN
GRADUS_FORMULA(elu, (N a), select(a <= N(0), exp(min(a, N(0))) - N(1), a))
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
// Returns what gelu multiplies x by: (1 + tanh u) / 2 = 1 / (1 + e^(-2 u)), u = sqrt(2/pi) (x + 0.044715 x^3).
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

// These load numbers from memory and store them, converting where the types differ.
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

// Rows of up to this length are swept as one run (unrolled::sweep_rows): this takes 1 KB of stack (float) for each
// operand that repeats.
inline constexpr std::int64_t longest_row = 256;

// This sweeps an expression with all its intermediate results in registers.
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
    N fixed_operand[static_cast<std::size_t>(X.inputs + 1)];
    ((void)(!moves(K) &&
            (fixed_operand[K] = N(static_cast<T>(at<const element_t<X.operand_type[K]>>(a, K + 1)[offset[K]])), true)),
     ...);
    R* y = at<R>(a, 0) + to;
    const auto some = [&](std::int64_t j, std::size_t count) __attribute__((always_inline)) {
      N local[static_cast<std::size_t>(X.inputs + X.steps)];
      ((void)(local[K] = moves(K) ? operand<K>(a, offset, j, count) : fixed_operand[K]), ...);
      (step<Step>(local), ...);
      store_as<N>(local[X.inputs + X.steps - 1], y + j, count);
    };
    constexpr std::int64_t width = N::width;
    std::int64_t j = 0;
    for (; j + width <= n; j += width) some(j, N::width);
    if (j < n) some(j, static_cast<std::size_t>(n - j));
  }
  // Rows that repeat and whose length is not a multiple of the register width are swept as one run. Swept row by row, a
  // part of a register would be stored and the memory behind it read at once, which takes longest where the result lies
  // in its operand's place. What is the same in each row is read from a copy that goes on for a register past the row's
  // end.
  static constexpr std::int64_t row = repeats_by_rows(X) ? X.extent[1] : 0;
  static constexpr bool in_one_run = row % static_cast<std::int64_t>(N::width) != 0 && row <= longest_row;
  template <int... K, int... Step>
  static GRADUS_INLINE void sweep_rows(std::byte* const* a, const index_range& mine, std::integer_sequence<int, K...>,
                                       std::integer_sequence<int, Step...>) {
    constexpr std::int64_t width = N::width;
    T copy[static_cast<std::size_t>(X.inputs + 1)][static_cast<std::size_t>(row + width)];
    N same[static_cast<std::size_t>(X.inputs + 1)];
    const auto read = [&]<int Operand>(std::integral_constant<int, Operand>) {
      const auto* x = at<const element_t<X.operand_type[Operand]>>(a, Operand + 1);
      if constexpr (X.varies[Operand] == 0) same[Operand] = N(static_cast<T>(x[0]));
      if constexpr (X.varies[Operand] == along_columns)
        for (std::int64_t i = 0; i < row + width; ++i) copy[Operand][i] = static_cast<T>(x[i % row]);
    };
    (read(std::integral_constant<int, K>{}), ...);
    const std::int64_t none[static_cast<std::size_t>(X.inputs + 1)] = {};
    std::int64_t column = 0;
    const auto some = [&](std::int64_t j, std::size_t count) __attribute__((always_inline)) {
      N local[static_cast<std::size_t>(X.inputs + X.steps)];
      ((void)(local[K] = X.varies[K] == 0               ? same[K]
                         : X.varies[K] == along_columns ? N::load(copy[K] + column)
                                                        : operand<K>(a, none, j, count)),
       ...);
      (step<Step>(local), ...);
      store_as<N>(local[X.inputs + X.steps - 1], at<R>(a, 0) + j, count);
      column += width % row;
      if (column >= row) column -= row;
    };
    std::int64_t j = mine.first * row;
    for (; j + width <= mine.last * row; j += width) some(j, N::width);
    if (j < mine.last * row) some(j, static_cast<std::size_t>(mine.last * row - j));
  }
  // These are the extents and strides of the loops, as `walk` computes them, for an expression that is a constant.
  struct bounds {
    std::int64_t rows, batch_size;
    template <int L>
    GRADUS_INLINE std::int64_t extent() const {
      return extent_at(X.extent[L], rows, batch_size);
    }
    // Returns how far operand K moves, in elements, when loop L takes a step.
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
  // Sweeps this caller's part of the outermost loop.
  template <int... L, int... K>
  static GRADUS_INLINE void outermost(const bounds& b, std::byte* const* a, const index_range& mine,
                                      std::integer_sequence<int, L...>, std::integer_sequence<int, K...> operands) {
    std::int64_t to = (mine.first * ... * b.template extent<L + 1>());
    std::int64_t at[] = {mine.first * b.template stride<K, 0>()..., 0};
    if constexpr (X.loops == 1) {
      sweep(a, to, at, mine.last - mine.first, operands, std::make_integer_sequence<int, X.steps>{});
    } else if constexpr (in_one_run) {
      sweep_rows(a, mine, operands, std::make_integer_sequence<int, X.steps>{});
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

}  // namespace detail

template <>
struct op_kernel<&cards::fused> {
  static constexpr bool divides = true;

  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    if constexpr (S::is_fixed) {
      detail::unrolled<A, S::value.formula>::run(s, a);
    } else {
      const expression& x = s.value.formula;
      const auto run = [&]<class T>() {
        detail::interpreting<T>(x, s.steps, a, s.rows, s.batch_size)
            .run(s.share(detail::extent_at(x.extent[0], s.rows, s.batch_size), detail::grain_of(x)));
      };
      switch (x.type) {
      case float32: run.template operator()<float>(); break;
      case float64: run.template operator()<double>(); break;
      case int32: run.template operator()<std::int32_t>(); break;
      case int64: run.template operator()<std::int64_t>(); break;
      default: run.template operator()<std::uint8_t>();
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
