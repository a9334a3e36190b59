// An owned_tensor owns its numbers: an estimator returns it, and it outlives the session.
#pragma once
#include "../base/build.hpp"

#include <memory>
#include <vector>

#include "../tensor/tensor.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// Does the work of owned_tensor::number.
double number_in(const const_tensor_view& v);
}  // namespace detail

// Copies share the bytes, which never change.
class owned_tensor : public const_tensor_view {
public:
  owned_tensor() = default;
  explicit owned_tensor(const const_tensor_view& copied) : const_tensor_view(copied) {
    if (copied.size_bytes() == 0) return;
    auto mine = std::make_shared<aligned_buffer>(copied.size_bytes());
    std::memcpy(mine->data(), copied.data, copied.size_bytes());
    data = mine->data();
    bytes_ = std::move(mine);
  }
  // Returns the number in a scalar, or in a tensor of one element. Raises invalid_argument for more or fewer elements,
  // or another dtype.
  double number() const;

private:
  std::shared_ptr<const aligned_buffer> bytes_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "owned_tensor.ipp"
#endif
