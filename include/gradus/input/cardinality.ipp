// The bodies of cardinality.hpp.
#pragma once
#include "../base/body.hpp"
#include "cardinality.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::int64_t cardinality_repeated(std::int64_t source, std::int64_t times) {
  if (times == 0 || source == 0) return 0;
  if (source < 0) return source;
  if (times == std::numeric_limits<std::int64_t>::max()) return infinite_cardinality;
  std::int64_t n = 0;
  return __builtin_mul_overflow(source, times, &n) ? unknown_cardinality : n;
}

GRADUS_BODY std::int64_t cardinality_taken(std::int64_t source, std::int64_t n) {
  if (n == 0 || source == 0) return 0;
  if (n == std::numeric_limits<std::int64_t>::max()) return source;
  return source == infinite_cardinality ? n : source < 0 ? source : std::min(source, n);
}

GRADUS_BODY std::int64_t cardinality_skipped(std::int64_t source, std::int64_t n) {
  if (n == std::numeric_limits<std::int64_t>::max()) return 0;
  return source < 0 ? source : source - std::min(source, n);
}

GRADUS_BODY std::int64_t cardinality_batched(std::int64_t source, std::int64_t n, bool drop_remainder) {
  return source < 0 ? source : source / n + (!drop_remainder && source % n != 0 ? 1 : 0);
}

GRADUS_BODY std::int64_t cardinality_concatenated(std::int64_t a, std::int64_t b) {
  if (a == infinite_cardinality || b == infinite_cardinality) return infinite_cardinality;
  std::int64_t n = 0;
  if (a < 0 || b < 0 || __builtin_add_overflow(a, b, &n)) return unknown_cardinality;
  return n;
}

GRADUS_BODY std::int64_t cardinality_zipped(std::int64_t a, std::int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (a == infinite_cardinality) return b;
  if (b == infinite_cardinality) return a;
  return a < 0 || b < 0 ? unknown_cardinality : std::min(a, b);
}

}  // namespace gradus::detail
