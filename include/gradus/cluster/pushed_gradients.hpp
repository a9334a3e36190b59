// A worker's gradients as what it pushes: for each shard the slices of its variables. Dense ones are pushed from where
// they lie; rows, which later calls of a step may overwrite, are copied.
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
  explicit pushed_gradients(std::uint32_t shards) : parts_(shards) {}
  // A variable that is updated, and where it lies; in the order of its shard's parts.
  void expect(std::string_view name, std::uint32_t shard, bool has_rows);

  // A gradient of this step begins.
  void restart() { seen_ = 0; }
  // Errors: not_found for a variable that is not expected.
  void add(const named_gradient& g);
  // Error: internal if one is missing.
  std::span<const std::vector<wire_slice>> by_shard() const;

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
  std::vector<std::vector<wire_slice>> parts_;
  std::size_t found_ = 0, seen_ = 0;
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "pushed_gradients.ipp"
#endif
