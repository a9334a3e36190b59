// window stacks elements that follow one another.
//
//   .window(5, 1, 1, true)      0..4, 1..5, 2..6, ...
//   .window(2, 2)               0 1, 2 3, ..., and the rest
//
// Window k holds elements k * shift + j * stride for j below size. At the end windows hold the remaining elements,
// unless drop_remainder. tf.data gives a dataset for each window; here a window is one element with a first extent
// more, on which flat_map with from_tensor_slices makes that dataset, and as_batches a batch.
#pragma once
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
  std::int64_t size_, shift_, stride_, target_ = 0;  // target: elements that a whole window reaches over
  bool drop_remainder_, ended_ = false;
  components spec_;
  std::deque<datum> held_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "window.ipp"
#endif
