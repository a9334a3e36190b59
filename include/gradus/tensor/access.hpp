// array_access defines which types are arrays in memory: a function that takes "an array" gets the user's own type as a
// view.
//
// Views, spans, std::vector and std::array have specializations here; including tensor/xtensor.hpp adds xtensor's
// containers. For another type, specialize:
//
//   template <> struct gradus::array_access<my_matrix> {
//     static gradus::const_tensor_view read(const my_matrix& m) { ... }
//     static gradus::tensor_view write(my_matrix& m) { ... }       // only if it may be written
//   };
#pragma once
#include "../base/build.hpp"

#include <array>
#include <concepts>
#include <span>
#include <type_traits>
#include <vector>

#include "tensor.hpp"

namespace gradus::inline GRADUS_BUILD {

template <class X>
struct array_access;

template <>
struct array_access<const_tensor_view> {
  static const_tensor_view read(const const_tensor_view& x) { return x; }
};
template <>
struct array_access<tensor_view> {
  static const_tensor_view read(const tensor_view& x) { return x; }
  static tensor_view write(const tensor_view& x) { return x; }
};
template <storable T, std::size_t N>
struct array_access<std::span<T, N>> {
  static const_tensor_view read(std::span<T, N> x) { return std::span<const T>(x); }
  static tensor_view write(std::span<T, N> x) { return std::span<T>(x); }
};
template <storable T, std::size_t N>
struct array_access<std::span<const T, N>> {
  static const_tensor_view read(std::span<const T, N> x) { return std::span<const T>(x); }
};
template <storable T, class Allocator>
  requires(!std::same_as<T, bool>)
struct array_access<std::vector<T, Allocator>> {
  static const_tensor_view read(const std::vector<T, Allocator>& x) { return std::span<const T>(x); }
  static tensor_view write(std::vector<T, Allocator>& x) { return std::span<T>(x); }
};
template <storable T, std::size_t N>
struct array_access<std::array<T, N>> {
  static const_tensor_view read(const std::array<T, N>& x) { return std::span<const T>(x); }
  static tensor_view write(std::array<T, N>& x) { return std::span<T>(x); }
};

template <class X>
concept readable_array = requires(const std::remove_cvref_t<X>& x) {
  { array_access<std::remove_cvref_t<X>>::read(x) } -> std::same_as<const_tensor_view>;
};
template <class X>
concept writable_array = requires(X& x) {
  { array_access<std::remove_cvref_t<X>>::write(x) } -> std::same_as<tensor_view>;
};

template <readable_array X>
const_tensor_view read_view(const X& x) {
  return array_access<std::remove_cvref_t<X>>::read(x);
}
template <writable_array X>
tensor_view write_view(X& x) {
  return array_access<std::remove_cvref_t<X>>::write(x);
}

}  // namespace gradus
