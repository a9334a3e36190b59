// A worker pushes its gradients in this form: for each shard the slices of its variables, or of its parts of them.
// Dense gradients are not copied; rows, which later calls of a step may overwrite, are copied.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "../run/named_gradient.hpp"
#include "store_variables.hpp"
#include "wire.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

class pushed_gradients {
public:
  pushed_gradients() = default;
  explicit pushed_gradients(std::uint32_t shards) : parts_(shards), rest_(shards), ahead_(shards), is_sent_(shards) {}
  // Adds a variable that is updated, or a part of one; in the order of its shard's slices. The parts of a variable
  // follow one another.
  void expect(const store_variable& v);

  // Begins the gradients of a step.
  void restart();
  // Raises not_found for a variable that is not expected.
  void add(const named_gradient& g);
  // Adds a slice of something else to those of every shard, once in a step.
  void add_to_all(const wire_slice& s);
  // Returns the slices of each shard. Raises internal if a gradient is missing.
  std::span<const std::vector<wire_slice>> by_shard() const;

  // Calls f(shard, slices) for each shard with at least `piece_bytes` of dense gradients that were not sent yet; they
  // count as sent then.
  template <class F>
  void send_ahead(std::size_t piece_bytes, F f) {
    for (std::uint32_t k = 0; k < ahead_.size(); ++k)
      if (ahead_[k].bytes >= piece_bytes) f(k, std::span<const wire_slice>(ahead_[k].slices)), take_ahead(k);
  }
  // Returns for each shard the slices that were not sent ahead; an empty list if none was sent ahead.
  std::span<const std::vector<wire_slice>> rest();

private:
  struct variable {
    store_variable about;
    std::size_t at = 0;  // among its shard's slices
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
  std::vector<piece> ahead_;                  // by shard: the next slice to be sent ahead
  std::vector<std::vector<bool>> is_sent_;    // of each slice of parts_: it was sent ahead
  bool any_sent_ = false, has_more_ = false;  // has_more: each list of parts_ ends with the slice of add_to_all
  std::size_t found_ = 0, seen_ = 0;

  void take(variable& v, const named_gradient& g);
  void take_rows(variable& v, const named_gradient& g, wire_slice* to);
  void take_ahead(std::uint32_t shard);
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "pushed_gradients.ipp"
#endif
