// The bodies of owned_tensor.hpp.
#pragma once
#include "../base/body.hpp"
#include "owned_tensor.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY double detail::number_in(const const_tensor_view& v) {
  if (v.size() != 1)
    raise(status::invalid_argument, text("expected a tensor of one element, found ", name_of(v.type), " ",
                                         to_text(v.dims), "; take it by as<T>()"));
  switch (v.type) {
  case float32: return static_cast<double>(v.as<float>()[0]);
  case float64: return v.as<double>()[0];
  case int32: return v.as<std::int32_t>()[0];
  case int64: return static_cast<double>(v.as<std::int64_t>()[0]);
  case boolean: return v.as<bool>()[0] ? 1.0 : 0.0;
  default: raise(status::invalid_argument, text("a tensor of ", name_of(v.type), " is no number; take it by as<T>()"));
  }
}
GRADUS_BODY double owned_tensor::number() const { return detail::number_in(*this); }

}  // namespace gradus
