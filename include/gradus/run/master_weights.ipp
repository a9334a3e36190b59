// The bodies of master_weights.hpp.
#pragma once
#include "../base/body.hpp"
#include "master_weights.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY master_weights::master_weights(const tensor_view& array)
    : array_(array), values_(array.size() * sizeof(float)) {
  widen(array, values_);
}

GRADUS_BODY const_tensor_view master_weights::widened(const const_tensor_view& gradient) {
  if (gradient_.size() < gradient.size() * sizeof(float)) gradient_ = aligned_buffer(gradient.size() * sizeof(float));
  widen(gradient, gradient_);
  return {float32, gradient.dims, gradient_.data()};
}

GRADUS_BODY void master_weights::refresh(std::size_t first, std::size_t count) {
  const float* const from = reinterpret_cast<const float*>(values_.data()) + first;
  if (array_.type == bfloat16)
    detail::round_each(from, reinterpret_cast<bfloat*>(array_.mutable_data()) + first, count);
  else if (array_.type == float16)
    detail::round_each(from, reinterpret_cast<half*>(array_.mutable_data()) + first, count);
}

GRADUS_BODY void master_weights::widen(const const_tensor_view& from, aligned_buffer& to) {
  float* const p = reinterpret_cast<float*>(to.data());
  if (from.type == bfloat16)
    detail::widen_each(from.data_as<bfloat>(), p, from.size());
  else
    detail::widen_each(from.data_as<half>(), p, from.size());
}

}  // namespace gradus
