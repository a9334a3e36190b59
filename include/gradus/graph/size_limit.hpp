// Extents are ints, and where axes are joined (rows times columns, a group of summed axes) so are their products. A
// graph refuses, where it is built, every tensor for which such a product might not fit; so no shape rule, no pass and
// no kernel has to look at one again.
//
// A batch is known only when a step runs. Kernels multiply it in 64 bits: k * batch counts as k here, and
// step_machine::bind refuses a batch that is no int itself.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <limits>

#include "../base/error.hpp"
#include "node.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

inline constexpr int most_counted = 0x7fffffff;
// No machine of today has room for a tensor of more: 2^44 numbers of 8 bytes are what 47 bits of an address reach.
inline constexpr std::int64_t most_in_table = std::int64_t{1} << 44;
// A value of a constant is two words of the graph, whose pool doubles when it grows.
inline constexpr std::size_t most_constants = std::size_t{1} << 28;

// Returns the product of the extents from `axis` on, or a number above most_counted where the product is above it. An
// extent of 0 counts as 1, because a product may be one of the other extents alone.
constexpr std::int64_t product_of_extents(const shape& s, int axis) {
  std::int64_t n = 1;  // at most 2^62, since it ends where it is no int any more
  for (int i = axis; i < s.rank && n <= most_counted; ++i)
    n *= s.dims[i] > 0 ? s.dims[i] : s.dims[i] < 0 ? -std::int64_t{s.dims[i]} : 1;
  return n;
}
// Returns whether the product of any of its extents is an int.
constexpr bool is_counted(const shape& s) { return product_of_extents(s, 0) <= most_counted; }
// Returns whether that is so for the axes behind the first: a table may have more numbers than an int counts.
constexpr bool is_table(const shape& s) {
  if (is_counted(s)) return true;
  const std::int64_t rows = s.dims[0], width = product_of_extents(s, 1);
  return rows > 0 && width <= most_counted && rows * width <= most_in_table && !is_batched(s);
}
// Returns whether an op joins no axis with the first one in 32 bits. An elementwise kernel has its rows in 64 bits, and
// what only names memory has its elements; a kernel that moves or draws whole rows says so by its trait.
constexpr bool takes_tables(const card& op) {
  return op.is(trait::leaf | trait::elementwise | trait::view | trait::writes | trait::session | trait::control |
               trait::expression | trait::tables);
}
constexpr bool takes(const card& op, const shape& s) { return is_counted(s) || (takes_tables(op) && is_table(s)); }

// Returns what is wrong with a tensor that is too large for its op, and what to do.
[[gnu::cold]] constexpr const char* size_problem(const card& op, const shape& s) {
  if (is_batched(s))
    return " has more than 2147483647 elements for an example; choose smaller extents, or give the model an example "
           "in parts";
  if (takes_tables(op))
    return " has more than 2147483647 elements behind its first axis, or more than 2^44 in all; choose smaller "
           "extents, or make several tensors of it";
  return " has more than 2147483647 elements, which this op counts in 32 bits; choose smaller extents, or compute it "
         "in parts";
}
// A graph that keeps its refusal is built to its end; with these extents what follows can still be multiplied.
[[gnu::cold]] constexpr shape without_size(shape s) {
  for (int i = 0; i < s.rank; ++i) s.dims[i] = s.dims[i] < 0 ? batch : s.dims[i] > 1 ? 1 : s.dims[i];
  return s;
}

// Returns n elements in bytes, for a layout that the compiler computes. A processor of 32 bits addresses fewer than a
// graph may have; there this does not compile, where a size that begins again at 0 would.
constexpr std::size_t addressed(std::int64_t n, std::size_t each) {
  constexpr auto most = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());
  if (n < 0 || (each != 0 && static_cast<std::uint64_t>(n) > most / each))
    raise(status::invalid_argument, "a tensor takes more bytes than this processor addresses");
  return static_cast<std::size_t>(n) * each;
}

}  // namespace gradus::detail
