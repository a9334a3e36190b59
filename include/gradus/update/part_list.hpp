// A part list describes the parts of a chain (update/chain.hpp) at compile time: whether they are in order, where the
// slots, state and stages of each part lie, and the constants of all parts.
#pragma once
#include "../base/build.hpp"

#include <tuple>

#include "part.hpp"

namespace gradus::inline GRADUS_BUILD {

template <class... Parts>
struct part_list {};
namespace detail {

// ---- constants of all parts in order; in memory, an array of N
template <class N, std::size_t I, class... Parts>
struct chained_constants {};
template <class N, std::size_t I, class First, class... Rest>
struct chained_constants<N, I, First, Rest...> {
  [[no_unique_address]] typename constants_of<First, N, I>::type first;
  [[no_unique_address]] chained_constants<N, I + 1, Rest...> rest;
};
template <std::size_t I, class C>
constexpr auto& constants_at(C& c) {
  if constexpr (I == 0)
    return c.first;
  else
    return constants_at<I - 1>(c.rest);
}

template <class... Parts>
struct chain_fits {
  static constexpr bool parts = (part_fits<Parts>::value && ...);
  static constexpr std::size_t rules = (std::size_t{0} + ... + std::size_t{is_rule<Parts>});
  // Transforms and clips come before the rule, followers after it.
  static consteval bool in_order() {
    bool after = false, fine = true;
    (((after = after || is_rule<Parts>), fine = fine && (is_rule<Parts> || is_follower<Parts> == after)), ...);
    return fine;
  }
  static constexpr bool value = parts && rules == 1 && in_order();
};

// The layout of a list of parts.
template <class... Parts>
struct chain_layout {
  static constexpr std::size_t count = sizeof...(Parts);
  template <std::size_t I>
  using part = std::tuple_element_t<I, std::tuple<Parts...>>;
  static constexpr std::array<bool, count> adapts{has_adapt<Parts>...}, clips{is_clip<Parts>...},
      rules{is_rule<Parts>...}, global{is_global<Parts>...};
  static constexpr std::array<std::size_t, count> slots{count_slots<Parts>()...}, shared{count_shared<Parts>()...};

  static consteval std::size_t sum(const std::array<std::size_t, count>& of, std::size_t below) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < below; ++i) n += of[i];
    return n;
  }
  static consteval std::size_t first(const std::array<bool, count>& of, bool wanted) {
    std::size_t n = 0;
    while (n < count && of[n] != wanted) ++n;
    return n;
  }
  // Returns the index of the part that is the stage-th (from 0) of those that adapt.
  static consteval std::size_t part_of_stage(std::size_t stage) {
    std::size_t at = 0;
    while (!adapts[at] || stage-- != 0) ++at;
    return at;
  }
  static consteval std::size_t stages(std::size_t below) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < below; ++i) n += adapts[i];
    return n;
  }
  static consteval std::size_t global_stages() {
    std::size_t last = 0;
    for (std::size_t i = 0; i < count; ++i)
      if (global[i]) last = stages(i + 1);
    return last;
  }
};

}  // namespace detail

}  // namespace gradus
