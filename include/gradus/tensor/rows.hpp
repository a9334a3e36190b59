// A sparse gradient consists of rows of a table, given by their numbers.
#pragma once
#include "../base/build.hpp"

#include <bit>
#include <cstdint>
#include <vector>

#include "access.hpp"

namespace gradus::inline GRADUS_BUILD {

// Rows and their values, which this object owns. `values()` is [rows, the extents of one row];
// `gradus::indexed_slices{m.rows(), m.values()}` is a gradient for an updater.
class row_values {
public:
  row_values(dtype row_type, dtype value_type, const extents& dims)
      : row_type_(row_type),
        value_type_(value_type),
        dims_(dims),
        rows_(static_cast<std::size_t>(dims[0]) * size_of(row_type)),
        values_(static_cast<std::size_t>(gradus::count(dims)) * size_of(value_type)) {}
  std::size_t size() const { return static_cast<std::size_t>(dims_[0]); }
  tensor_view rows() { return {row_type_, {dims_[0]}, rows_.data()}; }
  const_tensor_view rows() const { return {row_type_, {dims_[0]}, rows_.data()}; }
  tensor_view values() { return {value_type_, dims_, values_.data()}; }
  const_tensor_view values() const { return {value_type_, dims_, values_.data()}; }

private:
  dtype row_type_, value_type_;
  extents dims_;
  aligned_buffer rows_, values_;
};

namespace detail {
// Sets place[i] to the index of the distinct row that value i belongs to, in order of first occurrence. Returns the
// number of distinct rows.
template <class Index>
std::size_t places_of(std::span<const Index> rows, std::vector<std::size_t>& place) {
  const std::size_t n = rows.size(), size = std::bit_ceil(2 * n + 1);
  constexpr std::size_t free = ~std::size_t{0};
  std::vector<std::size_t> table(size, free), first;  // first[d]: where distinct row d occurs first
  const int shift = 64 - std::countr_zero(size);
  place.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t b = static_cast<std::size_t>(static_cast<std::uint64_t>(rows[i]) * 0x9E3779B97F4A7C15u >> shift);
    while (table[b] != free && rows[first[table[b]]] != rows[i]) b = (b + 1) & (size - 1);
    if (table[b] == free) table[b] = first.size(), first.push_back(i);
    place[i] = table[b];
  }
  return first.size();
}
// Calls f<T>() for the dtype of numbers.
template <class F>
void with_number(dtype t, F f) {
  switch (t) {
  case dtype::float32: return f.template operator()<float>();
  case dtype::float64: return f.template operator()<double>();
  case dtype::int32: return f.template operator()<std::int32_t>();
  case dtype::int64: return f.template operator()<std::int64_t>();
  default: raise(status::invalid_argument, text("expected numbers, found ", name_of(t)));
  }
}
}  // namespace detail

// Returns each row once, in order of first occurrence, with the sum of its values in order of arrival, as every sparse
// update does first (TensorFlow's _deduplicate_indexed_slices). `rows` is a vector of int32 or int64, any numbers in
// any order; `values` is [rows, ...], or a flat array of as many elements: then the result is [distinct rows, width].
template <readable_array Rows, readable_array Values>
row_values merge_rows(const Rows& rows, const Values& values) {
  const const_tensor_view at = read_view(rows), from = read_view(values);
  const std::size_t n = at.size();
  if (at.dims.rank != 1 || (at.type != int32 && at.type != int64))
    raise(status::invalid_argument, text("merge_rows: the row numbers are ", name_of(at.type), " ", to_text(at.dims),
                                         "; expected a vector of int32 or int64"));
  if (from.dims.rank > 1 ? from.dims[0] != at.dims[0] : n == 0 ? from.size() != 0 : from.size() % n != 0)
    raise(status::invalid_argument,
          text("merge_rows: the values for ", n, " rows are ", to_text(from.dims), "; expected [", n, ", ...]"));
  const std::size_t width = n == 0 ? 0 : from.size() / n;
  std::vector<std::size_t> place;
  const std::size_t distinct = at.type == int32 ? detail::places_of(at.as<std::int32_t>(), place)
                                                : detail::places_of(at.as<std::int64_t>(), place);
  extents dims = from.dims.rank > 1 ? from.dims : extents{0, static_cast<std::int64_t>(width)};
  dims.dims[0] = static_cast<std::int64_t>(distinct);
  row_values out(at.type, from.type, dims);
  std::vector<bool> seen(distinct);
  detail::with_number(from.type, [&]<class T>() {
    const T* const in = from.as<T>().data();
    T* const to = out.values().mutable_as<T>().data();
    for (std::size_t i = 0; i < n; ++i) {
      T* const row = to + place[i] * width;
      for (std::size_t k = 0; k < width; ++k)
        row[k] = seen[place[i]] ? static_cast<T>(row[k] + in[i * width + k]) : in[i * width + k];
      if (!seen[place[i]]) {
        const std::size_t size = size_of(at.type);
        std::memcpy(out.rows().mutable_data() + place[i] * size, at.data + i * size, size);
      }
      seen[place[i]] = true;
    }
  });
  return out;
}
// Does the same for any type with `rows` and `values`, such as indexed_slices.
template <class Slices>
  requires requires(const Slices& s) {
    { read_view(s.rows) };
    { read_view(s.values) };
  }
row_values merge_rows(const Slices& s) {
  return merge_rows(s.rows, s.values);
}

}  // namespace gradus
