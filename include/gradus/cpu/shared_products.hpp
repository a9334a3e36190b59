// The code of products that depends neither on a model's extents nor on what is done with the sums. It is compiled
// once, in gradus::compiled (compiled/kernels.cpp), and a program that links that library compiles none of it.
#pragma once
#include "../base/build.hpp"

#include "direct_product.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

#if defined(GRADUS_COMPILED) && GRADUS_SIMD
// `declared` is extern, and nothing in compiled/kernels.cpp.
#define GRADUS_SHARED_PRODUCTS(declared, T)                                                                            \
  declared template void few_rows<T, fast>::all_panels<false>(std::int64_t, const few_rows<T, fast>::work&,            \
                                                              std::int64_t, const few_rows<T, fast>::panel_taker&);    \
  declared template void few_rows<T, fast>::all_panels<true>(std::int64_t, const few_rows<T, fast>::work&,             \
                                                             std::int64_t, const few_rows<T, fast>::panel_taker&);     \
  declared template void direct_product<T, fast>::shared_dots<pack<T, fast>>(T*, const T*, const T*, std::int64_t,     \
                                                                             std::int64_t, std::size_t);               \
  declared template void direct_product<T, fast>::shared_dots<lane<T, fast>>(T*, const T*, const T*, std::int64_t,     \
                                                                             std::int64_t, std::size_t);               \
  declared template void pack_columns<pack<T, fast>, T>(T*, std::int64_t, const matrix_operand<T>&, std::int64_t,      \
                                                        std::int64_t, std::int64_t, std::int64_t);                     \
  declared template void vector_products<T, fast>::chains(T*, std::int64_t, const T*, std::int64_t, const T*,          \
                                                          std::int64_t, std::int64_t);                                 \
  declared template void vector_products<T, fast>::trees_across(T*, std::int64_t, const T*, std::int64_t, const T*,    \
                                                                std::int64_t, std::int64_t);                           \
  declared template void vector_products<T, fast>::trees_along(T*, std::int64_t, const T*, const T*, std::int64_t,     \
                                                               std::int64_t);                                          \
  declared template void direct_product<T, fast>::packed_panel<1, 0, epilogue_call<T>>(std::int64_t, std::int64_t,     \
                                                                                       const epilogue_call<T>&) const; \
  declared template void direct_product<T, fast>::packed_panel<2, 0, epilogue_call<T>>(std::int64_t, std::int64_t,     \
                                                                                       const epilogue_call<T>&) const; \
  declared template void direct_product<T, fast>::single_row<epilogue_call<T>>(const epilogue_call<T>&) const;         \
  declared template void direct_product<T, fast>::columns_from<epilogue_call<T>>(std::int64_t,                         \
                                                                                 const epilogue_call<T>&) const;       \
  declared template void packed_product<T, fast>::run(const epilogue_call<T>&) const;
#define GRADUS_SHARED_TILE(declared, rows, registers, part)                                    \
  declared template std::int64_t tiles<pack<float, fast>, rows, registers, part>::down<as_is>( \
      const tile_work<float>&, std::int64_t, const as_is&);
// Tiles of all heights that rows_of chooses where it knows the number of rows, and of parts of registers.
#define GRADUS_SHARED_HEIGHTS(declared, registers, part) \
  GRADUS_SHARED_TILE(declared, 1, registers, part)       \
  GRADUS_SHARED_TILE(declared, 2, registers, part)       \
  GRADUS_SHARED_TILE(declared, 3, registers, part)       \
  GRADUS_SHARED_TILE(declared, 4, registers, part)       \
  GRADUS_SHARED_TILE(declared, 5, registers, part)       \
  GRADUS_SHARED_TILE(declared, 6, registers, part)
#define GRADUS_SHARED_HIGHER(declared, registers, part) \
  GRADUS_SHARED_TILE(declared, 7, registers, part)      \
  GRADUS_SHARED_TILE(declared, 8, registers, part)
#if defined(__AVX512F__) || defined(__aarch64__)
#define GRADUS_SHARED_HIGHEST(declared, registers, part) \
  GRADUS_SHARED_TILE(declared, 9, registers, part)       \
  GRADUS_SHARED_TILE(declared, 10, registers, part)      \
  GRADUS_SHARED_TILE(declared, 11, registers, part)      \
  GRADUS_SHARED_TILE(declared, 12, registers, part)
#define GRADUS_SHARED_TILES(declared, part) \
  GRADUS_SHARED_HEIGHTS(declared, 1, part)  \
  GRADUS_SHARED_HIGHER(declared, 1, part)   \
  GRADUS_SHARED_HIGHEST(declared, 1, part)  \
  GRADUS_SHARED_TILE(declared, 13, 1, part) \
  GRADUS_SHARED_TILE(declared, 14, 1, part) \
  GRADUS_SHARED_HEIGHTS(declared, 2, part)  \
  GRADUS_SHARED_HIGHER(declared, 2, part)   \
  GRADUS_SHARED_HIGHEST(declared, 2, part)  \
  GRADUS_SHARED_HEIGHTS(declared, 3, part)  \
  GRADUS_SHARED_HIGHER(declared, 3, part)   \
  GRADUS_SHARED_HEIGHTS(declared, 4, part)
#else
#define GRADUS_SHARED_TILES(declared, part) \
  GRADUS_SHARED_HEIGHTS(declared, 1, part)  \
  GRADUS_SHARED_HIGHER(declared, 1, part)   \
  GRADUS_SHARED_HEIGHTS(declared, 2, part)
#endif
#if defined(__AVX__)  // elsewhere no register is read in part
#define GRADUS_SHARED_CODE(declared)       \
  GRADUS_SHARED_PRODUCTS(declared, float)  \
  GRADUS_SHARED_PRODUCTS(declared, double) \
  GRADUS_SHARED_TILES(declared, false)     \
  GRADUS_SHARED_TILES(declared, true)
#else
#define GRADUS_SHARED_CODE(declared)       \
  GRADUS_SHARED_PRODUCTS(declared, float)  \
  GRADUS_SHARED_PRODUCTS(declared, double) \
  GRADUS_SHARED_TILES(declared, false)
#endif
GRADUS_SHARED_CODE(extern)
#endif

}  // namespace gradus::detail
