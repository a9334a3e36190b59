// This header has the concepts that define a dataset; stage.hpp describes them in words.
#pragma once
#include "../base/build.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "datum.hpp"
#include "position.hpp"

namespace gradus::inline GRADUS_BUILD {

template <class D>
concept dataset =
    std::movable<D> && requires(D& d, const D& c, std::span<const tensor_view> out, std::int64_t n,
                                std::string& definition, position_writer& writer, position_reader& reader) {
      { c.element_spec() } -> std::same_as<const components&>;
      { d.pull(out, n, n) } -> std::same_as<std::int64_t>;
      d.rewind();
      c.define(definition);
      c.write(writer);
      d.read(reader);
    };

// A dataset of batches: each call of pull gives one batch of at most batch_size() elements and returns the number of
// elements in it; 0 is the end.
template <class D>
concept batched_dataset = dataset<D> && requires(const D& d) {
  { d.batch_size() } -> std::same_as<std::int64_t>;
};

// A dataset that can give any element at any time.
template <class D>
concept indexed_dataset = dataset<D> && !batched_dataset<D> && requires(const D& d, std::span<const tensor_view> out) {
  { d.size() } -> std::same_as<std::int64_t>;
  d.element(std::int64_t{}, out, std::int64_t{});
};

// A dataset that can give units (elements or batches) whose extents differ.
template <class D>
concept datum_dataset = requires(D& d, datum& e) {
  { d.pull(e) } -> std::same_as<bool>;
};

namespace detail {
// Writes the next element, or batch, with its extents into `out`. Returns false at the end.
template <dataset D>
bool read_unit(D& d, datum& out) {
  if constexpr (datum_dataset<D>) {
    return d.pull(out);
  } else if constexpr (batched_dataset<D>) {
    out.conform(d.element_spec(), d.batch_size());
    const std::int64_t rows = d.pull(out.views(), 0, d.batch_size());
    if (rows < d.batch_size()) out.cut(rows);
    return rows > 0;
  } else {
    out.conform(d.element_spec());
    return d.pull(out.views(), 0, 1) == 1;
  }
}

// later<Self, T> is T. The compiler looks at it only when `Self` is known, so the header of T need not be included
// here.
template <class Self, class T>
struct later_type {
  using type = T;
};
template <class Self, class T>
using later = typename later_type<Self, T>::type;

// Returns the address of row `row` of an array whose rows are elements of the component `c`.
std::byte* row_of(const tensor_view& array, const component& c, std::int64_t row);
// In the place of a number of rows: the arrays have the extents of one element.
inline constexpr std::int64_t one_element = -1;
// Raises invalid_argument unless `out` has an array for each component, with `rows` rows or more.
void check_rows(const components& spec, std::span<const tensor_view> out, std::int64_t rows);
// Returns the number by which take, skip and repeat count a pull that returned `pulled`.
template <dataset D>
std::int64_t counted(std::int64_t pulled) {
  return batched_dataset<D> ? (pulled > 0 ? 1 : 0) : pulled;
}
}  // namespace detail

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "dataset_concept.ipp"
#endif
