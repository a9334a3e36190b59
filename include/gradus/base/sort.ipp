// The bodies of sort.hpp.
#pragma once
#include <algorithm>

#include "body.hpp"
#include "sort.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::vector<std::size_t> sorted_places(std::size_t n, const void* self,
                                                   bool (*less)(const void* self, std::size_t a, std::size_t b)) {
  std::vector<std::size_t> order(n);
  for (std::size_t i = 0; i < n; ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (less(self, a, b)) return true;
    return a < b && !less(self, b, a);
  });
  return order;
}

}  // namespace gradus::inline GRADUS_BUILD::detail
