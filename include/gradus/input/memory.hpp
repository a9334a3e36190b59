// These datasets read arrays in memory. They do not own the arrays, which must outlive the dataset and must not change.
#pragma once
#include "../base/build.hpp"

#include <algorithm>  // the concepts of ranges; <ranges> has the views, too
#include <cstring>
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "../base/deferred.hpp"
#include "stage.hpp"

namespace gradus::inline GRADUS_BUILD {

// An array and its name. The first extent counts elements.
struct named_array {
  std::string name;
  const_tensor_view values;
};

class memory_dataset final : public composable<memory_dataset> {
public:
  // Raises invalid_argument for no array, an array without a first extent, or arrays of different lengths.
  explicit memory_dataset(std::span<const named_array> arrays);

  const components& element_spec() const { return spec_; }
  std::int64_t size() const { return size_; }
  void element(std::int64_t i, std::span<const tensor_view> out, std::int64_t row) const { copy(i, out, row, 1); }

  std::int64_t pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n);
  void rewind() { next_ = 0; }
  void define(std::string& to) const { to += text("memory(", size_, "; ", to_text(spec_), ")"); }
  void write(position_writer& to) const { to.number(next_); }
  void read(position_reader& from);

private:
  void copy(std::int64_t i, std::span<const tensor_view> out, std::int64_t row, std::int64_t n) const;

  components spec_;
  std::vector<const std::byte*> data_;
  std::int64_t size_ = 0, next_ = 0;
};

// from_memory({{"x", x_view}, {"y", y_view}}) takes views of extents [n, ...], with the same n for all.
inline memory_dataset from_memory(std::span<const named_array> arrays) { return memory_dataset(arrays); }
memory_dataset from_memory(std::initializer_list<named_array> arrays);

namespace detail {
// Adds the array of these values, which are elements of these extents one after another.
void add_array(std::vector<named_array>& arrays, std::string_view name, const_tensor_view values,
               const extents& element);
inline void name_arrays(std::vector<named_array>&) {}
template <class Values, class... Rest>
void name_arrays(std::vector<named_array>& arrays, std::string_view name, Values&& values, Rest&&... rest) {
  static_assert(
      std::ranges::contiguous_range<Values> && std::ranges::sized_range<Values>,
      "gradus: from_spans takes a name, then a span (or a vector, an array) of its values, then, if an element "
      "is no scalar, its extents");
  static_assert(std::ranges::borrowed_range<Values>,
                "gradus: from_spans does not own its values; give it a variable or a span, not a temporary");
  using value = std::remove_cv_t<std::ranges::range_value_t<Values>>;
  static_assert(computable<value>, "gradus: values are float, double, int32, int64, uint8 or bool");
  const std::span<const value> all(std::ranges::data(values), std::ranges::size(values));
  const auto add = [&](const extents& element) { add_array(arrays, name, all, element); };
  const auto proceed = [&](const auto&, auto&&... others) {
    name_arrays(arrays, std::forward<decltype(others)>(others)...);
  };
  if constexpr (sizeof...(Rest) == 0) {
    add({});
  } else if constexpr (std::is_same_v<std::remove_cvref_t<std::tuple_element_t<0, std::tuple<Rest...>>>, extents>) {
    add(std::get<0>(std::forward_as_tuple(rest...)));
    proceed(std::forward<Rest>(rest)...);
  } else {
    add({});
    name_arrays(arrays, std::forward<Rest>(rest)...);
  }
}
}  // namespace detail

// from_spans("x", x, extents{784}, "y", y) takes for each component its name, its values (one element after another),
// and the extents of one element (left out for a scalar).
template <class... Parts>
memory_dataset from_spans(Parts&&... parts) {
  std::vector<named_array> arrays;
  detail::name_arrays(arrays, std::forward<Parts>(parts)...);
  return memory_dataset(detail::const_span(arrays.data(), arrays.size()));
}

// The components may also be listed in braces: from_spans({{"x", x, {784}}, {"y", y}}).
struct named_values {
  template <class Values>
  named_values(std::string_view name, Values&& values, const extents& element = {}) {
    detail::name_arrays(arrays, name, std::forward<Values>(values), element);
  }
  std::vector<named_array> arrays;
};
memory_dataset from_spans(std::initializer_list<named_values> parts);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "memory.ipp"
#endif
