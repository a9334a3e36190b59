// An example_spec lists the features to read from a tf.train.Example with their names, kinds and extents, as
// TensorFlow's parse_example takes them.
//
//   const example_spec spec{{"image", fixed_len_feature{{784}, float32}},
//                           {"label", fixed_len_feature{{}, int64, -1}},           -1 where it is missing
//                           {"words", var_len_feature{feature_kind::text}},
//                           {"terms", sparse_feature{"ids", "weights", float32, 10000}}};
#pragma once
#include "../base/build.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "../base/dtype.hpp"
#include "../base/error.hpp"
#include "../store/crc32c.hpp"
#include "datum.hpp"
#include "features.hpp"

namespace gradus::inline GRADUS_BUILD {

// The kind of a list, given as float32, int64 or feature_kind::text. Raises invalid_argument for another dtype.
class list_kind {
public:
  constexpr list_kind(feature_kind k) : kind_(k) {}
  constexpr list_kind(dtype t) : kind_(t == dtype::float32 ? feature_kind::float32 : feature_kind::int64) {
    if (t != dtype::float32 && t != dtype::int64)
      raise(status::invalid_argument, text("an Example holds float32, int64 and text (feature_kind::text), not ",
                                           name_of(t), "; convert after parsing"));
  }
  constexpr operator feature_kind() const { return kind_; }

private:
  feature_kind kind_;
};

// The values that a missing feature gets: one value for all places, or all values, or none, in which case a missing
// feature is an error.
class default_values {
public:
  default_values() = default;
  template <class T>
    requires std::is_arithmetic_v<T>
  default_values(T v) : default_values(std::vector<T>{v}) {}
  default_values(std::string_view v) : default_values(std::vector<std::string_view>{v}) {}
  default_values(const char* v) : default_values(std::string_view(v)) {}
  template <class T>
  default_values(std::initializer_list<T> v) : default_values(std::vector<T>(v)) {}
  template <class T>
  default_values(const std::vector<T>& v) : given_(true) {
    if constexpr (std::is_floating_point_v<T>)
      for (const T x : v) values_.floats.push_back(static_cast<float>(x));
    else if constexpr (std::is_integral_v<T>)
      for (const T x : v) values_.ints.push_back(static_cast<std::int64_t>(x));
    else
      for (const auto& x : v) values_.texts.push_back(x);
  }
  bool given() const { return given_; }

  // Returns n values of this kind; whole numbers are accepted for float32. Raises invalid_argument for another kind or
  // number.
  feature as(feature_kind kind, std::int64_t n, std::string_view name) const;

private:
  bool given_ = false;
  feature values_;
};

// Every example has as many values as `dims` has places. A missing feature gets the default, or is an error if there is
// none.
struct fixed_len_feature {
  extents dims = {};
  list_kind kind = feature_kind::float32;
  default_values default_value = {};
};
// An example has any number of values; a missing feature has none.
struct var_len_feature {
  list_kind kind = feature_kind::float32;
};
// Two lists of the example hold the values and their places, of which there are `size`.
struct sparse_feature {
  std::string index_key, value_key;
  list_kind kind = feature_kind::float32;
  std::int64_t size = 0;
};
// An example has any number of steps, each of `dims` values. In a batch all examples are padded to the length of the
// longest with the default (one value; 0 or "" unless given). A missing feature has no steps if allow_missing is set,
// and is an error if not; parse_example requires allow_missing.
struct fixed_len_sequence_feature {
  extents dims = {};
  list_kind kind = feature_kind::float32;
  bool allow_missing = false;
  default_values default_value = {};
};

struct example_feature {
  std::string name;
  std::variant<fixed_len_feature, var_len_feature, sparse_feature, fixed_len_sequence_feature> how;
};

// The wanted features, and the keys of examples that they need. Raises invalid_argument for a name that comes twice, a
// key of two kinds, extents that are not valid, or a default that does not fit.
class example_spec {
public:
  enum class shape_of : std::uint8_t { fixed, var, sparse, sequence };
  // This is one feature, with its settings checked.
  struct entry {
    std::string name;
    shape_of how = shape_of::fixed;
    feature_kind kind = feature_kind::float32;
    extents dims = {};
    std::int64_t count = 1;       // values of `dims`
    std::size_t key = 0;          // of its values, in keys()
    std::size_t index_key = 0;    // of its places
    std::int64_t width = 0;       // of a sparse one
    bool may_be_missing = false;  // then it has the default
    feature default_value = {};
  };

  example_spec(std::initializer_list<example_feature> list) : example_spec(std::vector<example_feature>(list)) {}
  explicit example_spec(const std::vector<example_feature>& list);

  const std::vector<entry>& entries() const { return entries_; }
  const std::vector<std::string>& keys() const { return keys_; }
  // Returns the number of a key, or -1 for a key that the spec does not list.
  std::ptrdiff_t find(std::string_view key) const;

private:
  void take(entry& e, const fixed_len_feature& f);
  void take(entry& e, const var_len_feature& f);
  void take(entry& e, const sparse_feature& f);
  void take(entry& e, const fixed_len_sequence_feature& f);

  static void count_values(entry& e, const extents& dims);
  std::size_t want(const std::string& key, feature_kind kind);

  std::vector<entry> entries_;
  std::vector<std::string> keys_;
  std::vector<feature_kind> kinds_;
  std::vector<std::ptrdiff_t> table_;  // numbers of keys, by their checksums; -1: none
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "example_spec.ipp"
#endif
