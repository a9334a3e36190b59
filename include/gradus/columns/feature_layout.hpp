// A feature_layout turns a batch of data into the inputs of a model of feature columns. It is a function for a
// dataset's map.
//
//   const auto sex = categorical_column_with_vocabulary_list("sex", {"f", "m"});
//   const feature_layout layout({.input_layer = {numeric_column("age"), embedding_column(sex, 2)},
//                                .linear_model = {sex},
//                                .keep = {{"label", float32, {1}}}});
//   auto data = csv("people.csv", ...).padded_batch(64).map(layout.parts(), layout);
//   // "age" float32 [64, 1], "sex/ids" int64 [64, 1], "label" float32 [64, 1]
//
// The numbers of a column without a table become a component of the column's name, float32 [rows, width]. Ids become
// "<column>/ids", int64 [rows, room], with short rows filled with -1; a weighted column has "<column>/weights",
// float32, beside them. The placeholders that input_layer and linear_model (feature_layers.hpp) make in a graph have
// these names.
//
// In the data a feature is a component of its name. It holds numbers; or text, as uint8 with the bytes of a string
// along the last axis, padded with zeros. All features are dense, so "" and -1 are missing values.
#pragma once
#include "../base/build.hpp"

#include <cstring>

#include "../input/datum.hpp"
#include "feature_column.hpp"

namespace gradus::inline GRADUS_BUILD {

// A column of a linear model: ids, or numbers other than an embedding's. A bucketized_column is used by its ids.
class linear_column {
public:
  linear_column(categorical_column c) : what_(std::move(c)) {}
  linear_column(numeric_column c) : what_(dense_column(std::move(c))) {}
  linear_column(indicator_column c) : what_(dense_column(std::move(c))) {}
  std::string name() const;
  const categorical_column* categorical() const { return std::get_if<categorical_column>(&what_); }
  const dense_column* dense() const { return std::get_if<dense_column>(&what_); }

private:
  std::variant<categorical_column, dense_column> what_;
};

struct feature_layout_settings {
  std::vector<dense_column> input_layer = {};
  std::vector<linear_column> linear_model = {};
  // The room for ids: how many values a feature has in an example at most. ids_per_example holds for all features that
  // ids_of does not list by name. If an example has more ids than the room, making the batch raises an error.
  std::int64_t ids_per_example = 1;
  std::vector<std::pair<std::string, std::int64_t>> ids_of = {};
  components keep = {};  // components of the data that are passed on unchanged, such as labels
};

namespace detail {

// Returns a component of a batch of data as the feature that a column needs. Raises invalid_argument for a component
// that is not a batch, or whose type does not fit.
feature feature_of(const component& c, const_tensor_view v, const feature_need& need);

// Returns the kind of a feature that is kept as this component. Raises invalid_argument for a type that features do not
// have.
feature_kind kept_kind(const component& c);
void keep_feature(const feature& f, const component& c, tensor_view to);

}  // namespace detail

// A layout has no state that changes, so a map may call it from several threads.
class feature_layout {
public:
  // Raises invalid_argument if there are no columns, if two columns of one list, or two different columns of both
  // lists, have the same name, and for a room below 1.
  explicit feature_layout(feature_layout_settings s);
  feature_layout(const feature_layout&);
  feature_layout(feature_layout&&) noexcept;
  feature_layout& operator=(const feature_layout&);
  feature_layout& operator=(feature_layout&&) noexcept;
  ~feature_layout();

  // Returns the components of the result, for map.
  const components& parts() const { return parts_; }
  // Returns the features that are read.
  const std::vector<feature_need>& needs() const { return needs_; }
  const std::vector<dense_column>& input_layer() const { return s_.input_layer; }
  const std::vector<linear_column>& linear_model() const { return s_.linear_model; }
  const components& kept() const { return s_.keep; }
  // Returns how many ids of a column an example may have.
  std::int64_t room(const categorical_column& c) const;

  // The function for map. It turns a batch of data into a batch of parts().
  void operator()(const datum& from, datum& to) const;
  // Turns a batch of features, for example from parse_example, into a batch of parts(). A kept component that is not
  // among the features stays zero.
  void write(const features& examples, datum& to) const;

private:
  void write_columns(const features& examples, datum& to) const;
  void add_dense(const dense_column& c);
  void add_ids(const categorical_column& c);
  static void check_same(const std::string& name, bool same);

  feature_layout_settings s_;
  components parts_;
  std::vector<feature_need> needs_;
  std::vector<dense_column> dense_;  // each once
  std::vector<categorical_column> sparse_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "feature_layout.ipp"
#endif
