// This header visits the members of a plain struct, one after the other, without their names. The library compares
// policies and sends them in this way.
//
//   struct adam { double beta1 = 0.9, beta2 = 0.999; };
//   detail::each_field(a, [](auto& member) { ... });     // beta1, beta2
//
// A plain struct is an aggregate without base classes, whose members can be made from {}, with at most 16 of them.
#pragma once
#include "build.hpp"

#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace gradus::inline GRADUS_BUILD::detail {

inline constexpr std::size_t most_fields = 16;

// Converts to a base class of T, and to nothing else.
template <class T>
struct made_into_base_of {
  template <class Base>
    requires(std::is_base_of_v<Base, T> && !std::is_same_v<Base, T>)
  constexpr operator Base() const;
};
template <class T>
concept has_base = requires { T{made_into_base_of<T>{}}; };

template <class T, std::size_t N>
consteval bool takes_braces() {
  // clang-format off
  if constexpr (N == 0) return requires { T{}; };
  else if constexpr (N == 1) return requires { T{{}}; };
  else if constexpr (N == 2) return requires { T{{}, {}}; };
  else if constexpr (N == 3) return requires { T{{}, {}, {}}; };
  else if constexpr (N == 4) return requires { T{{}, {}, {}, {}}; };
  else if constexpr (N == 5) return requires { T{{}, {}, {}, {}, {}}; };
  else if constexpr (N == 6) return requires { T{{}, {}, {}, {}, {}, {}}; };
  else if constexpr (N == 7) return requires { T{{}, {}, {}, {}, {}, {}, {}}; };
  else if constexpr (N == 8) return requires { T{{}, {}, {}, {}, {}, {}, {}, {}}; };
  else if constexpr (N == 9) return requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}}; };
  else if constexpr (N == 10) return requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; };
  else if constexpr (N == 11) return requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; };
  else if constexpr (N == 12) return requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; };
  else if constexpr (N == 13) return requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; };
  else if constexpr (N == 14) return requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; };
  else if constexpr (N == 15) return requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; };
  else if constexpr (N == 16) return requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; };
  else return requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; };
  // clang-format on
}
// Returns how many members an aggregate has, or most_fields + 1 if it has more than most_fields.
template <class T, std::size_t N = most_fields + 1>
consteval std::size_t field_count() {
  if constexpr (takes_braces<T, N>())
    return N;
  else if constexpr (N == 0)
    return 0;
  else
    return field_count<T, N - 1>();
}

template <class T>
concept plain_struct = std::is_aggregate_v<T> && !std::is_array_v<T> && !std::is_union_v<T> && !has_base<T> &&
                       requires { T{}; } && (field_count<T>() <= most_fields);

// Returns a tuple of references to the members.
template <plain_struct T>
constexpr auto tie_fields(T& x) {
  constexpr std::size_t n = field_count<std::remove_const_t<T>>();
  // clang-format off
  if constexpr (n == 0) return std::tie();
  else if constexpr (n == 1) { auto& [a] = x; return std::tie(a); }
  else if constexpr (n == 2) { auto& [a, b] = x; return std::tie(a, b); }
  else if constexpr (n == 3) { auto& [a, b, c] = x; return std::tie(a, b, c); }
  else if constexpr (n == 4) { auto& [a, b, c, d] = x; return std::tie(a, b, c, d); }
  else if constexpr (n == 5) { auto& [a, b, c, d, e] = x; return std::tie(a, b, c, d, e); }
  else if constexpr (n == 6) { auto& [a, b, c, d, e, f] = x; return std::tie(a, b, c, d, e, f); }
  else if constexpr (n == 7) { auto& [a, b, c, d, e, f, g] = x; return std::tie(a, b, c, d, e, f, g); }
  else if constexpr (n == 8) { auto& [a, b, c, d, e, f, g, h] = x; return std::tie(a, b, c, d, e, f, g, h); }
  else if constexpr (n == 9) { auto& [a, b, c, d, e, f, g, h, i] = x; return std::tie(a, b, c, d, e, f, g, h, i); }
  else if constexpr (n == 10) { auto& [a, b, c, d, e, f, g, h, i, j] = x; return std::tie(a, b, c, d, e, f, g, h, i, j); }
  else if constexpr (n == 11) { auto& [a, b, c, d, e, f, g, h, i, j, k] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k); }
  else if constexpr (n == 12) { auto& [a, b, c, d, e, f, g, h, i, j, k, l] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l); }
  else if constexpr (n == 13) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m); }
  else if constexpr (n == 14) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o); }
  else if constexpr (n == 15) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p); }
  else { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q); }
  // clang-format on
}
// Calls f(member) for each member, in their order.
template <plain_struct T, class F>
constexpr void each_field(T& x, F&& f) {
  std::apply([&](auto&... member) { (f(member), ...); }, tie_fields(x));
}

}  // namespace gradus::detail
