// Gradients as a program hands them over: an array, or some rows of one, for the variable of a name.
#pragma once
#include <string_view>

#include "../base/error.hpp"
#include "../tensor/access.hpp"

namespace gradus {

// The gradient of some rows of a variable (tf.IndexedSlices): `rows` is a vector of int32 or int64, in any order and
// with repetitions, `values` is [rows, the variable's other extents] (a flat array of that many elements does too).
// Where `rows` is [bags, k], each of the `values`, [bags, ...], belongs to all k rows of its bag: the gradient of a sum
// over bags of rows, without copies.
struct indexed_slices {
  const_tensor_view rows, values;

  template <readable_array Rows, readable_array Values>
  indexed_slices(const Rows& r, const Values& v) : rows(read_view(r)), values(read_view(v)) {}
};

// "The gradient of `name` is ...": an array or indexed_slices.
struct named_gradient {
  std::string_view name;
  const_tensor_view values;
  const_tensor_view rows;  // of a sparse gradient
  bool sparse = false;

  template <readable_array X>
  named_gradient(std::string_view n, const X& dense) : name(n), values(read_view(dense)) {}
  named_gradient(std::string_view n, const indexed_slices& s) : name(n), values(s.values), rows(s.rows), sparse(true) {}
  // Rows that share a value.
  std::size_t per_value() const { return rows.dims.rank == 2 ? static_cast<std::size_t>(rows.dims[1]) : 1; }
};

namespace detail {

// Whether the gradient's extents are those of a variable; row numbers are not looked at.
inline void check_extents(const named_gradient& g, const extents& variable) {
  const auto size = static_cast<std::size_t>(count(variable));
  if (!g.sparse) {
    if (g.values.size() != size || (g.values.dims.rank > 1 && variable.rank > 1 && g.values.dims != variable))
      raise(status::invalid_argument, text("the gradient of \"", g.name, "\" is ", to_text(g.values.dims),
                                           "; expected ", to_text(variable), ", as the variable"));
    return;
  }
  if (variable.rank == 0)
    raise(status::invalid_argument, text("\"", g.name, "\" is a scalar and has no rows; give a dense gradient"));
  if (g.rows.type != int32 && g.rows.type != int64)
    raise(status::invalid_argument,
          text("the row numbers for \"", g.name, "\" are ", name_of(g.rows.type), "; expected int32 or int64"));
  if (g.rows.dims.rank != 1 && g.rows.dims.rank != 2)
    raise(status::invalid_argument, text("the row numbers for \"", g.name, "\" are ", to_text(g.rows.dims),
                                         "; expected a vector, or bags of rows [bags, k]"));
  const std::size_t n = static_cast<std::size_t>(g.rows.dims[0]),
                    width = variable[0] == 0 ? 0 : size / static_cast<std::size_t>(variable[0]);
  extents expected = variable;
  expected.dims[0] = static_cast<std::int64_t>(n);
  if (g.values.size() != n * width || (g.values.dims.rank > 1 && g.values.dims != expected))
    raise(status::invalid_argument, text("the values for ", n, g.rows.dims.rank == 1 ? " rows" : " bags", " of \"",
                                         g.name, "\" are ", to_text(g.values.dims), "; expected ", to_text(expected)));
}

}  // namespace detail
}  // namespace gradus
