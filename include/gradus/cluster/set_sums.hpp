// This header sums a set of contributions, for a shard of a parameter server (cluster/update_store.hpp).
#pragma once
#include "../base/build.hpp"

#include <cstring>
#include <span>
#include <vector>

#include "../run/named_gradient.hpp"
#include "../tensor/tree_sum.hpp"
#include "store_variables.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Sums arrays with the additions of tree_sum over whole arrays, but in pieces that fit a cache, so that the partial
// sums take a few kilobytes, however long the arrays are.
class dense_sum {
public:
  // Writes the sum of n arrays of `size` values, divided by `by`, to `to`. from(k) returns the beginning of the k-th
  // array, aligned or not.
  template <class T, class From>
  void operator()(T* to, std::size_t size, std::size_t n, std::int64_t by, From from) {
    constexpr std::size_t piece = piece_bytes / sizeof(T);
    if (n != n_) tree_ = tree_sum(static_cast<std::int64_t>(n), piece_bytes), n_ = n;
    if (here_.size() == 0) here_ = aligned_buffer(piece_bytes);
    T* const here = reinterpret_cast<T*>(here_.data());
    for (std::size_t at = 0; at < size; at += piece) {
      const std::size_t some = size - at < piece ? size - at : piece;
      for (std::size_t k = 0; k < n; ++k) {
        std::memcpy(here, from(k) + at * sizeof(T), some * sizeof(T));
        tree_.take(here_.data(), [some](std::byte* sum, const std::byte* add) {
          T* const x = reinterpret_cast<T*>(sum);
          const T* const y = reinterpret_cast<const T*>(add);
          for (std::size_t i = 0; i < some; ++i) x[i] += y[i];
        });
      }
      std::memcpy(to + at, here, some * sizeof(T));
      divide(to + at, some, by);
    }
  }
  template <class T>
  static void divide(T* x, std::size_t n, std::int64_t by) {
    if (by == 1) return;
    for (std::size_t i = 0; i < n; ++i) x[i] /= static_cast<T>(by);
  }

private:
  static constexpr std::size_t piece_bytes = std::size_t{1} << 14;
  tree_sum tree_;
  std::size_t n_ = 0;
  aligned_buffer here_;
};

// Computes one gradient for each variable: dense ones are added as a stepper with microbatch{n} adds those of its
// parts, rows are concatenated in the order of the set; then the result is divided. Memory is allocated only while sets
// grow. The gradient of a single contribution that is not divided is used without a copy.
class set_sums {
public:
  // The variables must stay where they are. Raises invalid_argument for divide_by below 1.
  set_sums(const std::vector<const store_variable*>& variables, std::int64_t divide_by);
  void clear() { set_.clear(), contributions_ = 0; }
  // Adds the next contribution, matched with the variables.
  void add(std::span<const matched_gradient> part) {
    set_.insert(set_.end(), part.begin(), part.end());
    ++contributions_;
  }
  // Returns the gradients of all that were added. They lie here, or in the contribution, until the next call.
  std::span<const named_gradient> gradients();
  // Returns the values of all rows that were added to the i-th variable, which has `all_rows`; gradients() has those of
  // its own rows.
  const_tensor_view all_values(std::size_t i) const { return sums_[i].all; }

private:
  struct sum {
    const store_variable* about = nullptr;
    aligned_buffer values;
    std::vector<std::int64_t> rows;
    const_tensor_view all;  // of a part with all rows: the values of all, and the part's own rows
    std::vector<std::int64_t> own_rows;
    std::vector<std::byte> own_values;
  };
  std::vector<sum> sums_;
  std::int64_t divide_by_;
  std::size_t contributions_ = 0;
  std::vector<matched_gradient> set_;  // that of contribution k and variable i is at k sums_.size() + i
  std::vector<named_gradient> gradients_;
  dense_sum dense_;

  const matched_gradient& at(std::size_t k, std::size_t i) const { return set_[k * sums_.size() + i]; }
  // Returns true if a contribution is used as the gradient without a copy.
  bool is_gradient(const wire_slice& s) const {
    return contributions_ == 1 && divide_by_ == 1 &&
           reinterpret_cast<std::uintptr_t>(s.bytes.data()) % size_of(s.type) == 0;
  }
  named_gradient dense_of(std::size_t i);
  named_gradient rows_of(std::size_t i);
  named_gradient own_rows_of(sum& v, const named_gradient& all);
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "set_sums.ipp"
#endif
