// These columns give the numbers of an example unchanged (numeric_column), or the interval in which each number lies
// (bucketized_column).
//
//   numeric_column age("age", {.normalizer_fn = [](float v) { return v / 100; }});
//   numeric_column pixels("pixels", {.shape = {784}});
//   bucketized_column by_age(numeric_column("age"), {18, 30, 65});      below 18; 18 to below 30; ...: 4 buckets
//
// They work as those of tf.feature_column (TensorFlow 1.15). Wrong settings and features that do not fit raise
// invalid_argument.
#pragma once
#include "../base/build.hpp"

#include <cmath>
#include <functional>
#include <memory>
#include <span>

#include "categorical_column.hpp"

namespace gradus::inline GRADUS_BUILD {

struct numeric_options {
  extents shape = {1};  // of one example's value
  // The value of an example that has none, and of all examples of a batch without the feature: one number for all
  // places, or one for each place. If it is empty, a missing value is an error.
  std::vector<float> default_value = {};
  std::function<float(float)> normalizer_fn = {};  // applied to every number, also to the default
};

// Reads floats, or integers, which it converts to floats (above 2^24 to the nearest one). In a ragged feature an
// example must have all values or none.
class numeric_column {
public:
  numeric_column(std::string key, numeric_options o = {});
  const std::string& name() const { return key_; }
  const extents& dims() const { return o_->shape; }
  std::int64_t width() const { return count(o_->shape); }
  std::vector<feature_need> needs() const;
  // Returns whether both give the same numbers: they are copies of one column, or their settings are equal and neither
  // has a normalizer_fn, since functions cannot be compared.
  bool same_as(const numeric_column& other) const;

  // Writes the `width()` numbers of example r to `to`; without with_normalizer, as the feature has them.
  void read(const features& examples, std::int64_t r, float* to, bool with_normalizer = true) const;

private:
  std::string key_;
  std::shared_ptr<const numeric_options> o_;
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

// m boundaries make m + 1 buckets for each number, which are closed on the left: [b0, b1) holds b0. If number j of an
// example lies in bucket k, its id is j (m + 1) + k. A bucketized_column is a categorical column, and can also be used
// as a dense column, whose numbers are the ids one-hot.
class bucketized_column : public categorical_column {
public:
  bucketized_column(numeric_column source, std::vector<float> boundaries);
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "numeric_column.ipp"
#endif
