// The bodies of dataset_concept.hpp.
#pragma once
#include "../base/body.hpp"
#include "dataset_concept.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::byte* row_of(const tensor_view& array, const component& c, std::int64_t row) {
  return array.mutable_data() + static_cast<std::size_t>(row) * size_bytes(c);
}

}  // namespace gradus::detail
