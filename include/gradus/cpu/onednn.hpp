// This header lets oneDNN (2.x and 3.x) compute large matrix products of floats. No other header includes it: include
// it where it is wanted and link the library (find_package(gradus COMPONENTS onednn), then gradus::onednn). Products of
// doubles stay with this library.
//
// oneDNN has threads of its own, those of OpenMP in most builds; OMP_NUM_THREADS=1 leaves the dividing to this library.
#pragma once
#include "../base/build.hpp"

#include <oneapi/dnnl/dnnl.h>

#include <type_traits>

#include "../base/error.hpp"
#include "products.hpp"

namespace gradus::inline GRADUS_BUILD {

struct onednn {
  template <class T>
  static constexpr bool multiplies = std::is_same_v<T, float>;
  template <class T>
  static constexpr bool takes(std::int64_t m, std::int64_t n, std::int64_t k) {
    return multiplies<T> && suits_library(m, n, k);
  }
  // Raises status::internal where oneDNN refuses, which it does for want of memory.
  template <class T>
  static void multiply(matrix_operand<T> a, matrix_operand<T> b, T* c, std::int64_t stride, std::int64_t m,
                       std::int64_t n, std::int64_t k, product_into into = product_into::overwrite) {
    if constexpr (multiplies<T>) {
      const auto op = [](bool transposed) { return transposed ? 'T' : 'N'; };
      const dnnl_status_t said = dnnl_sgemm(op(a.transposed), op(b.transposed), m, n, k, detail::product_sign<T>(into),
                                            a.at, a.stride, b.at, b.stride, detail::product_start<T>(into), c, stride);
      if (said != dnnl_success)
        raise(status::internal, text("oneDNN did not multiply [", m, ", ", k, "] by [", k, ", ", n, "]: its status is ",
                                     static_cast<int>(said), "; leave gradus::products<gradus::onednn> out"));
    } else {
      static_assert(multiplies<T>, "gradus: oneDNN multiplies float.");
    }
  }
};

}  // namespace gradus
