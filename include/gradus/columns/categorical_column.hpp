// Categorical columns: how the values of a feature become ids, and how many different ids there are.
//
//   auto sex = categorical_column_with_vocabulary_list("sex", {"f", "m"});        (vocabulary_column.hpp)
//   auto word = categorical_column_with_hash_bucket("word", 1000);
//   auto day = categorical_column_with_identity("day", 7);
//   id_lists ids = word.ids(batch);                                               of a batch of features
//
// An indicator_column or an embedding_column makes numbers of them. As tf.feature_column (TensorFlow 1.15), with its
// names and its ids. In a dense feature, "" and -1 stand for a missing value and give no id; in a ragged one they are
// values. Errors of the settings are invalid_argument, as are features whose kind does not fit.
#pragma once
#include <charconv>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../input/features.hpp"
#include "fingerprint.hpp"
#include "id_lists.hpp"

namespace gradus {

class categorical_column;

// A feature that a column reads, for parse_example and the like: a categorical column reads numbers or text, as many as
// an example has; a numeric_column numbers, so many (`dims`) of each example.
struct feature_need {
  std::string key;
  feature_kind kind = feature_kind::text;
  bool ragged = true;
  extents dims = {};
  std::vector<float> default_value = {};
  bool operator==(const feature_need&) const = default;
};

// How a vocabulary in a file is used, for a warm start (checkpoint/vocab.hpp); without a file the path is empty.
struct vocabulary_info {
  std::string vocabulary_file = {};
  std::int64_t vocabulary_size = 0, num_oov_buckets = 0;
};

namespace detail {

// Of a missing value, while positions still count. Never seen outside.
inline constexpr std::int64_t missing_id = std::numeric_limits<std::int64_t>::min();

class categorical_rule {
public:
  virtual ~categorical_rule() = default;
  virtual std::string name() const = 0;
  virtual std::int64_t num_buckets() const = 0;
  // The ids of all values in their order, missing_id where one is missing.
  virtual void read(const features& examples, id_lists& out) const = 0;
  virtual void needs(std::vector<feature_need>& out) const = 0;
  // How many ids an example has at most, if a feature `key` has width_of(key) values.
  virtual std::int64_t widest(const std::function<std::int64_t(std::string_view)>& width_of) const = 0;
  virtual bool weighted() const { return false; }
  virtual bool hashed() const { return false; }
  virtual vocabulary_info vocabulary() const { return {}; }
};

inline void check_buckets(std::string_view column, std::int64_t n, std::string_view setting) {
  if (n < 1) raise(status::invalid_argument, text(column, ": expected ", setting, " of at least 1, found ", n));
}
inline void check_key(std::string_view what, std::string_view key) {
  if (key.empty()) raise(status::invalid_argument, text(what, ": expected the name of a feature, found \"\""));
}
// A number as the text that is hashed in its place.
struct decimal_text {
  char digits[24];
  std::size_t size;
  explicit decimal_text(std::int64_t n)
      : size(static_cast<std::size_t>(std::to_chars(digits, digits + sizeof digits, n).ptr - digits)) {}
  operator std::string_view() const { return {digits, size}; }
};

// A column of one feature whose values are text or integers: each has its id, or is missing.
class keyed_rule : public categorical_rule {
public:
  keyed_rule(std::string_view what, std::string key, feature_kind kind) : key_(std::move(key)), kind_(kind) {
    check_key(what, key_);
    if (kind == feature_kind::float32)
      raise(status::invalid_argument, text(what, " \"", key_, "\": expected dtype string or int64, found float32"));
  }
  std::string name() const override { return key_; }
  void needs(std::vector<feature_need>& out) const override { out.push_back({.key = key_, .kind = kind_}); }
  std::int64_t widest(const std::function<std::int64_t(std::string_view)>& width_of) const override {
    return width_of(key_);
  }
  void read(const features& examples, id_lists& out) const override {
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

protected:
  virtual std::int64_t id_of(std::string_view) const = 0;
  virtual std::int64_t id_of(std::int64_t) const = 0;
  const std::string& key() const { return key_; }
  feature_kind kind() const { return kind_; }

private:
  std::string key_;
  feature_kind kind_;
};

}  // namespace detail

// A value: copies share what they know.
class categorical_column {
public:
  explicit categorical_column(std::shared_ptr<const detail::categorical_rule> rule) : rule_(std::move(rule)) {}

  std::string name() const { return rule_->name(); }
  std::int64_t num_buckets() const { return rule_->num_buckets(); }
  bool weighted() const { return rule_->weighted(); }
  // Of vocabulary columns: what a warm start with another vocabulary has to know.
  vocabulary_info vocabulary() const { return rule_->vocabulary(); }
  // The features that are read.
  std::vector<feature_need> needs() const {
    std::vector<feature_need> out;
    rule_->needs(out);
    return out;
  }
  // The ids of every example, in the order of its values, with the weights of a weighted column. Some may be below 0
  // (what a vocabulary does not know, where it says so): look-ups pass over them.
  id_lists ids(const features& examples) const {
    id_lists out;
    ids(examples, out);
    return out;
  }
  // In the memory that `out` has already.
  void ids(const features& examples, id_lists& out) const {
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
  const detail::categorical_rule& rule() const { return *rule_; }

private:
  std::shared_ptr<const detail::categorical_rule> rule_;
};

namespace detail {

class hash_bucket_rule final : public keyed_rule {
public:
  hash_bucket_rule(std::string key, std::int64_t n, feature_kind kind)
      : keyed_rule("categorical_column_with_hash_bucket", std::move(key), kind), n_(n) {
    check_buckets(text("categorical_column_with_hash_bucket \"", this->key(), "\""), n, "a hash_bucket_size");
  }
  std::int64_t num_buckets() const override { return n_; }
  bool hashed() const override { return true; }

private:
  std::int64_t id_of(std::string_view s) const override {
    return static_cast<std::int64_t>(fingerprint64(s) % static_cast<std::uint64_t>(n_));
  }
  std::int64_t id_of(std::int64_t v) const override { return id_of(std::string_view(decimal_text(v))); }
  std::int64_t n_;
};

class identity_rule final : public keyed_rule {
public:
  identity_rule(std::string key, std::int64_t n, std::optional<std::int64_t> other)
      : keyed_rule("categorical_column_with_identity", std::move(key), feature_kind::int64), n_(n), other_(other) {
    check_buckets(text("categorical_column_with_identity \"", this->key(), "\""), n, "num_buckets");
    if (other && (*other < 0 || *other >= n))
      raise(status::invalid_argument, text("categorical_column_with_identity \"", this->key(),
                                           "\": expected a default_value from 0 to ", n - 1, ", found ", *other));
  }
  std::int64_t num_buckets() const override { return n_; }

private:
  std::int64_t id_of(std::string_view) const override { return no_id; }  // its feature is int64
  std::int64_t id_of(std::int64_t v) const override {
    if (v >= 0 && v < n_) return v;
    if (other_) return *other_;
    if (v >= n_)
      raise(status::invalid_argument, text("column \"", key(), "\": expected an id below ", n_, ", found ", v,
                                           "; give more num_buckets, or a default_value for what is outside"));
    return v;
  }
  std::int64_t n_;
  std::optional<std::int64_t> other_;
};

}  // namespace detail

struct hash_bucket_options {
  feature_kind dtype = feature_kind::text;
};
// id = fingerprint64(text) mod hash_bucket_size; an integer is hashed as its decimal text. Different values can share
// an id.
inline categorical_column categorical_column_with_hash_bucket(std::string key, std::int64_t hash_bucket_size,
                                                              const hash_bucket_options& o = {}) {
  return categorical_column(std::make_shared<detail::hash_bucket_rule>(std::move(key), hash_bucket_size, o.dtype));
}

struct identity_options {
  std::optional<std::int64_t> default_value = {};  // for what is outside [0, num_buckets)
};
// The value is the id. Without a default_value, what is below 0 is no id, and what is num_buckets or more an error
// (invalid_argument) when a batch is read.
inline categorical_column categorical_column_with_identity(std::string key, std::int64_t num_buckets,
                                                           const identity_options& o = {}) {
  return categorical_column(std::make_shared<detail::identity_rule>(std::move(key), num_buckets, o.default_value));
}

}  // namespace gradus
