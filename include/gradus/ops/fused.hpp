// These are the ops that pass/fuse.hpp makes: an expression of formulas alone, behind a product, or in front of a
// reduction. The last word of each op's attributes is the number of its expression.
#pragma once
#include "matmul.hpp"
#include "reduce.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// The rows (dims 0) and columns (dims 1) of the expression, whether the rows are summed or the columns, and whether the
// sum is divided by their number.
struct fused_reduction_attr {
  int rows, columns, sums_rows, mean, expression;
};
GRADUS_CARD_FUNCTION void lower_fused_reduction(lowering& l) {
  const auto a = l.attributes<fused_reduction_attr>();
  l.dims[0] = a.rows, l.dims[1] = a.columns, l.dims[2] = a.sums_rows, l.dims[3] = a.mean;
}
struct fused_matmul_attr {
  matmul_attr product;
  int expression;
};

}  // namespace detail

namespace cards {
// The operands are the product's two, then those of the expression without its first, which is the product.
inline constexpr card fused_matmul{"FusedMatMul", -1, trait::expression, nullptr, nullptr, lower_matmul};
inline constexpr card fused_reduction{"FusedReduction", -1, trait::expression, nullptr, nullptr, lower_fused_reduction};
}  // namespace cards

}  // namespace gradus
