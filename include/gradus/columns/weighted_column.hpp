// weighted_categorical_column gives the ids of a column, with a weight for each from another feature.
//
//   auto terms = weighted_categorical_column(categorical_column_with_hash_bucket("terms", 1000), "frequencies");
#pragma once
#include "categorical_column.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

class weighted_rule final : public categorical_rule {
public:
  weighted_rule(categorical_column column, std::string weight_key, feature_kind kind);
  std::string name() const override { return text(column_.name(), "_weighted_by_", key_); }
  std::int64_t num_buckets() const override { return column_.num_buckets(); }
  bool weighted() const override { return true; }
  vocabulary_info vocabulary() const override { return column_.vocabulary(); }
  void needs(std::vector<feature_need>& out) const override;
  std::int64_t widest(const std::function<std::int64_t(std::string_view)>& width_of) const override;
  void read(const features& examples, id_lists& out) const override;

private:
  categorical_column column_;
  std::string key_;
  feature_kind kind_;
};

}  // namespace detail

struct weight_options {
  feature_kind dtype = feature_kind::float32;
};
// The column's name is "<column>_weighted_by_<weight_feature_key>". The i-th value of an example has the i-th weight; a
// missing value is dropped together with its weight. (TensorFlow first drops weights of 0 from a dense feature, and
// then refuses a batch that does not have as many weights as values.)
categorical_column weighted_categorical_column(categorical_column column, std::string weight_feature_key,
                                               const weight_options& o = {});

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "weighted_column.ipp"
#endif
