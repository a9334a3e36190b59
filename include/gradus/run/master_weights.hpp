// A variable whose array holds 16-bit numbers has a float32 master, which updates change and checkpoints hold; after a
// step its values are written back into the array. See Micikevicius et al. 2018, arXiv:1710.03740, section 3.1.
#pragma once
#include "../tensor/tensor.hpp"

namespace gradus::inline GRADUS_BUILD {

class master_weights {
public:
  master_weights() = default;
  // Makes the master of an array of bfloat16 or float16, with the array's values.
  explicit master_weights(const tensor_view& array);
  bool kept() const { return array_.type != dtype::none; }
  dtype array_type() const { return array_.type; }
  tensor_view values() { return {float32, array_.dims, values_.data()}; }

  // Returns 16-bit numbers converted to float32; the result is valid until the next call. Allocates when there were
  // never as many before.
  const_tensor_view widened(const const_tensor_view& gradient);

  // Writes the master's values into the array, rounded: all, or `count` elements from element `first` on.
  void refresh() { refresh(0, array_.size()); }
  void refresh(std::size_t first, std::size_t count);
  template <class Index>
  void refresh_rows(std::span<const Index> rows, std::size_t width) {
    for (const Index row : rows) refresh(static_cast<std::size_t>(row) * width, width);
  }

private:
  tensor_view array_;
  aligned_buffer values_, gradient_;

  static void widen(const const_tensor_view& from, aligned_buffer& to);
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "master_weights.ipp"
#endif
