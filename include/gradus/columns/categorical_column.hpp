// A categorical column turns the values of a feature into ids from 0 to num_buckets() - 1.
//
//   auto sex = categorical_column_with_vocabulary_list("sex", {"f", "m"});        (vocabulary_column.hpp)
//   auto word = categorical_column_with_hash_bucket("word", 1000);
//   auto day = categorical_column_with_identity("day", 7);
//   id_lists ids = word.ids(batch);                                               the ids of a batch of features
//
// An indicator_column or an embedding_column turns the ids into numbers. Names and ids are those of tf.feature_column
// (TensorFlow 1.15). In a dense feature, "" and -1 stand for a missing value and give no id; in a ragged feature they
// are values. Wrong settings and features whose kind does not fit raise invalid_argument.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
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

namespace gradus::inline GRADUS_BUILD {

class categorical_column;

// Describes a feature that a column reads, for parse_example and similar parsers. A categorical column reads numbers or
// text, as many as an example has. A numeric_column reads numbers, the same number (`dims`) of each example.
struct feature_need {
  std::string key;
  feature_kind kind = feature_kind::text;
  bool ragged = true;
  extents dims = {};
  std::vector<float> default_value = {};
  bool one_default = true;  // false: columns of the feature have other defaults too
  bool operator==(const feature_need&) const = default;
};

namespace detail {
// Returns whether two lists of default values are the same; NaN, which stands for a missing value, is the same as NaN.
inline bool same_defaults(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](float x, float y) { return x == y || (x != x && y != y); });
}
}  // namespace detail

// Describes how a column uses a vocabulary file, for a warm start (checkpoint/vocab.hpp). The path is empty if there is
// no file.
struct vocabulary_info {
  std::string vocabulary_file = {};
  std::int64_t vocabulary_size = 0, num_oov_buckets = 0;
};

namespace detail {

// The id of a missing value, which keeps its place until weights are assigned. categorical_column::ids removes these
// ids.
inline constexpr std::int64_t missing_id = std::numeric_limits<std::int64_t>::min();

class categorical_rule {
public:
  virtual ~categorical_rule() = default;
  virtual std::string name() const = 0;
  virtual std::int64_t num_buckets() const = 0;
  // Writes the ids of all values in their order, with missing_id for a missing value.
  virtual void read(const features& examples, id_lists& out) const = 0;
  virtual void needs(std::vector<feature_need>& out) const = 0;
  // Returns how many ids an example has at most, if a feature `key` has width_of(key) values.
  virtual std::int64_t widest(const std::function<std::int64_t(std::string_view)>& width_of) const = 0;
  virtual bool weighted() const { return false; }
  virtual bool hashed() const { return false; }
  virtual vocabulary_info vocabulary() const { return {}; }
};

void check_buckets(std::string_view column, std::int64_t n, std::string_view setting);
void check_key(std::string_view what, std::string_view key);
// The decimal text of a number, which is hashed in place of the number.
struct decimal_text {
  char digits[24];
  std::size_t size;
  explicit decimal_text(std::int64_t n);
  operator std::string_view() const { return {digits, size}; }
};

// A column of one feature whose values are text or integers. Each value has an id, or is missing.
class keyed_rule : public categorical_rule {
public:
  keyed_rule(std::string_view what, std::string key, feature_kind kind);
  std::string name() const override { return key_; }
  void needs(std::vector<feature_need>& out) const override { out.push_back({.key = key_, .kind = kind_}); }
  std::int64_t widest(const std::function<std::int64_t(std::string_view)>& width_of) const override;
  void read(const features& examples, id_lists& out) const override;

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

// A handle: copies share the same immutable rule.
class categorical_column {
public:
  explicit categorical_column(std::shared_ptr<const detail::categorical_rule> rule) : rule_(std::move(rule)) {}

  std::string name() const { return rule_->name(); }
  std::int64_t num_buckets() const { return rule_->num_buckets(); }
  bool weighted() const { return rule_->weighted(); }
  // Returns, for a vocabulary column, the vocabulary that a warm start with another vocabulary needs.
  vocabulary_info vocabulary() const { return rule_->vocabulary(); }
  // Returns the features that are read.
  std::vector<feature_need> needs() const;
  // Returns the ids of every example, in the order of its values, with the weights of a weighted column. Some ids may
  // be below 0 (values that a vocabulary does not hold); look-ups pass over these.
  id_lists ids(const features& examples) const;
  // The same, in memory that `out` already has.
  void ids(const features& examples, id_lists& out) const;
  const detail::categorical_rule& rule() const { return *rule_; }

private:
  std::shared_ptr<const detail::categorical_rule> rule_;
};

namespace detail {

class hash_bucket_rule final : public keyed_rule {
public:
  hash_bucket_rule(std::string key, std::int64_t n, feature_kind kind);
  std::int64_t num_buckets() const override { return n_; }
  bool hashed() const override { return true; }

private:
  std::int64_t id_of(std::string_view s) const override;
  std::int64_t id_of(std::int64_t v) const override { return id_of(std::string_view(decimal_text(v))); }
  std::int64_t n_;
};

class identity_rule final : public keyed_rule {
public:
  identity_rule(std::string key, std::int64_t n, std::optional<std::int64_t> other);
  std::int64_t num_buckets() const override { return n_; }

private:
  std::int64_t id_of(std::string_view) const override { return no_id; }  // its feature is int64
  std::int64_t id_of(std::int64_t v) const override;
  std::int64_t n_;
  std::optional<std::int64_t> other_;
};

}  // namespace detail

struct hash_bucket_options {
  feature_kind dtype = feature_kind::text;
};
// The id is fingerprint64(text) mod hash_bucket_size; an integer is hashed as its decimal text. Different values can
// share an id.
categorical_column categorical_column_with_hash_bucket(std::string key, std::int64_t hash_bucket_size,
                                                       const hash_bucket_options& o = {});

struct identity_options {
  std::optional<std::int64_t> default_value = {};  // for values outside [0, num_buckets)
};
// The value is the id. Without a default_value, look-ups pass over a value below 0, and a value of num_buckets or more
// raises invalid_argument when a batch is read.
categorical_column categorical_column_with_identity(std::string key, std::int64_t num_buckets,
                                                    const identity_options& o = {});

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "categorical_column.ipp"
#endif
