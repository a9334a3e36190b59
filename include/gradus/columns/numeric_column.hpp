// These columns give the numbers of an example: as they are (numeric_column), or by the interval that they lie in
// (bucketized_column).
//
//   numeric_column age("age", {.normalizer_fn = [](float v) { return v / 100; }});
//   numeric_column pixels("pixels", {.shape = {784}});
//   bucketized_column by_age(numeric_column("age"), {18, 30, 65});      below 18; 18 to below 30; ...: 4 buckets
//
// As tf.feature_column (TensorFlow 1.15). Errors of the settings, and of features that do not fit, are
// invalid_argument.
#pragma once
#include <cmath>
#include <functional>
#include <span>

#include "categorical_column.hpp"

namespace gradus::inline GRADUS_BUILD {

struct numeric_options {
  extents shape = {1};  // of one example's value
  // For an example that has no value (and a batch that has not the feature): one number for all places, or one for
  // each. None: that is an error.
  std::vector<float> default_value = {};
  std::function<float(float)> normalizer_fn = {};  // of every number, also of the default
};

// Floats, or integers that become floats (above 2^24 the nearest one). A ragged feature must have all values or none.
class numeric_column {
public:
  numeric_column(std::string key, numeric_options o = {});
  const std::string& name() const { return key_; }
  const extents& dims() const { return o_.shape; }
  std::int64_t width() const { return count(o_.shape); }
  std::vector<feature_need> needs() const;

  // The numbers of example r, `width()` of them, at `to`; with_normalizer false: as the feature has them.
  void read(const features& examples, std::int64_t r, float* to, bool with_normalizer = true) const;

private:
  std::string key_;
  numeric_options o_;
};

namespace detail {

class bucketized_rule final : public categorical_rule {
public:
  bucketized_rule(numeric_column source, std::vector<float> boundaries);
  std::string name() const override { return source_.name() + "_bucketized"; }
  std::int64_t num_buckets() const override { return source_.width() * buckets(); }
  std::int64_t widest(const std::function<std::int64_t(std::string_view)>&) const override { return source_.width(); }
  void needs(std::vector<feature_need>& out) const override { out.push_back(source_.needs()[0]); }
  void read(const features& examples, id_lists& out) const override;
  const numeric_column& source() const { return source_; }
  std::int64_t buckets() const { return static_cast<std::int64_t>(boundaries_.size()) + 1; }

private:
  numeric_column source_;
  std::vector<float> boundaries_;
};

}  // namespace detail

// m boundaries make m + 1 buckets of each number, closed on the left: [b0, b1) holds b0. Number j of an example in
// bucket k has id j (m + 1) + k. It is a categorical column, and by itself numbers too: its ids one-hot.
class bucketized_column : public categorical_column {
public:
  bucketized_column(numeric_column source, std::vector<float> boundaries);
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "numeric_column.ipp"
#endif
