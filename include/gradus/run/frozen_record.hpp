// A checkpoint of a model with frozen layers (ops/frozen.hpp) records which weights they had, because what is trained
// above them is useless above other weights.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "../base/frozen_label.hpp"
#include "../base/state.hpp"
#include "../graph/node.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Returns a number computed from the shape and the weights of one layer.
std::uint64_t digest_of(const frozen_weights& w);

class frozen_record final : public blob {
public:
  frozen_record() = default;
  explicit frozen_record(std::span<const frozen_weights* const> layers);
  // Finds the frozen layers of a graph; the values of their weights are read when a checkpoint is written or restored.
  void find(const graph_view& g);
  void list_in(state_list& list) {
    if (!layers_.empty()) list.dynamic(frozen_weights_name, *this, true);
  }

  void save(std::vector<std::byte>& out) const override;
  // Raises data_loss if the checkpoint was made without one of the layers, or with other weights of it.
  void load(std::span<const std::byte> in) override;

private:
  std::vector<const frozen_weights*> layers_;

  std::vector<std::uint64_t> digests() const;
};

// The same for a model that the compiler has laid out: in a list that takes blobs it is that blob, in another one an
// empty tensor for each layer, whose name says the digest (base/frozen_label.hpp).
template <class Placed>
struct static_frozen_record {
  static constexpr auto layers = [] {
    constexpr auto found = [] {
      std::array<const frozen_weights*, static_cast<std::size_t>(Placed::graph.size.nodes)> all{};
      std::size_t n = 0;
      for (int i = 0; i < Placed::graph.size.nodes; ++i)
        if (const frozen_weights* w = Placed::graph.nodes[i].op->frozen;
            w != nullptr && std::find(all.begin(), all.begin() + n, w) == all.begin() + n)
          all[n++] = w;
      return std::pair(all, n);
    }();
    std::array<const frozen_weights*, found.second> some{};
    std::copy_n(found.first.begin(), found.second, some.begin());
    return some;
  }();

  template <class List>
  static void list_in(List& list) {
    if constexpr (layers.empty()) {
    } else if constexpr (requires(blob& b) { list.dynamic(frozen_weights_name, b, true); }) {
      static frozen_record of_model{layers};
      of_model.list_in(list);
    } else {
      std::uint64_t digests[layers.size()];
      for (std::size_t i = 0; i < layers.size(); ++i) {
        digests[i] = digest_of(*layers[i]);
        if (std::find(digests, digests + i, digests[i]) == digests + i)  // two layers may have the same weights
          list.tensor(frozen_label(digests[i]).name(), dtype::uint8, extents{0}, std::span<std::byte>());
      }
    }
  }
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "frozen_record.ipp"
#endif
