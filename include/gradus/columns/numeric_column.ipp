// The bodies of numeric_column.hpp.
#pragma once
#include "../base/body.hpp"
#include "numeric_column.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY numeric_column::numeric_column(std::string key, numeric_options o)
    : key_(std::move(key)), o_(std::make_shared<const numeric_options>(std::move(o))) {
  detail::check_key("numeric_column", key_);
  const auto n = static_cast<std::size_t>(width());
  for (int i = 0; i < o_->shape.rank; ++i)
    if (o_->shape[i] < 1)
      raise(status::invalid_argument,
            text("numeric_column \"", key_, "\": expected extents of at least 1, found shape ", to_text(o_->shape)));
  if (o_->default_value.size() > 1 && o_->default_value.size() != n)
    raise(status::invalid_argument, text("numeric_column \"", key_, "\": expected 1 or ", n, " default values, found ",
                                         o_->default_value.size()));
}

GRADUS_BODY std::vector<feature_need> numeric_column::needs() const {
  return {{.key = key_,
           .kind = feature_kind::float32,
           .ragged = false,
           .dims = o_->shape,
           .default_value = o_->default_value}};
}

GRADUS_BODY bool numeric_column::same_as(const numeric_column& other) const {
  return key_ == other.key_ && (o_ == other.o_ || (o_->shape == other.o_->shape &&
                                                   detail::same_defaults(o_->default_value, other.o_->default_value) &&
                                                   !o_->normalizer_fn && !other.o_->normalizer_fn));
}

GRADUS_BODY void numeric_column::read(const features& examples, std::int64_t r, float* to, bool with_normalizer) const {
  const feature* f = examples.find(key_);
  if (f == nullptr && o_->default_value.empty()) f = &examples[key_];  // raises not_found, with all names
  const auto n = static_cast<std::size_t>(width()), has = f != nullptr ? f->end(r) - f->begin(r) : 0;
  if (has == 0 && !o_->default_value.empty()) {
    for (std::size_t i = 0; i < n; ++i) to[i] = o_->default_value[o_->default_value.size() == 1 ? 0 : i];
  } else if (f->kind == feature_kind::text || has != n) {
    raise(status::invalid_argument,
          text("column \"", key_, "\": expected ", n, " numbers in each example, found ", has, " of ", name_of(f->kind),
               " in example ", r, " of the batch; give the column's shape or a default_value"));
  } else if (f->kind == feature_kind::float32) {
    for (std::size_t i = 0; i < n; ++i) to[i] = f->floats[f->begin(r) + i];
  } else {
    for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<float>(f->ints[f->begin(r) + i]);
  }
  if (with_normalizer && o_->normalizer_fn)
    for (std::size_t i = 0; i < n; ++i) to[i] = o_->normalizer_fn(to[i]);
}

}  // namespace gradus

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY bucketized_rule::bucketized_rule(numeric_column source, std::vector<float> boundaries)
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

GRADUS_BODY void bucketized_rule::read(const features& examples, id_lists& out) const {
  std::vector<float> row(static_cast<std::size_t>(source_.width()));
  out.clear();
  for (std::int64_t r = 0; r < examples.rows(); ++r) {
    source_.read(examples, r, row.data());
    std::int64_t first = 0;
    for (const float v : row) {
      // The bucket is the number of boundaries that are not above v; NaN is above all boundaries, as in TensorFlow.
      const auto at = std::upper_bound(boundaries_.begin(), boundaries_.end(), v) - boundaries_.begin();
      out.add(first + at);
      first += buckets();
    }
    out.end_row();
  }
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY bucketized_column::bucketized_column(numeric_column source, std::vector<float> boundaries)
    : categorical_column(std::make_shared<detail::bucketized_rule>(std::move(source), std::move(boundaries))) {}

}  // namespace gradus
