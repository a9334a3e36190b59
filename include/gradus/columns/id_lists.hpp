// id_lists holds the ids of a categorical feature: for each example of a batch any number of ids, with weights if there
// are any.
//
//   const id_lists ids = column.ids(batch);
//   for (std::int64_t r = 0; r < ids.rows(); ++r)
//     for (std::size_t i = ids.begin(r); i < ids.end(r); ++i) use(ids.ids[i], ids.weight(i));
//   const std::vector<std::int64_t> table = ids.padded(4);   // [rows, 4], padded with -1, as a graph takes it
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "../base/error.hpp"

namespace gradus::inline GRADUS_BUILD {

// The id that stands for none in a look-up. Look-ups pass over every id below 0.
inline constexpr std::int64_t no_id = -1;

struct id_lists {
  std::vector<std::int64_t> splits = {0};  // example r has ids splits[r] to splits[r + 1]
  std::vector<std::int64_t> ids = {};
  std::vector<float> weights = {};  // one for each id; empty: all are 1
  // The most ids that a cross may make of one example, because its ids are a product, which few values make large. A
  // feature_layout has the room of its graph here. clear() keeps it.
  std::int64_t most = std::int64_t{1} << 20;

  std::int64_t rows() const { return static_cast<std::int64_t>(splits.size()) - 1; }
  std::size_t begin(std::int64_t r) const { return static_cast<std::size_t>(splits[static_cast<std::size_t>(r)]); }
  std::size_t end(std::int64_t r) const { return begin(r + 1); }
  float weight(std::size_t i) const { return weights.empty() ? 1 : weights[i]; }
  void add(std::int64_t id) { ids.push_back(id); }
  void end_row() { splits.push_back(static_cast<std::int64_t>(ids.size())); }
  void clear() { splits.assign(1, 0), ids.clear(), weights.clear(); }
  // Returns the most ids that an example has.
  std::int64_t longest() const;

  // Write the ids as an array [rows, width], with short rows filled with -1, and the weights with short rows filled
  // with 0 (if there are no weights, each id gets 1). They raise invalid_argument if an example has more ids than
  // `width`, or `out` has another size.
  void pad_ids(std::int64_t width, std::span<std::int64_t> out) const;
  void pad_weights(std::int64_t width, std::span<float> out) const;
  std::vector<std::int64_t> padded(std::int64_t width) const;
  std::vector<std::int64_t> padded() const { return padded(longest()); }
  std::vector<float> padded_weights(std::int64_t width) const;
  std::vector<float> padded_weights() const { return padded_weights(longest()); }

  bool operator==(const id_lists& other) const {
    return splits == other.splits && ids == other.ids && weights == other.weights;
  }

private:
  template <class T>
  void pad(std::int64_t width, std::span<T> out, T filler, const auto& value_of) const {
    if (static_cast<std::int64_t>(out.size()) != rows() * width)
      raise(status::invalid_argument, text("ids of ", rows(), " examples, ", width, " each: expected room for ",
                                           rows() * width, " of them, found ", out.size()));
    for (std::int64_t r = 0; r < rows(); ++r) {
      const auto n = static_cast<std::int64_t>(end(r) - begin(r));
      if (n > width)
        raise(status::invalid_argument,
              text("example ", r, " of the batch has ", n, " ids, expected at most ", width, "; give more room"));
      T* row = out.data() + r * width;
      for (std::int64_t k = 0; k < width; ++k)
        row[k] = k < n ? value_of(begin(r) + static_cast<std::size_t>(k)) : filler;
    }
  }
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "id_lists.ipp"
#endif
