// The bodies of weighted_column.hpp.
#pragma once
#include "../base/body.hpp"
#include "weighted_column.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY weighted_rule::weighted_rule(categorical_column column, std::string weight_key, feature_kind kind)
    : column_(std::move(column)), key_(std::move(weight_key)), kind_(kind) {
  check_key("weighted_categorical_column", key_);
  if (column_.weighted())
    raise(status::invalid_argument, text("weighted_categorical_column: expected a column without weights, found \"",
                                         column_.name(), "\"; multiply the two features"));
  if (kind == feature_kind::text)
    raise(status::invalid_argument, text("weighted_categorical_column \"", name(),
                                         "\": expected weights of dtype float32 or int64, found string"));
}

GRADUS_BODY void weighted_rule::needs(std::vector<feature_need>& out) const {
  column_.rule().needs(out);
  out.push_back({.key = key_, .kind = kind_});
}

GRADUS_BODY std::int64_t weighted_rule::widest(const std::function<std::int64_t(std::string_view)>& width_of) const {
  return column_.rule().widest(width_of);
}

GRADUS_BODY void weighted_rule::read(const features& examples, id_lists& out) const {
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
    // If the ids are dense and the weights ragged, or the other way round, the padding of the dense one has no partner.
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

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY categorical_column weighted_categorical_column(categorical_column column, std::string weight_feature_key,
                                                           const weight_options& o) {
  return categorical_column(
      std::make_shared<detail::weighted_rule>(std::move(column), std::move(weight_feature_key), o.dtype));
}

}  // namespace gradus
