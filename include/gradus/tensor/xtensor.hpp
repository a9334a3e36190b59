// This header is the only one that includes xtensor: it gives xtensor's containers as views, and views as xtensor
// expressions. Nothing is copied; the container must outlive the view and must not be resized meanwhile.
//
//   xt::xtensor<float, 2> w = ...;
//   updater.track("w", w);                                   // wherever the library takes an array
//   auto m = gradus::as_xtensor<float, 2>(updater.slot("w", "m"));   // reads and writes the slot
//
// Containers must be row-major and contiguous: xt::xtensor, xt::xarray, xt::xtensor_fixed, xt::adapt and views that
// keep both. Evaluate lazy expressions first with xt::eval. The header works with xtensor 0.24 to 0.27 (0.26 moved
// every header).
#pragma once
#include "../base/build.hpp"

#if __has_include(<xtensor/containers/xtensor.hpp>)
#include <xtensor/containers/xadapt.hpp>
#include <xtensor/containers/xarray.hpp>
#include <xtensor/containers/xfixed.hpp>
#include <xtensor/containers/xtensor.hpp>
#else
#include <xtensor/xadapt.hpp>
#include <xtensor/xarray.hpp>
#include <xtensor/xfixed.hpp>
#include <xtensor/xtensor.hpp>
#endif

#include "access.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
template <class X>
concept xtensor_array = std::derived_from<X, xt::xexpression<X>> && requires(const X& x) {
  x.data();
  x.shape();
  x.strides();
  x.data_offset();
} && storable<typename X::value_type>;

template <class X>
extents xtensor_extents(const X& x) {
  extents e;
  if (x.dimension() > static_cast<std::size_t>(max_rank)) shape::too_many(x.dimension());
  for (const auto n : x.shape()) e.push(static_cast<std::int64_t>(n));
  // xtensor sets stride 0 for an extent of 1.
  std::int64_t stride = 1;
  for (int i = e.rank - 1; i >= 0; --i) {
    const auto found = static_cast<std::int64_t>(x.strides()[static_cast<std::size_t>(i)]);
    if (e[i] != 1 && found != stride && x.size() != 0)
      raise(status::invalid_argument,
            text("expected a row-major contiguous array, found stride ", found, " instead of ", stride, " on axis ", i,
                 " of ", to_text(e), "; copy it into an xt::xtensor or xt::xarray first"));
    stride *= e[i];
  }
  return e;
}
}  // namespace detail

template <detail::xtensor_array X>
struct array_access<X> {
  using T = std::remove_cv_t<typename X::value_type>;
  static const_tensor_view read(const X& x) {
    return {dtype_of<T>, detail::xtensor_extents(x), reinterpret_cast<const std::byte*>(x.data() + x.data_offset())};
  }
  static tensor_view write(X& x)
    requires(!std::is_const_v<std::remove_reference_t<decltype(*x.data())>>)
  {
    return {dtype_of<T>, detail::xtensor_extents(x), reinterpret_cast<std::byte*>(x.data() + x.data_offset())};
  }
};

// Returns a view as an xtensor expression of known rank, or of any rank, over the same memory.
template <storable T, std::size_t Rank>
auto as_xtensor(const tensor_view& v) {
  const auto values = v.mutable_as<T>();
  if (v.dims.rank != static_cast<int>(Rank))
    raise(status::invalid_argument, text("expected an array of rank ", Rank, ", this one is ", to_text(v.dims)));
  std::array<std::size_t, Rank> extents{};
  for (std::size_t i = 0; i < Rank; ++i) extents[i] = static_cast<std::size_t>(v.dims.dims[i]);
  return xt::adapt(values.data(), values.size(), xt::no_ownership(), extents);
}
template <storable T, std::size_t Rank>
auto as_xtensor(const const_tensor_view& v) {
  const auto values = v.as<T>();
  if (v.dims.rank != static_cast<int>(Rank))
    raise(status::invalid_argument, text("expected an array of rank ", Rank, ", this one is ", to_text(v.dims)));
  std::array<std::size_t, Rank> extents{};
  for (std::size_t i = 0; i < Rank; ++i) extents[i] = static_cast<std::size_t>(v.dims.dims[i]);
  return xt::adapt(values.data(), values.size(), xt::no_ownership(), extents);
}
template <storable T>
auto as_xarray(const tensor_view& v) {
  const auto values = v.mutable_as<T>();
  return xt::adapt(values.data(), values.size(), xt::no_ownership(),
                   std::vector<std::size_t>(v.dims.dims, v.dims.dims + v.dims.rank));
}
template <storable T>
auto as_xarray(const const_tensor_view& v) {
  const auto values = v.as<T>();
  return xt::adapt(values.data(), values.size(), xt::no_ownership(),
                   std::vector<std::size_t>(v.dims.dims, v.dims.dims + v.dims.rank));
}

}  // namespace gradus
