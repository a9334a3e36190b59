// From feature columns to what parse_example has to parse: tf.feature_column.make_parse_example_spec.
//
//   const feature_columns columns{numeric_column("age"), indicator_column(sex)};
//   const features batch = parse_example(records, make_parse_example_spec(columns, {{"label", fixed_len_feature{}}}));
//   columns.dense(batch, out);
//
// And records on their way to a trainer, whose examples may have any number of texts:
//
//   tf_record("people.tfrecord").map(layout.parts(), example_columns(layout), {.parallel = 4}).shuffle(1000).batch(64)
#pragma once
#include "../input/parse_example.hpp"
#include "feature_layout.hpp"

namespace gradus {

// A numeric_column's feature is of fixed length, with its default; the others' are of any length. `more` comes behind
// them: labels. Error: invalid_argument for a feature that is wanted twice.
inline example_spec make_parse_example_spec(const std::vector<feature_need>& needs,
                                            const std::vector<example_feature>& more = {}) {
  std::vector<example_feature> list;
  for (const auto& n : needs) {
    if (n.ragged) {
      list.push_back({n.key, var_len_feature{n.kind}});
    } else {
      const default_values value = n.default_value.empty() ? default_values() : default_values(n.default_value);
      list.push_back({n.key, fixed_len_feature{n.dims, n.kind, value}});
    }
  }
  list.insert(list.end(), more.begin(), more.end());
  return example_spec(list);
}
inline example_spec make_parse_example_spec(const feature_columns& columns,
                                            const std::vector<example_feature>& more = {}) {
  return make_parse_example_spec(columns.needs(), more);
}
// Of a layout also what it keeps: float32, or int64 for integers.
inline example_spec make_parse_example_spec(const feature_layout& layout,
                                            const std::vector<example_feature>& more = {}) {
  std::vector<feature_need> needs = layout.needs();
  for (const component& c : layout.kept())
    detail::join_needs(needs, {{.key = c.name, .kind = detail::kept_kind(c), .ragged = false, .dims = c.dims}});
  return make_parse_example_spec(needs, more);
}

// For a map of records (serialized Examples, as tf_record gives them) to the parts of a layout, one by one.
class example_columns {
public:
  explicit example_columns(feature_layout layout)
      : layout_(std::move(layout)), spec_(make_parse_example_spec(layout_)) {}
  void operator()(const datum& record, datum& to) const {
    const const_tensor_view bytes = record[0];
    const std::span<const std::byte> message[] = {{bytes.data, bytes.size_bytes()}};
    datum row;
    layout_.write(parse_example(message, spec_), row);
    for (std::size_t k = 0; k < row.size(); ++k) {
      const const_tensor_view from = std::as_const(row)[k];
      if (from.size_bytes() != 0) std::memcpy(to[k].mutable_data(), from.data, from.size_bytes());
    }
  }

private:
  feature_layout layout_;
  example_spec spec_;
};

}  // namespace gradus
