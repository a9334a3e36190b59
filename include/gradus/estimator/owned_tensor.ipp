// The bodies of owned_tensor.hpp.
#pragma once
#include "../base/body.hpp"
#include "owned_tensor.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY double owned_tensor::number() const {
  if (size() != 1)
    raise(status::invalid_argument,
          text("expected a tensor of one element, found ", name_of(type), " ", to_text(dims), "; take it by as<T>()"));
  switch (type) {
  case float32: return static_cast<double>(as<float>()[0]);
  case float64: return as<double>()[0];
  case int32: return as<std::int32_t>()[0];
  case int64: return static_cast<double>(as<std::int64_t>()[0]);
  case boolean: return as<bool>()[0] ? 1.0 : 0.0;
  default: raise(status::invalid_argument, text("a tensor of ", name_of(type), " is no number; take it by as<T>()"));
  }
}

}  // namespace gradus
