// crossed_column hashes the combinations of the values of several features.
//
//   crossed_column({"city", "day"}, 1000)                                                  crosses the values
//   crossed_column({"city", bucketized_column(numeric_column("age"), {18, 65})}, 1000)     crosses values and ids
//
// An example with 2 cities and 3 days has 6 crosses. The id of a cross is a chain of fingerprints, which begins with
// hash_key, modulo hash_bucket_size. A text enters the chain as its fingerprint; integers and the ids of columns enter
// it unchanged. The ids are those of TensorFlow 1.15 (its SparseCross kernel). So columns and ragged features come
// first in the chain and dense features behind them, and in a dense feature "" and -1 are crossed like any other value.
#pragma once
#include "../base/build.hpp"

#include <variant>

#include "categorical_column.hpp"

namespace gradus::inline GRADUS_BUILD {

// A part of a cross: a feature by its name, or the ids of a column.
class cross_key {
public:
  cross_key(const char* feature) : what_(std::string(feature)) {}
  cross_key(std::string feature) : what_(std::move(feature)) {}
  cross_key(categorical_column column) : what_(std::move(column)) {}
  const std::string* feature() const { return std::get_if<std::string>(&what_); }
  const categorical_column* column() const { return std::get_if<categorical_column>(&what_); }

private:
  std::variant<std::string, categorical_column> what_;
};

namespace detail {

class crossed_rule final : public categorical_rule {
public:
  crossed_rule(const std::vector<cross_key>& keys, std::int64_t n, std::uint64_t hash_key);
  std::string name() const override;
  std::int64_t num_buckets() const override { return n_; }
  std::int64_t widest(const std::function<std::int64_t(std::string_view)>& width_of) const override;
  void needs(std::vector<feature_need>& out) const override;
  void read(const features& examples, id_lists& out) const override;

private:
  id_lists prints_of(const feature& f, std::int64_t rows) const;

  std::vector<cross_key> keys_;
  std::int64_t n_;
  std::uint64_t hash_key_;
};

}  // namespace detail

struct cross_options {
  std::uint64_t hash_key = 0xDECAFCAFFE;  // TensorFlow's; another key makes other collisions
};
// The column's name consists of the sorted names of its parts, with _X_ between them. A cross among the keys is
// replaced by its keys. Raises invalid_argument for fewer than 2 keys, a hash_bucket_size below 1, and a hashed or a
// weighted column among the keys.
categorical_column crossed_column(const std::vector<cross_key>& keys, std::int64_t hash_bucket_size,
                                  const cross_options& o = {});

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "crossed_column.ipp"
#endif
