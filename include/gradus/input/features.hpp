// This header has `features`, a batch of named features as files hold them. A feature has numbers or text, the same
// number of them for every example (dense) or a different number for each (ragged). parse_example makes such batches,
// and feature columns read them.
//
//   const feature& f = batch["terms"];
//   for (std::int64_t r = 0; r < batch.rows(); ++r)
//     for (std::size_t i = f.begin(r); i < f.end(r); ++i) use(f.texts[i]);
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../base/error.hpp"
#include "../base/shape.hpp"

namespace gradus::inline GRADUS_BUILD {

// A list of strings in one block of memory, which is kept when the list is used again.
class text_list {
public:
  std::size_t size() const { return ends_.size(); }
  bool empty() const { return ends_.empty(); }
  std::string_view operator[](std::size_t i) const;
  void push_back(std::string_view s);
  void clear() { bytes_.clear(), ends_.clear(); }
  // Keeps only the first n strings.
  void cut(std::size_t n);
  bool operator==(const text_list&) const = default;

private:
  std::string bytes_;
  std::vector<std::size_t> ends_;
};

// The kinds of a feature's values: the three lists of a tf.train.Feature.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // g++ holds enumerators of a scoped enum against names of the namespace
enum class feature_kind : std::uint8_t { float32, int64, text };
#pragma GCC diagnostic pop
constexpr std::string_view name_of(feature_kind k) {
  return k == feature_kind::float32 ? "float32" : k == feature_kind::int64 ? "int64" : "string";
}

// One feature of all examples of a batch. The values of the examples stand one after another, in the list of the
// feature's kind.
struct feature {
  std::string name;
  feature_kind kind = feature_kind::float32;
  extents dims = {};                      // dense: the extents of one example; ragged: [any_extent]
  std::vector<std::int64_t> splits = {};  // ragged: example r has values splits[r] to splits[r + 1]
  std::vector<float> floats = {};
  std::vector<std::int64_t> ints = {};
  text_list texts = {};
  // For a sparse feature, the place of each value in its example, which has `width` places. If `places` is empty, the
  // values stand one after another.
  std::vector<std::int64_t> places = {};
  std::int64_t width = 0;

  bool ragged() const { return !splits.empty(); }
  std::size_t size() const;
  // Example r has the values [begin(r), end(r)).
  std::size_t begin(std::int64_t r) const;
  std::size_t end(std::int64_t r) const { return begin(r + 1); }
  bool operator==(const feature&) const = default;
};

// The features of a batch. operator[] raises not_found with the known names; add raises already_exists.
class features {
public:
  explicit features(std::int64_t rows = 0) : rows_(rows) {}
  std::int64_t rows() const { return rows_; }

  // Adds a feature. Raises invalid_argument if its values do not fit the number of examples.
  feature& add(feature f);
  const feature* find(std::string_view name) const;
  const feature& operator[](std::string_view name) const;
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }
  std::size_t size() const { return list_.size(); }

private:
  std::int64_t rows_ = 0;
  std::vector<feature> list_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "features.ipp"
#endif
