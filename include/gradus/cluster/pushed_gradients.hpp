// A worker pushes its gradients in this form: for each shard the slices of its variables. Dense ones are pushed from
// where they lie; rows, which later calls of a step may overwrite, are copied.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "../run/named_gradient.hpp"
#include "wire.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

class pushed_gradients {
public:
  pushed_gradients() = default;
  explicit pushed_gradients(std::uint32_t shards) : parts_(shards), rest_(shards), ahead_(shards), is_sent_(shards) {}
  // A variable that is updated, and where it lies; in the order of its shard's parts.
  void expect(std::string_view name, std::uint32_t shard, bool has_rows);

  // A gradient of this step begins.
  void restart();
  // Errors: not_found for a variable that is not expected.
  void add(const named_gradient& g);
  // Error: internal if one is missing.
  std::span<const std::vector<wire_slice>> by_shard() const;

  // f(shard, slices) for each shard of whose dense gradients there are so many bytes that were not sent yet; they count
  // as sent then.
  template <class F>
  void send_ahead(std::size_t piece_bytes, F f) {
    for (std::uint32_t k = 0; k < ahead_.size(); ++k)
      if (ahead_[k].bytes >= piece_bytes) f(k, std::span<const wire_slice>(ahead_[k].slices)), take_ahead(k);
  }
  // For each shard the slices that were not sent ahead; nothing, if none was.
  std::span<const std::vector<wire_slice>> rest();

private:
  struct variable {
    std::string name;
    std::uint32_t shard = 0;
    std::size_t at = 0;  // among its shard's slices
    bool has_rows = false;
    std::vector<std::int64_t> rows;
    std::vector<std::byte> values;
  };
  std::vector<variable> variables_;
  struct piece {
    std::vector<wire_slice> slices;
    std::vector<std::size_t> at;  // among its shard's
    std::size_t bytes = 0;
  };
  std::vector<std::vector<wire_slice>> parts_, rest_;
  std::vector<piece> ahead_;                // by shard: the next slice to be sent ahead
  std::vector<std::vector<bool>> is_sent_;  // ahead, of each slice of parts_
  bool any_sent_ = false;
  std::size_t found_ = 0, seen_ = 0;

  void take_ahead(std::uint32_t shard);
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "pushed_gradients.ipp"
#endif
