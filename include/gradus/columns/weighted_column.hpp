// weighted_categorical_column: the ids of a column, with a weight for each from another feature.
//
//   auto terms = weighted_categorical_column(categorical_column_with_hash_bucket("terms", 1000), "frequencies");
#pragma once
#include "categorical_column.hpp"

namespace gradus {

namespace detail {

class weighted_rule final : public categorical_rule {
public:
  weighted_rule(categorical_column column, std::string weight_key, feature_kind kind)
      : column_(std::move(column)), key_(std::move(weight_key)), kind_(kind) {
    check_key("weighted_categorical_column", key_);
    if (column_.weighted())
      raise(status::invalid_argument, text("weighted_categorical_column: expected a column without weights, found \"",
                                           column_.name(), "\"; multiply the two features"));
    if (kind == feature_kind::text)
      raise(status::invalid_argument, text("weighted_categorical_column \"", name(),
                                           "\": expected weights of dtype float32 or int64, found string"));
  }
  std::string name() const override { return text(column_.name(), "_weighted_by_", key_); }
  std::int64_t num_buckets() const override { return column_.num_buckets(); }
  bool weighted() const override { return true; }
  vocabulary_info vocabulary() const override { return column_.vocabulary(); }
  void needs(std::vector<feature_need>& out) const override {
    column_.rule().needs(out);
    out.push_back({.key = key_, .kind = kind_});
  }
  std::int64_t widest(const std::function<std::int64_t(std::string_view)>& width_of) const override {
    return column_.rule().widest(width_of);
  }
  void read(const features& examples, id_lists& out) const override {
    column_.rule().read(examples, out);
    const feature& f = examples[key_];
    if (f.kind != kind_)
      raise(status::invalid_argument, text("column \"", name(), "\": expected weights of ", name_of(kind_), ", found ",
                                           name_of(f.kind), "; set the column's dtype"));
    const auto weight = [&f](std::size_t i) {
      return f.kind == feature_kind::float32 ? f.floats[i] : static_cast<float>(f.ints[i]);
    };
    out.weights.assign(out.ids.size(), 0);
    for (std::int64_t r = 0; r < examples.rows(); ++r) {
      // Where one of the two is dense and the other is not, what fills the dense one up has no partner.
      const std::size_t ids = out.end(r) - out.begin(r), weights = f.end(r) - f.begin(r);
      bool fits = true;
      for (std::size_t i = weights; i < ids; ++i) fits = fits && out.ids[out.begin(r) + i] == missing_id;
      for (std::size_t i = ids; i < weights; ++i) fits = fits && weight(f.begin(r) + i) == 0;
      if (!fits)
        raise(status::invalid_argument, text("column \"", name(), "\": example ", r, " of the batch has ", ids,
                                             " values and ", weights, " weights; expected a weight for each value"));
      for (std::size_t i = 0; i < ids && i < weights; ++i) out.weights[out.begin(r) + i] = weight(f.begin(r) + i);
    }
  }

private:
  categorical_column column_;
  std::string key_;
  feature_kind kind_;
};

}  // namespace detail

struct weight_options {
  feature_kind dtype = feature_kind::float32;
};
// Its name is "<column>_weighted_by_<weight_feature_key>". The i-th value of an example has the i-th weight; a missing
// value drops out with its weight. (TensorFlow drops weights of 0 from a dense feature first, and then refuses a batch
// in which they are not as many as the values.)
inline categorical_column weighted_categorical_column(categorical_column column, std::string weight_feature_key,
                                                      const weight_options& o = {}) {
  return categorical_column(
      std::make_shared<detail::weighted_rule>(std::move(column), std::move(weight_feature_key), o.dtype));
}

}  // namespace gradus
