// What both units share.
#pragma once
#include <gradus/base/random.hpp>

inline constexpr auto model = [](gradus::random_stream& stream) { return stream.below(1000); };

struct answer {
  const void* where;
  unsigned value;
};
answer one();
answer two();
