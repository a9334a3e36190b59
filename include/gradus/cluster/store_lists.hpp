// This header reads the lists of doubles that shards exchange (cluster/update_store.hpp).
#pragma once
#include "../base/build.hpp"

#include <span>
#include <string_view>
#include <vector>

#include "../base/error.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// The measurements of the shards in a round, read in the order of the model's variables. All of them are checked. Every
// error is data_loss.
class measured_lists {
public:
  // `at` is working memory. There may be more lists than `shards`: those of shards without variables.
  measured_lists(std::size_t round, std::span<const std::span<const double>> by_shard, std::size_t shards,
                 std::vector<std::size_t>& at);
  // Checks that a shard's list equals its measurement, bit for bit.
  void check_own(std::uint32_t shard, std::span<const double> measured) const;
  double next(std::uint32_t shard, std::string_view variable) {
    const std::span<const double> one = next(shard, variable, 1);
    return one[0];
  }
  std::span<const double> next(std::uint32_t shard, std::string_view variable, std::size_t n);
  // Reads a count, and returns that many numbers.
  std::span<const double> next_counted(std::uint32_t shard, std::string_view variable);
  // Checks that all were read.
  void end() const;
  [[noreturn]] void refuse(std::uint32_t shard, std::string_view why) const;

private:
  std::size_t round_;
  std::span<const std::span<const double>> lists_;
  std::vector<std::size_t>* at_;
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "store_lists.ipp"
#endif
