// These functions compute the cardinality of a stage from that of its source: the number of elements of an iteration,
// infinite_cardinality or unknown_cardinality.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace gradus::inline GRADUS_BUILD {

// cardinality() returns one of these if it has no number, as in TensorFlow.
inline constexpr std::int64_t infinite_cardinality = -1, unknown_cardinality = -2;

namespace detail {

std::int64_t cardinality_repeated(std::int64_t source, std::int64_t times);
std::int64_t cardinality_taken(std::int64_t source, std::int64_t n);
std::int64_t cardinality_skipped(std::int64_t source, std::int64_t n);
std::int64_t cardinality_batched(std::int64_t source, std::int64_t n, bool drop_remainder);
std::int64_t cardinality_concatenated(std::int64_t a, std::int64_t b);
// Returns the smaller cardinality.
std::int64_t cardinality_zipped(std::int64_t a, std::int64_t b);

}  // namespace detail
}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "cardinality.ipp"
#endif
