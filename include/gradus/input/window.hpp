// window stacks successive elements.
//
//   .window(5, 1, 1, true)      0..4, 1..5, 2..6, ...
//   .window(2, 2)               0 1, 2 3, ..., and the rest
//
// Window k holds the elements k * shift + j * stride for j below size. Without drop_remainder, the windows at the end
// hold the elements that are left. tf.data gives a dataset for each window. Here a window is one element with one
// extent more in front: flat_map with from_tensor_slices makes that dataset of it, and as_batches makes a batch of it.
#pragma once
#include "../base/build.hpp"

#include <deque>

#include "unit_stage.hpp"

namespace gradus::inline GRADUS_BUILD {

class windowed_dataset final : public detail::unit_stage<windowed_dataset, false> {
public:
  windowed_dataset(any_dataset source, std::int64_t size, std::int64_t shift, std::int64_t stride, bool drop_remainder);

  const components& element_spec() const { return spec_; }
  bool pull_unit(datum& out);
  void rewind();
  std::int64_t cardinality() const;
  std::string external_state() const { return source_.external_state(); }
  void define(std::string& to) const;
  void write(position_writer& to) const;
  void read(position_reader& from);

private:
  any_dataset source_;
  std::int64_t size_, shift_, stride_, target_ = 0;  // target: elements from the first to the last of a whole window
  bool drop_remainder_, ended_ = false;
  components spec_;
  std::deque<datum> held_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "window.ipp"
#endif
