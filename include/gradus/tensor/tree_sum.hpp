// A tree_sum adds arrays that come one after the other, as a binary tree fixed by their number: n arrays are cut at the
// largest power of two below n, the two sides are summed in the same way, then added. So processes that hold 2^k
// neighbours each, from a multiple of 2^k on, can sum theirs separately and add the sums in the same tree: the bits are
// those of one process with all arrays. It can also sum in order, each array added to the sum of those before it, in
// memory for one sum; two processes cannot share such a sum.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <vector>

#include "tensor.hpp"

namespace gradus::inline GRADUS_BUILD {

// How several arrays are added.
enum class summation : std::uint8_t { tree, in_order };
inline constexpr summation in_order = summation::in_order;

// It holds at most log2(n), rounded up, partial sums; in order at most one.
class tree_sum {
public:
  tree_sum() = default;
  // Sums `n` arrays of so many bytes.
  tree_sum(std::int64_t n, std::size_t bytes, summation how = summation::tree)
      : n_(static_cast<std::uint64_t>(n)), in_order_(how == summation::in_order) {
    if (n < 1) raise(status::invalid_argument, text("tree_sum: expected 1 array or more, found ", n));
    for (std::uint64_t rest = in_order_ ? std::uint64_t{n > 1} : n_ - 1; rest != 0; rest >>= 1)
      levels_.emplace_back(bytes);
  }
  // Takes the next array, at `here`. After the last array the sum is there, and the next array begins another sum;
  // until then, what a call leaves at `here` is of no use. add(to, from) makes to += from, of whole arrays.
  template <class Add>
  void take(std::byte* here, Add add) {
    const bool last = seen_ + 1 == n_;
    if (in_order_ && n_ > 1) {
      std::byte* const sum = levels_[0].data();
      if (seen_ != 0) add(sum, static_cast<const std::byte*>(here));
      if (levels_[0].size() != 0 && (seen_ == 0 || last))
        std::memcpy(last ? here : sum, last ? sum : here, levels_[0].size());
      seen_ = last ? 0 : seen_ + 1;
      return;
    }
    std::size_t level = 0;
    for (std::uint64_t sums = seen_; last ? sums != 0 : (sums & 1) != 0; sums >>= 1, ++level)
      if ((sums & 1) != 0) add(here, static_cast<const std::byte*>(levels_[level].data()));
    if (!last && levels_[level].size() != 0) std::memcpy(levels_[level].data(), here, levels_[level].size());
    seen_ = last ? 0 : seen_ + 1;
  }
  // Forgets what was taken.
  void restart() { seen_ = 0; }
  std::size_t bytes() const { return levels_.empty() ? 0 : levels_.size() * levels_[0].size(); }

private:
  std::vector<aligned_buffer> levels_;  // level k: the sum of 2^k neighbours, where bit k of seen_ is set
  std::uint64_t n_ = 1, seen_ = 0;
  bool in_order_ = false;
};

}  // namespace gradus
