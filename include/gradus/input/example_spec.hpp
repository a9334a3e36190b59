// What is wanted of a tf.train.Example: names, kinds and extents of features, as TensorFlow's parse_example takes them.
//
//   const example_spec spec{{"image", fixed_len_feature{{784}, float32}},
//                           {"label", fixed_len_feature{{}, int64, -1}},           -1 where it is missing
//                           {"words", var_len_feature{feature_kind::text}},
//                           {"terms", sparse_feature{"ids", "weights", float32, 10000}}};
#pragma once
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

namespace gradus {

// The kind of a list, said as float32, int64 or feature_kind::text. Error: invalid_argument for another dtype.
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

// What a missing feature has: nothing (then it must not be missing), one value for all places, or all values.
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

  // n values of this kind; whole numbers do for float32. Error: invalid_argument for another kind or number.
  feature as(feature_kind kind, std::int64_t n, std::string_view name) const {
    feature out = values_;
    out.kind = kind;
    if (kind == feature_kind::float32 && out.floats.empty())
      for (const auto v : std::exchange(out.ints, {})) out.floats.push_back(static_cast<float>(v));
    if (out.floats.size() + out.ints.size() + out.texts.size() != out.size())
      raise(status::invalid_argument, text("feature \"", name, "\": its default is not of its kind, ", name_of(kind)));
    const auto has = static_cast<std::int64_t>(out.size());
    if (has != n && has != 1)
      raise(status::invalid_argument,
            text("feature \"", name, "\": expected a default of 1 or ", n, " values, found ", has));
    if (has == n) return out;
    const std::string first(out.texts.empty() ? std::string_view() : out.texts[0]);
    out.texts.clear();
    if (kind == feature_kind::float32) out.floats.resize(static_cast<std::size_t>(n), out.floats[0]);
    if (kind == feature_kind::int64) out.ints.resize(static_cast<std::size_t>(n), out.ints[0]);
    for (std::int64_t i = 0; kind == feature_kind::text && i < n; ++i) out.texts.push_back(first);
    return out;
  }

private:
  bool given_ = false;
  feature values_;
};

// As many values as `dims` says, in every example; a missing one has the default, or is an error.
struct fixed_len_feature {
  extents dims = {};
  list_kind kind = feature_kind::float32;
  default_values default_value = {};
};
// Any number of values; a missing one has none.
struct var_len_feature {
  list_kind kind = feature_kind::float32;
};
// Values and where they stand, of `size` places, in two lists of the example.
struct sparse_feature {
  std::string index_key, value_key;
  list_kind kind = feature_kind::float32;
  std::int64_t size = 0;
};
// Any number of steps of `dims` values. In a batch all are made as long as the longest, by the default (one value; 0 or
// "" unless given). A missing one has no steps if that is allowed, and is an error if not; parse_example demands that
// it is.
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

// The features wanted, and the keys of examples that they need. Errors: invalid_argument for a name twice, a key of two
// kinds, extents that are none, a default that does not fit.
class example_spec {
public:
  enum class shape_of : std::uint8_t { fixed, var, sparse, sequence };
  // One feature, its settings checked.
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
  explicit example_spec(const std::vector<example_feature>& list) {
    for (const auto& f : list) {
      for (const auto& e : entries_)
        if (e.name == f.name) raise(status::invalid_argument, text("the feature \"", f.name, "\" is wanted twice"));
      entry e{.name = f.name};
      std::visit([&](const auto& how) { take(e, how); }, f.how);
      entries_.push_back(std::move(e));
    }
  }

  const std::vector<entry>& entries() const { return entries_; }
  const std::vector<std::string>& keys() const { return keys_; }
  // The number of a key, -1 for one that nobody wants.
  std::ptrdiff_t find(std::string_view key) const {
    if (table_.empty()) return -1;
    for (std::size_t at = crc32c(key) & (table_.size() - 1);; at = (at + 1) & (table_.size() - 1)) {
      const std::ptrdiff_t k = table_[at];
      if (k < 0 || keys_[static_cast<std::size_t>(k)] == key) return k;
    }
  }

private:
  void take(entry& e, const fixed_len_feature& f) {
    e.how = shape_of::fixed, e.kind = f.kind;
    count_values(e, f.dims);
    e.key = want(e.name, e.kind);
    e.may_be_missing = f.default_value.given();
    if (e.may_be_missing) e.default_value = f.default_value.as(e.kind, e.count, e.name);
  }
  void take(entry& e, const var_len_feature& f) {
    e.how = shape_of::var, e.kind = f.kind, e.may_be_missing = true;
    e.key = want(e.name, e.kind);
  }
  void take(entry& e, const sparse_feature& f) {
    e.how = shape_of::sparse, e.kind = f.kind, e.may_be_missing = true, e.width = f.size;
    if (f.size < 1)
      raise(status::invalid_argument, text("feature \"", e.name, "\": expected a size of 1 or more, found ", f.size));
    e.key = want(f.value_key, e.kind);
    e.index_key = want(f.index_key, feature_kind::int64);
  }
  void take(entry& e, const fixed_len_sequence_feature& f) {
    e.how = shape_of::sequence, e.kind = f.kind, e.may_be_missing = f.allow_missing;
    count_values(e, f.dims);
    if (e.count == 0 || e.dims.rank == max_rank)
      raise(status::invalid_argument,
            text("feature \"", e.name, "\": steps of ", to_text(e.dims), " cannot be counted"));
    e.key = want(e.name, e.kind);
    const default_values zero = e.kind == feature_kind::text ? default_values("") : default_values(0);
    e.default_value = (f.default_value.given() ? f.default_value : zero).as(e.kind, 1, e.name);
  }

  static void count_values(entry& e, const extents& dims) {
    e.dims = dims;
    for (int i = 0; i < dims.rank; ++i) {
      if (dims[i] < 0 || __builtin_mul_overflow(e.count, dims[i], &e.count) || e.count > (std::int64_t{1} << 40))
        raise(status::invalid_argument,
              text("feature \"", e.name, "\": expected known extents that fit into memory, found ", to_text(dims)));
    }
  }
  std::size_t want(const std::string& key, feature_kind kind) {
    if (const auto k = find(key); k >= 0) {
      if (kinds_[static_cast<std::size_t>(k)] != kind)
        raise(status::invalid_argument, text("the key \"", key, "\" is wanted both as ",
                                             name_of(kinds_[static_cast<std::size_t>(k)]), " and as ", name_of(kind)));
      return static_cast<std::size_t>(k);
    }
    keys_.push_back(key);
    kinds_.push_back(kind);
    std::size_t size = 4;  // at most half full, so that a search ends
    while (size < 2 * keys_.size()) size *= 2;
    table_.assign(size, -1);
    for (std::size_t k = 0; k < keys_.size(); ++k) {
      std::size_t at = crc32c(keys_[k]) & (size - 1);
      while (table_[at] >= 0) at = (at + 1) & (size - 1);
      table_[at] = static_cast<std::ptrdiff_t>(k);
    }
    return keys_.size() - 1;
  }

  std::vector<entry> entries_;
  std::vector<std::string> keys_;
  std::vector<feature_kind> kinds_;
  std::vector<std::ptrdiff_t> table_;  // numbers of keys, by their checksums; -1: none
};

}  // namespace gradus
