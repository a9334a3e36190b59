// This header defines the form of a kernel, and how one source text serves both the compiled step and the interpreter.
//
//   template <>
//   struct op_kernel<&cards::softmax> {
//     template <class A, class S>                        // A: the arithmetic (fast, portable)
//     static void run(const S& s, std::byte* const* a) { // a[0] is the result, a[1] ... the operands
//       dispatch_type<0, float, double>(s, [&]<class T>() {  // T is the element type of types[0], the result's
//         T* y = at<T>(a, 0);
//         for (std::int64_t row = 0; row < s.dim(0); ++row) ...
//
// In the compiled step S is fixed<signature>, and dim(1) folds to a constant. In the interpreter dim(1) reads the
// signature.
//
// A kernel whose work falls into pieces that share no result can be divided among threads. It says so with
//   static constexpr bool divides = true;
// and then does only the pieces of its share:
//   const index_range mine = s.share(s.dim(0)); for (r = mine.first; r < mine.last; ...
// What the pieces are, and the bits of each, may depend on the shape only, never on how many callers there are.
#pragma once
#include "../base/build.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

#include "../ops/elementwise.hpp"

namespace gradus::inline GRADUS_BUILD {

// This template is specialized once per op. An op whose card has no specialization cannot run on this device.
template <const card* Op>
struct op_kernel {
  static_assert(Op == nullptr,
                "gradus: this op has no kernel here. Include the header of its kernel (of frozen layers: "
                "gradus/cpu/frozen.hpp), or specialize gradus::op_kernel<&your_card> for an op of yours.");
};
// This holds the formula of an elementwise op on numbers: template <class N> static N at(N a, N b).
template <const card* Op>
struct formula;

// These are the pieces first <= i < last.
struct index_range {
  std::int64_t first, last;
};

namespace detail {
// Returns which of n pieces belong to part `part`. Parts are nearly equal runs that begin at multiples of `grain`.
constexpr index_range share_of(std::int64_t n, std::int64_t grain, int part, int parts) {
  const std::int64_t grains = (n + grain - 1) / grain;
  const std::int64_t first = grains * part / parts * grain, last = grains * (part + 1) / parts * grain;
  return {first < n ? first : n, last < n ? last : n};
}
template <const card* Op>
concept divisible = requires { requires op_kernel<Op>::divides; };

constexpr std::int64_t extent_at(int d, std::int64_t rows, std::int64_t batch_size) {
  return d > 0 ? d : d == 0 ? rows : -static_cast<std::int64_t>(d) * batch_size;
}
}  // namespace detail

namespace detail {
template <signature Signature>
struct fixed {
  static constexpr bool is_fixed = true;
  std::int64_t rows, batch_size;
  int part = 0, parts = 1;
  static constexpr const signature& value = Signature;  // NOLINT: a template parameter object
  static constexpr dtype type(int i) { return Signature.types[i]; }
  static constexpr int raw(int i) { return Signature.dims[i]; }  // the value as lowered, for flags and constants
  constexpr std::int64_t dim(int i) const { return extent_at(Signature.dims[i], rows, batch_size); }
  constexpr index_range share(std::int64_t n, std::int64_t grain = 1) const {
    return parts == 1 ? index_range{0, n} : share_of(n, grain, part, parts);
  }
};
// This is `fixed` with the rows and the batch size as constants, so that every extent is one. It is never divided.
template <signature Signature, std::int64_t Rows, std::int64_t Batch>
struct fixed_batch {
  static constexpr bool is_fixed = true;
  static constexpr std::int64_t rows = Rows, batch_size = Batch;
  static constexpr const signature& value = Signature;  // NOLINT: a template parameter object
  static constexpr dtype type(int i) { return Signature.types[i]; }
  static constexpr int raw(int i) { return raws[static_cast<std::size_t>(i)]; }
  static constexpr std::int64_t dim(int i) { return extents[static_cast<std::size_t>(i)]; }
  static constexpr index_range share(std::int64_t n, std::int64_t = 1) { return {0, n}; }

private:
  // These stand apart from the signature, so that a program that reads an extent while it runs does not keep the op's
  // card, which leads to all the code that builds and differentiates graphs.
  static constexpr auto extents = [] {
    std::array<std::int64_t, max_extents> all{};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = extent_at(Signature.dims[i], Rows, Batch);
    return all;
  }();
  static constexpr auto raws = [] {
    std::array<int, max_extents> all{};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = Signature.dims[i];
    return all;
  }();
};
struct dynamic {
  static constexpr bool is_fixed = false;
  std::int64_t rows, batch_size;
  int part, parts;
  const signature& value;
  const void* steps = nullptr;  // the formulas of a fused expression, as functions
  dtype type(int i) const { return value.types[i]; }
  int raw(int i) const { return value.dims[i]; }
  std::int64_t dim(int i) const { return extent_at(value.dims[i], rows, batch_size); }
  index_range share(std::int64_t n, std::int64_t grain = 1) const { return share_of(n, grain, part, parts); }
};
}  // namespace detail

// Calls f with the element type of types[I], which is resolved at compile time in a compiled step and chosen among Ts
// in the interpreter.
template <int I, class... Ts, class S, class F>
void dispatch_type(const S& s, F f) {
  if constexpr (S::is_fixed) {
    f.template operator()<element_t<S::type(I)>>();
  } else {
    const bool found = ((s.type(I) == dtype_of<Ts> ? (f.template operator()<Ts>(), true) : false) || ...);
    if (!found) raise(status::unimplemented, text(s.value.op->name, " has no kernel for ", name_of(s.type(I))));
  }
}

template <class T>
T* at(std::byte* const* a, int i) {
  return reinterpret_cast<T*>(a[i]);
}

}  // namespace gradus
