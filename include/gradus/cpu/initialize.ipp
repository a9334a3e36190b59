// The bodies of initialize.hpp.
#pragma once
#include "../base/body.hpp"
#include "initialize.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY void initialize_variable(const initializer& init, dtype type, const shape& dims, std::uint64_t seed,
                                     std::uint64_t stream, std::byte* to) {
  const auto start = [&]<class T>(T) {
    detail::initialize_as(init, detail::drawing_of<T>(init, dims), dims, seed, stream, reinterpret_cast<T*>(to));
  };
  switch (type) {
  case float32: return start(float{});
  case float64: return start(double{});
  case int32: return start(std::int32_t{});
  case int64: return start(std::int64_t{});
  case boolean: return start(bool{});
  case uint8: return start(std::uint8_t{});
  // graph::variable refuses to draw numbers of 16 bits.
  case float16: std::fill_n(reinterpret_cast<half*>(to), count(dims), half(init.a)); return;
  case bfloat16: std::fill_n(reinterpret_cast<bfloat*>(to), count(dims), bfloat(init.a)); return;
  default: return;
  }
}

}  // namespace gradus
