// Numbers of an example: as they are (numeric_column), or by the interval that they lie in (bucketized_column).
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

namespace gradus {

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
  numeric_column(std::string key, numeric_options o = {}) : key_(std::move(key)), o_(std::move(o)) {
    detail::check_key("numeric_column", key_);
    const auto n = static_cast<std::size_t>(width());
    for (int i = 0; i < o_.shape.rank; ++i)
      if (o_.shape[i] < 1)
        raise(status::invalid_argument,
              text("numeric_column \"", key_, "\": expected extents of at least 1, found shape ", to_text(o_.shape)));
    if (o_.default_value.size() > 1 && o_.default_value.size() != n)
      raise(status::invalid_argument, text("numeric_column \"", key_, "\": expected 1 or ", n,
                                           " default values, found ", o_.default_value.size()));
  }
  const std::string& name() const { return key_; }
  const extents& dims() const { return o_.shape; }
  std::int64_t width() const { return count(o_.shape); }
  std::vector<feature_need> needs() const {
    return {{.key = key_,
             .kind = feature_kind::float32,
             .ragged = false,
             .dims = o_.shape,
             .default_value = o_.default_value}};
  }

  // The numbers of example r, `width()` of them, at `to`; with_normalizer false: as the feature has them.
  void read(const features& examples, std::int64_t r, float* to, bool with_normalizer = true) const {
    const feature* f = examples.find(key_);
    if (f == nullptr && o_.default_value.empty()) f = &examples[key_];  // says which there are
    const auto n = static_cast<std::size_t>(width()), has = f != nullptr ? f->end(r) - f->begin(r) : 0;
    if (has == 0 && !o_.default_value.empty()) {
      for (std::size_t i = 0; i < n; ++i) to[i] = o_.default_value[o_.default_value.size() == 1 ? 0 : i];
    } else if (f->kind == feature_kind::text || has != n) {
      raise(status::invalid_argument,
            text("column \"", key_, "\": expected ", n, " numbers in each example, found ", has, " of ",
                 name_of(f->kind), " in example ", r, " of the batch; give the column's shape or a default_value"));
    } else if (f->kind == feature_kind::float32) {
      for (std::size_t i = 0; i < n; ++i) to[i] = f->floats[f->begin(r) + i];
    } else {
      for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<float>(f->ints[f->begin(r) + i]);
    }
    if (with_normalizer && o_.normalizer_fn)
      for (std::size_t i = 0; i < n; ++i) to[i] = o_.normalizer_fn(to[i]);
  }

private:
  std::string key_;
  numeric_options o_;
};

namespace detail {

class bucketized_rule final : public categorical_rule {
public:
  bucketized_rule(numeric_column source, std::vector<float> boundaries)
      : source_(std::move(source)), boundaries_(std::move(boundaries)) {
    const auto refuse = [this](const auto&... pieces) {
      raise(status::invalid_argument, text("bucketized_column \"", name(), "\": ", pieces...));
    };
    if (source_.dims().rank > 1) refuse("expected a numeric_column of one axis, found shape ", to_text(source_.dims()));
    if (boundaries_.empty()) refuse("expected boundaries, found none");
    for (std::size_t i = 0; i < boundaries_.size(); ++i)
      if (std::isnan(boundaries_[i]) || (i > 0 && boundaries_[i] <= boundaries_[i - 1]))
        refuse("expected boundaries that rise, found ", boundaries_[i], " at place ", i);
  }
  std::string name() const override { return source_.name() + "_bucketized"; }
  std::int64_t num_buckets() const override { return source_.width() * buckets(); }
  std::int64_t widest(const std::function<std::int64_t(std::string_view)>&) const override { return source_.width(); }
  void needs(std::vector<feature_need>& out) const override { out.push_back(source_.needs()[0]); }
  void read(const features& examples, id_lists& out) const override {
    std::vector<float> row(static_cast<std::size_t>(source_.width()));
    out.clear();
    for (std::int64_t r = 0; r < examples.rows(); ++r) {
      source_.read(examples, r, row.data());
      std::int64_t first = 0;
      for (const float v : row) {
        // The number of boundaries that are not above v; NaN is above all, as in TensorFlow.
        const auto at = std::upper_bound(boundaries_.begin(), boundaries_.end(), v) - boundaries_.begin();
        out.add(first + at);
        first += buckets();
      }
      out.end_row();
    }
  }
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
  bucketized_column(numeric_column source, std::vector<float> boundaries)
      : categorical_column(std::make_shared<detail::bucketized_rule>(std::move(source), std::move(boundaries))) {}
};

}  // namespace gradus
