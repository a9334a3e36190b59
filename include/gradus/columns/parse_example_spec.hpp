// make_parse_example_spec lists the features that parse_example must parse for feature columns, as the function of this
// name in tf.feature_column does.
//
//   const feature_columns columns{numeric_column("age"), indicator_column(sex)};
//   const features batch = parse_example(records, make_parse_example_spec(columns, {{"label", fixed_len_feature{}}}));
//   columns.dense(batch, out);
//
// In a pipeline for a trainer, example_columns parses records, whose examples may have any number of texts:
//
//   tf_record("people.tfrecord").map(layout.parts(), example_columns(layout), {.parallel = 4}).shuffle(1000).batch(64)
#pragma once
#include "../input/parse_example.hpp"
#include "feature_layout.hpp"

namespace gradus::inline GRADUS_BUILD {

// The feature of a numeric_column has a fixed length, with its default; the features of other columns have any length.
// `more` lists further features, such as labels, behind them. Raises invalid_argument for a feature that is listed
// twice, and for one whose columns have different default values.
example_spec make_parse_example_spec(const std::vector<feature_need>& needs,
                                     const std::vector<example_feature>& more = {});
example_spec make_parse_example_spec(const feature_columns& columns, const std::vector<example_feature>& more = {});
// For a layout, the spec also lists the components that it keeps: as float32, or int64 for integers.
example_spec make_parse_example_spec(const feature_layout& layout, const std::vector<example_feature>& more = {});

// A function for map. It turns records (serialized Examples, as tf_record gives them) into the parts of a layout, one
// by one.
class example_columns {
public:
  explicit example_columns(feature_layout layout);
  void operator()(const datum& record, datum& to) const;

private:
  feature_layout layout_;
  example_spec spec_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "parse_example_spec.ipp"
#endif
