// This header describes the components of an element, and has a `datum`, an element that owns its arrays.
//
// Most stages write elements into the caller's arrays and own nothing (stage.hpp). Elements of no fixed size, and the
// arguments of your functions, are passed as a `datum`: a row of components, each with the extents of this one element.
// A datum keeps its memory when it is used again, so a loop that reuses one allocates nothing once it has held the
// largest element.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "../base/dtype.hpp"
#include "../base/error.hpp"
#include "../base/shape.hpp"
#include "../tensor/tensor.hpp"
#include "position.hpp"

namespace gradus::inline GRADUS_BUILD {

// An extent that differs from element to element, as the length of a sentence does.
inline constexpr std::int64_t any_extent = -1;

// One part of an element: name "image", float32, [784]. A batch of n has extents [n, 784].
struct component {
  std::string name;
  dtype type = dtype::none;
  extents dims;
  bool operator==(const component&) const = default;
};
using components = std::vector<component>;

bool has_fixed_size(const extents& dims);
bool has_fixed_size(const components& spec);
// Returns the bytes of one element's values of a component of fixed size.
inline std::size_t size_bytes(const component& c) { return static_cast<std::size_t>(count(c.dims)) * size_of(c.type); }
std::string to_text(const components& list);

namespace detail {
// Checks the components that a stage is to make, and returns them. Raises invalid_argument for a component without a
// dtype and for two of one name.
components announced(components spec, std::string_view stage);
extents with_lead(std::int64_t lead, const extents& dims);
components with_lead(std::int64_t lead, components spec);
extents without_lead(const extents& dims);
// Returns whether an array of extents `found` fits `wanted`, in which any_extent stands for any extent.
bool agrees(const extents& found, const extents& wanted);
// Widens `into` so that it describes the elements of both: an extent in which they differ becomes any_extent. Returns
// false if the number of components, or a name, dtype or rank, differs.
bool unite(components& into, const components& other);
}  // namespace detail

class datum {
public:
  datum() = default;
  datum(const datum&);
  datum(datum&&) = default;
  datum& operator=(const datum&);
  datum& operator=(datum&&) = default;
  // Makes arrays with the names, dtypes and extents of `spec`, filled with zeros; an extent that is any_extent becomes
  // 0.
  explicit datum(const components& spec) { conform(spec); }

  std::size_t size() const { return used_; }
  const component& about(std::size_t k) const { return parts_[checked(k)].what; }
  tensor_view operator[](std::size_t k);
  const_tensor_view operator[](std::size_t k) const;
  // Raises not_found for a name that no component has.
  tensor_view operator[](std::string_view name) { return (*this)[index_of(name)]; }
  const_tensor_view operator[](std::string_view name) const { return (*this)[index_of(name)]; }

  // Returns the values of a component, by number or name. Raises invalid_argument if it holds another type.
  template <storable T>
  std::span<T> values(const auto& which) {
    return (*this)[place_of(which, dtype_of<T>)].template mutable_as<T>();
  }
  template <storable T>
  std::span<const T> values(const auto& which) const {
    return (*this)[place_of(which, dtype_of<T>)].template as<T>();
  }
  // Returns the first value of a component; a scalar has only this one.
  template <storable T>
  T value(const auto& which) const {
    const auto all = values<T>(which);
    if (all.empty()) refuse_empty(place_of(which, dtype_of<T>));
    return all[0];
  }
  template <storable T>
  void set(const auto& which, T value) {
    const auto all = values<T>(which);
    std::fill(all.begin(), all.end(), value);
  }

  // Gives a component other extents. Its values are kept in memory order as far as there is room, and new ones are
  // zero. Raises invalid_argument for a negative extent.
  tensor_view resize(std::size_t k, const extents& dims);
  tensor_view resize(std::string_view name, const extents& dims) { return resize(index_of(name), dims); }
  // Adds one component.
  tensor_view add(std::string_view name, dtype type, const extents& dims = {});
  void clear() { used_ = 0; }
  // Makes the arrays that `spec` describes, each with `lead` rows if `lead` is not negative; an extent that is
  // any_extent becomes 0.
  void conform(const components& spec, std::int64_t lead = -1);
  // Cuts every component to `rows` rows.
  void cut(std::int64_t rows);
  // Returns the arrays to write into, which are valid until the datum changes.
  std::span<const tensor_view> views();

  // Two data are equal if their components have the same names, types, extents and bytes.
  friend bool operator==(const datum& a, const datum& b) {
    if (a.used_ != b.used_) return false;
    for (std::size_t k = 0; k < a.used_; ++k)
      if (a.parts_[k].what != b.parts_[k].what || a.parts_[k].bytes != b.parts_[k].bytes) return false;
    return true;
  }

  // Appends the rank, extents and bytes of each component to a position. The names and types are not written: `read`
  // takes them from the spec.
  void write(position_writer& to) const;
  // Replaces the contents. If `batched`, each component has one extent more in front, the rows.
  void read(position_reader& from, const components& spec, bool batched = false);

private:
  struct part {
    component what;
    std::vector<std::byte> bytes;
  };
  std::size_t place_of(const auto& which, dtype wanted) const {
    std::size_t k = 0;
    if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(which)>>)
      k = checked(static_cast<std::size_t>(which));
    else
      k = index_of(std::string_view(which));
    if (parts_[k].what.type != wanted) refuse_type(k, wanted);
    return k;
  }
  [[noreturn]] void refuse_type(std::size_t k, dtype wanted) const;
  [[noreturn]] void refuse_empty(std::size_t k) const;
  std::string names() const;
  std::size_t checked(std::size_t k) const;
  std::size_t index_of(std::string_view name) const;

  std::vector<part> parts_;
  std::size_t used_ = 0;  // parts in use; those after them only keep their memory
  std::vector<tensor_view> views_;
};

namespace detail {
// Checks that `d`, which a user's function made, has the components `spec`. Errors name the function `caller`.
void check_unit(const datum& d, const components& spec, bool batched, std::string_view caller);
}  // namespace detail

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "datum.ipp"
#endif
