// These kernels write to variables.
#pragma once
#include "../base/build.hpp"

#include <cstring>

#include "../ops/state.hpp"
#include "elementwise.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
template <class A, class S, class F>
void write_variable(const S& s, std::byte* const* a, F f) {
  dispatch_type<0, float, double, std::int32_t, std::int64_t, std::uint8_t>(s, [&]<class T>() {
    using N = number_of<T, A>;
    T* w = at<T>(a, 1);
    const T* x = at<const T>(a, 2);
    const auto n = static_cast<std::size_t>(s.rows);
    std::size_t j = 0;
    for (; j + N::width <= n; j += N::width) f(N::load(w + j), N::load(x + j)).store(w + j);
    if (j < n) f(N::load_partial(w + j, n - j), N::load_partial(x + j, n - j)).store_partial(w + j, n - j);
  });
}
}  // namespace detail

template <>
struct op_kernel<&cards::assign> {
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    std::memmove(a[1], a[2], static_cast<std::size_t>(s.rows) * size_of(s.type(0)));
  }
};
template <>
struct op_kernel<&cards::assign_add> {
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    detail::write_variable<A>(s, a, [](auto w, auto x) { return w + x; });
  }
};
template <>
struct op_kernel<&cards::assign_sub> {
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    detail::write_variable<A>(s, a, [](auto w, auto x) { return w - x; });
  }
};
using state_ops = op_list<&cards::assign, &cards::assign_add, &cards::assign_sub>;

}  // namespace gradus
