// This header has a std::stable_sort of a vector without the temporary buffer of libstdc++ 12, about which clang 19
// warns in programs that include the library. What is long about a sort is compiled once, for numbers of elements,
// and not for each type of element.
#pragma once
#include "build.hpp"

#include <cstddef>
#include <utility>
#include <vector>

#include "body.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Returns the numbers of n elements in their order; `less` compares the elements with two numbers. Equal elements keep
// their order.
std::vector<std::size_t> sorted_places(std::size_t n, const void* self,
                                       bool (*less)(const void* self, std::size_t a, std::size_t b));

// Sorts by `less`; equal elements keep their order.
template <class T, class Less>
void sort_stably(std::vector<T>& list, Less less) {
  struct comparison {
    const std::vector<T>& list;
    Less& less;
  } const of{list, less};
  const auto order = sorted_places(list.size(), &of, [](const void* self, std::size_t a, std::size_t b) -> bool {
    const auto& it = *static_cast<const comparison*>(self);
    return it.less(it.list[a], it.list[b]);
  });
  std::vector<T> sorted;
  sorted.reserve(list.size());
  for (const std::size_t i : order) sorted.push_back(std::move(list[i]));
  list = std::move(sorted);
}

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "sort.ipp"
#endif
