// This header connects gradus to CBLAS (OpenBLAS, BLIS, MKL, Accelerate) for large matrix products of float and double.
// No other header includes it: include it where it is wanted and link the library (find_package(gradus COMPONENTS
// cblas), then gradus::cblas).
//
// Those libraries have threads of their own; OPENBLAS_NUM_THREADS=1 (BLIS_NUM_THREADS, MKL_NUM_THREADS) leaves the
// division of work to gradus. OpenBLAS chooses its kernels by the name of the processor and takes slow ones for a name
// that it does not know, five times slower where measured: OPENBLAS_CORETYPE=SKYLAKEX names one (docs/rooms/cpu.md).
#pragma once
#include "../base/build.hpp"

#include <cblas.h>

#include <type_traits>

#include "products.hpp"

namespace gradus::inline GRADUS_BUILD {

struct cblas {
  template <class T>
  static constexpr bool multiplies = std::is_same_v<T, float> || std::is_same_v<T, double>;
  template <class T>
  static constexpr bool takes(std::int64_t m, std::int64_t n, std::int64_t k) {
    return multiplies<T> && suits_library(m, n, k);
  }
  template <class T>
  static void multiply(matrix_operand<T> a, matrix_operand<T> b, T* c, std::int64_t stride, std::int64_t m,
                       std::int64_t n, std::int64_t k, product_into into = product_into::overwrite) {
    static_assert(multiplies<T>, "gradus: CBLAS multiplies float and double.");
    const auto op = [](bool transposed) { return transposed ? CblasTrans : CblasNoTrans; };
    const auto small = [](std::int64_t i) { return static_cast<int>(i); };
    const T alpha = detail::product_sign<T>(into), beta = detail::product_start<T>(into);
    if constexpr (std::is_same_v<T, float>)
      cblas_sgemm(CblasRowMajor, op(a.transposed), op(b.transposed), small(m), small(n), small(k), alpha, a.at,
                  small(a.stride), b.at, small(b.stride), beta, c, small(stride));
    else
      cblas_dgemm(CblasRowMajor, op(a.transposed), op(b.transposed), small(m), small(n), small(k), alpha, a.at,
                  small(a.stride), b.at, small(b.stride), beta, c, small(stride));
  }
};

}  // namespace gradus
