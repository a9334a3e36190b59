// This header has a std::stable_sort of a vector without the temporary buffer of libstdc++ 12, about which clang 19
// warns in programs that include the library.
#pragma once
#include "build.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace gradus::inline GRADUS_BUILD::detail {

// Sorts by `less`; equal elements keep their order.
template <class T, class Less>
void sort_stably(std::vector<T>& list, Less less) {
  std::vector<std::size_t> order(list.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (less(list[a], list[b])) return true;
    return a < b && !less(list[b], list[a]);
  });
  std::vector<T> sorted;
  sorted.reserve(list.size());
  for (const std::size_t i : order) sorted.push_back(std::move(list[i]));
  list = std::move(sorted);
}

}  // namespace gradus::detail
