// The bodies of categorical_column.hpp.
#pragma once
#include "../base/body.hpp"
#include "categorical_column.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void check_buckets(std::string_view column, std::int64_t n, std::string_view setting) {
  if (n < 1) raise(status::invalid_argument, text(column, ": expected ", setting, " of at least 1, found ", n));
}

GRADUS_BODY void check_key(std::string_view what, std::string_view key) {
  if (key.empty()) raise(status::invalid_argument, text(what, ": expected the name of a feature, found \"\""));
}

GRADUS_BODY decimal_text::decimal_text(std::int64_t n)
    : size(static_cast<std::size_t>(std::to_chars(digits, digits + sizeof digits, n).ptr - digits)) {}

GRADUS_BODY keyed_rule::keyed_rule(std::string_view what, std::string key, feature_kind kind)
    : key_(std::move(key)), kind_(kind) {
  check_key(what, key_);
  if (kind == feature_kind::float32)
    raise(status::invalid_argument, text(what, " \"", key_, "\": expected dtype string or int64, found float32"));
}

GRADUS_BODY std::int64_t keyed_rule::widest(const std::function<std::int64_t(std::string_view)>& width_of) const {
  return width_of(key_);
}

GRADUS_BODY void keyed_rule::read(const features& examples, id_lists& out) const {
  const feature& f = examples[key_];
  if (f.kind != kind_)
    raise(status::invalid_argument, text("column \"", key_, "\": expected a feature of ", name_of(kind_), ", found ",
                                         name_of(f.kind), "; set the column's dtype, or read the feature as that"));
  out.clear();
  const bool dense = !f.ragged();
  for (std::int64_t r = 0; r < examples.rows(); ++r) {
    for (std::size_t i = f.begin(r), end = f.end(r); i < end; ++i) {
      if (kind_ == feature_kind::text) {
        const std::string_view s = f.texts[i];
        out.add(dense && s.empty() ? missing_id : id_of(s));
      } else {
        out.add(dense && f.ints[i] == -1 ? missing_id : id_of(f.ints[i]));
      }
    }
    out.end_row();
  }
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::vector<feature_need> categorical_column::needs() const {
  std::vector<feature_need> out;
  rule_->needs(out);
  return out;
}

GRADUS_BODY id_lists categorical_column::ids(const features& examples) const {
  id_lists out;
  ids(examples, out);
  return out;
}

GRADUS_BODY void categorical_column::ids(const features& examples, id_lists& out) const {
  rule_->read(examples, out);
  std::size_t kept = 0;
  for (std::size_t r = 0, i = 0; r + 1 < out.splits.size(); ++r) {
    for (; i < static_cast<std::size_t>(out.splits[r + 1]); ++i) {
      if (out.ids[i] == detail::missing_id) continue;
      if (!out.weights.empty()) out.weights[kept] = out.weights[i];
      out.ids[kept++] = out.ids[i];
    }
    out.splits[r + 1] = static_cast<std::int64_t>(kept);
  }
  out.ids.resize(kept);
  if (!out.weights.empty()) out.weights.resize(kept);
}

}  // namespace gradus

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY hash_bucket_rule::hash_bucket_rule(std::string key, std::int64_t n, feature_kind kind)
    : keyed_rule("categorical_column_with_hash_bucket", std::move(key), kind), n_(n) {
  check_buckets(text("categorical_column_with_hash_bucket \"", this->key(), "\""), n, "a hash_bucket_size");
}

GRADUS_BODY std::int64_t hash_bucket_rule::id_of(std::string_view s) const {
  return static_cast<std::int64_t>(fingerprint64(s) % static_cast<std::uint64_t>(n_));
}

GRADUS_BODY identity_rule::identity_rule(std::string key, std::int64_t n, std::optional<std::int64_t> other)
    : keyed_rule("categorical_column_with_identity", std::move(key), feature_kind::int64), n_(n), other_(other) {
  check_buckets(text("categorical_column_with_identity \"", this->key(), "\""), n, "num_buckets");
  if (other && (*other < 0 || *other >= n))
    raise(status::invalid_argument, text("categorical_column_with_identity \"", this->key(),
                                         "\": expected a default_value from 0 to ", n - 1, ", found ", *other));
}

GRADUS_BODY std::int64_t identity_rule::id_of(std::int64_t v) const {
  if (v >= 0 && v < n_) return v;
  if (other_) return *other_;
  if (v >= n_)
    raise(status::invalid_argument, text("column \"", key(), "\": expected an id below ", n_, ", found ", v,
                                         "; give more num_buckets, or a default_value for what is outside"));
  return v;
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY categorical_column categorical_column_with_hash_bucket(std::string key, std::int64_t hash_bucket_size,
                                                                   const hash_bucket_options& o) {
  return categorical_column(std::make_shared<detail::hash_bucket_rule>(std::move(key), hash_bucket_size, o.dtype));
}

GRADUS_BODY categorical_column categorical_column_with_identity(std::string key, std::int64_t num_buckets,
                                                                const identity_options& o) {
  return categorical_column(std::make_shared<detail::identity_rule>(std::move(key), num_buckets, o.default_value));
}

}  // namespace gradus
