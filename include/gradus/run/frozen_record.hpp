// A checkpoint of a model with frozen layers (ops/frozen.hpp) records which weights they had, because what is trained
// above them is useless above other weights.
#pragma once
#include <cstdint>
#include <vector>

#include "../base/state.hpp"
#include "../graph/node.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Returns a number computed from the shape and the weights of one layer.
std::uint64_t digest_of(const frozen_weights& w);

class frozen_record final : public blob {
public:
  // Finds the frozen layers of a graph; the values of their weights are read when a checkpoint is written or restored.
  void find(const graph_view& g);
  void list_in(state_list& list) {
    if (!layers_.empty()) list.dynamic("frozen_weights", *this, true);
  }

  void save(std::vector<std::byte>& out) const override;
  // Raises data_loss if the checkpoint was made without one of the layers, or with other weights of it.
  void load(std::span<const std::byte> in) override;

private:
  std::vector<const frozen_weights*> layers_;

  std::vector<std::uint64_t> digests() const;
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "frozen_record.ipp"
#endif
