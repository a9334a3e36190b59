// This header gives matrix products to another library, for shapes that are large or not known before the program runs.
//
//   #include <gradus/cpu/cblas.hpp>
//   auto trainer = gradus::make_trainer<model>(gradus::products<gradus::cblas>{}, gradus::adam{.rate = 1e-3}, ...);
//
// `products<Library, A>` is the arithmetic A (by default `fast`), except that the library computes each product that it
// takes. The promises of docs/arithmetic.md do not hold for such a product: its bits are what that library, in that
// version, on that machine gives. Pieces of rows stay fixed by shape, so the number of this library's own threads still
// does not change the bits, as long as the other library gives the same bits for the same call.
//
// A Library has
//   template <class T> static constexpr bool multiplies;                     // whether it multiplies T at all
//   template <class T> static bool takes(std::int64_t m, std::int64_t n, std::int64_t k);
//   template <class T> static void multiply(matrix_operand<T> a, matrix_operand<T> b, T* c, std::int64_t stride,
//                                           std::int64_t m, std::int64_t n, std::int64_t k, product_into into);
// which means what gradus::multiply does (cpu/gemm.hpp). cpu/cblas.hpp and cpu/onednn.hpp each define a Library.
#pragma once
#include "../base/build.hpp"

#include <limits>

#include "gemm.hpp"

namespace gradus::inline GRADUS_BUILD {

// `products<cblas>` (cpu/cblas.hpp) and `products<onednn>` (cpu/onednn.hpp) give large matrix products to that library,
// whose bits they then have.
template <class Library, arithmetic A = fast>
struct products : A {
  using product_library = Library;
};

// Smaller products stay with this library, because a call of another library costs about as much as a product of this
// many multiplications.
inline constexpr std::int64_t least_library_product = std::int64_t{1} << 16;

// Returns true where every extent fits the ints of an interface of the seventies and the product is worth the call.
constexpr bool suits_library(std::int64_t m, std::int64_t n, std::int64_t k) {
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  return m > 1 && n > 1 && k > 0 && m <= most && n <= most && k <= most && m * n >= least_library_product / k;
}

namespace detail {

template <class A, class T>
concept has_product_library = requires { typename A::product_library; } && A::product_library::template multiplies<T>;

// These return what gemm calls alpha and beta.
template <class T>
constexpr T product_sign(product_into into) {
  return into == product_into::subtract ? T(-1) : T(1);
}
template <class T>
constexpr T product_start(product_into into) {
  return into == product_into::add || into == product_into::subtract ? T(1) : T(0);
}

// Computes the caller's share of `matrices` products that lie one after the other, with an epilogue, if the library
// takes them; returns whether it does. It calls the library for pieces of 256 rows, so that a library that chooses its
// order by shape gets the same shapes however many callers there are.
inline constexpr std::int64_t library_rows = 256;
template <class A, class T, class S, class E>
  requires(A::product_library::template multiplies<T>)
bool library_product(const S& s, const matrix_product<T>& all, std::int64_t matrices, const E& e) {
  using library = typename A::product_library;
  const auto finish = epilogue_call<T>::template of<pack<T, A>>(e);
  const std::int64_t m = all.m, n = all.n, k = all.k, pieces = (m + library_rows - 1) / library_rows;
  if (!library::template takes<T>(m, n, k)) return false;
  const auto mine = s.share(matrices * pieces);
  for (std::int64_t at = mine.first; at < mine.last; ++at) {
    const std::int64_t i = at / pieces, first = at % pieces * library_rows;
    matrix_product<T> g = all;
    g.a.at += i * m * k, g.b.at += i * k * n, g.c += i * m * n, g.row = i * m;
    g = g.part(first, m - first < library_rows ? m : first + library_rows, 0, n);
    library::template multiply<T>(g.a, g.b, g.c, g.stride, g.m, g.n, g.k, product_into::overwrite);
    finish(g);
    if constexpr (requires { e.stored(g.row, g.row + g.m, g.column, g.column + n); })
      e.stored(g.row, g.row + g.m, g.column, g.column + n);
  }
  return true;
}

}  // namespace detail
}  // namespace gradus
