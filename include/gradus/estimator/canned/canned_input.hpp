// This stage turns batches of data into the inputs of a canned model: features pass through the layout of its columns,
// weights of examples are unchanged, and labels become class numbers. It runs in a given number of threads.
//
// In the data a label is a separate component: a number, or a string (uint8, the bytes along the last axis) where the
// head has a label_vocabulary.
#pragma once
#include "../../base/build.hpp"

#include <string>
#include <vector>

#include "../../columns/feature_layout.hpp"
#include "../estimator_input.hpp"
#include "../head.hpp"

namespace gradus::inline GRADUS_BUILD {

struct canned_input_options {
  int parallel = 0;  // threads of the stage that reads columns; 0: the thread that pulls batches
};

namespace detail {

// The name of the component from which a model without columns takes the number of examples of a batch.
inline constexpr std::string_view rows_component = "examples";

// Reads the labels of one component: strings become numbers, numbers are checked.
class label_reader {
public:
  // Raises invalid_argument for a vocabulary with labels that are not strings, and for strings without a vocabulary.
  label_reader(const component& label, const any_head& head);
  // Returns the result's type: int64 for strings, else unchanged.
  const component& part() const { return part_; }
  // Raises invalid_argument for a string that the vocabulary does not have, and for a number outside of the head's
  // classes.
  void read(const const_tensor_view& from, tensor_view to) const;

private:
  component part_;
  std::vector<std::string> vocabulary_;
  int classes_;
  void check(double label, std::int64_t row) const;
};

}  // namespace detail

// Returns the input with the stage behind it. `layout` is null for a model without columns. Raises not_found for a
// label that is not in the data, and the errors of the layout and of labels.
estimator_input canned_input(estimator_input in, gradus::mode m, const feature_layout_settings* layout,
                             const any_head& head, const canned_input_options& o = {});

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "canned_input.ipp"
#endif
