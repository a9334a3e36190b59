// A program passes gradients in this form: an array, or some rows of one, for the variable of a name.
#pragma once
#include "../base/build.hpp"

#include <string_view>

#include "../base/error.hpp"
#include "../tensor/access.hpp"

namespace gradus::inline GRADUS_BUILD {

// The gradient of some rows of a variable (tf.IndexedSlices): `rows` is a vector of int32 or int64, in any order and
// with repetitions, `values` is [rows, the variable's other extents] (a flat array of that many elements is accepted
// too). Where `rows` is [bags, k], each of the `values`, [bags, ...], belongs to all k rows of its bag: this is the
// gradient of a sum over bags of rows, without copies.
struct indexed_slices {
  const_tensor_view rows, values;

  template <readable_array Rows, readable_array Values>
  indexed_slices(const Rows& r, const Values& v) : rows(read_view(r)), values(read_view(v)) {}
};

// The gradient of the variable `name`: an array or indexed_slices.
struct named_gradient {
  std::string_view name;
  const_tensor_view values;
  const_tensor_view rows;  // of a sparse gradient
  bool sparse = false;

  template <readable_array X>
  named_gradient(std::string_view n, const X& dense) : name(n), values(read_view(dense)) {}
  named_gradient(std::string_view n, const indexed_slices& s) : name(n), values(s.values), rows(s.rows), sparse(true) {}
  // Returns how many rows share a value.
  std::size_t per_value() const { return rows.dims.rank == 2 ? static_cast<std::size_t>(rows.dims[1]) : 1; }
};

namespace detail {

// Checks that the gradient's extents are those of a variable; it does not read row numbers.
void check_extents(const named_gradient& g, const extents& variable);

}  // namespace detail
}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "named_gradient.ipp"
#endif
