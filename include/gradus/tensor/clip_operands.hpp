// This header has the operands of tensor/clip.hpp: arrays that are read, written or clipped in place, indexed slices,
// limits, and lists in which a gradient may be absent.
#pragma once
#include "../base/build.hpp"

#include <concepts>
#include <optional>
#include <type_traits>
#include <utility>

#include "access.hpp"

namespace gradus::inline GRADUS_BUILD::clip {

namespace detail {
template <class X>
concept readable_slices = requires(const X& x) { requires readable_array<decltype(x.values)>; } && !readable_array<X>;
template <class X>
concept writable_slices =
    requires(X& x) { requires writable_array<std::remove_reference_t<decltype((x.values))>>; } && !readable_array<X>;
template <class X>
concept writable = writable_array<std::remove_reference_t<X>>;
}  // namespace detail

// The destination of a result: an array of the operand's dtype and extents, which may be the operand.
struct to {
  tensor_view view;
  template <class X>
    requires detail::writable<X>
  explicit to(X&& x) : view(write_view(x)) {}
};
// An operand that is read.
struct source {
  const_tensor_view view;
  template <readable_array X>
  source(const X& x) : view(read_view(x)) {}
  template <detail::readable_slices X>
  source(const X& x) : view(read_view(x.values)) {}
};
// An operand that is changed in place and is an array.
struct array {
  tensor_view view;
  template <class X>
    requires detail::writable<X>
  array(X&& x) : view(write_view(x)) {}
};
// An operand that is changed in place and is an array, or the values of indexed slices.
struct gradient {
  tensor_view view;
  template <class X>
    requires detail::writable<X>
  gradient(X&& x) : view(write_view(x)) {}
  template <class X>
    requires detail::writable_slices<std::remove_reference_t<X>>
  gradient(X&& x) : view(write_view(x.values)) {}
};
// A limit is a number, or an array that broadcasts to the operand's extents without enlarging them.
struct limit {
  double number = 0;
  std::int64_t whole_number = 0;
  bool whole = false, is_array = false;
  const_tensor_view view;
  template <class N>
    requires std::is_arithmetic_v<N>
  limit(N n) : number(static_cast<double>(n)), whole(std::is_integral_v<N>) {
    if constexpr (std::is_integral_v<N>) whole_number = static_cast<std::int64_t>(n);
  }
  template <readable_array X>
  limit(const X& x) : is_array(true), view(read_view(x)) {}
};
// An entry of a list: a gradient, or None, which is std::nullopt or an empty std::optional.
struct entry {
  const_tensor_view from;
  tensor_view into;
  bool absent = true;
  entry(std::nullopt_t) {}
  template <class X>
    requires std::constructible_from<gradient, X>
  entry(X&& x) : into(gradient(std::forward<X>(x)).view), absent(false) {
    from = into;
  }
  template <class X>
  entry(std::optional<X>& x) {
    if (x.has_value()) *this = entry(*x);
  }
  // This is read from one array and written to another.
  entry(source x, to out) : from(x.view), into(out.view), absent(false) {}
};
// An entry of a list of which nothing is written.
struct term {
  const_tensor_view from;
  bool absent = true;
  term(std::nullopt_t) {}
  template <class X>
    requires std::constructible_from<source, const X&>
  term(const X& x) : from(source(x).view), absent(false) {}
  template <class X>
  term(const std::optional<X>& x) {
    if (x.has_value()) *this = term(*x);
  }
  term(const entry& e) : from(e.from), absent(e.absent) {}
};

}  // namespace gradus::clip
